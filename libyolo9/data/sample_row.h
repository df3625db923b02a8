// Bilinear interpolation along a line through a picture: the inner loop of every training sample.
#pragma once

#include <cstdint>

namespace yolo9 {

// Where the samples of a row lie in a picture, in 1/65536 pixel: sample i at (x + i * dx, y + i * dy) / 65536, moved
// to the nearest point between the centres of the outer pixels. No sample may lie 1,000 pixels or more outside.
struct SampleLine {
  int32_t x = 0, y = 0, dx = 0, dy = 0;
};

// A picture of BGR bytes, readable 8 bytes beyond its last pixel; sides of 2 to kLongestSampledSide pixels, less than 2
// GiB in all.
constexpr int32_t kLongestSampledSide = 30000;
struct PixelSource {
  const uint8_t* pixels;
  int32_t row_bytes, width, height;
};

// Writes `count` BGR pixels. Weights are 1/64, first across, then down; the same bits with and without vector
// instructions.
void sample_row(const PixelSource& source, const SampleLine& line, int64_t count, uint8_t* out);

// The two ways it goes, by the processor; here for tests.
void sample_row_plain(const PixelSource& source, const SampleLine& line, int64_t count, uint8_t* out);
bool has_sample_row_vector();
void sample_row_vector(const PixelSource& source, const SampleLine& line, int64_t count, uint8_t* out);

}  // namespace yolo9
