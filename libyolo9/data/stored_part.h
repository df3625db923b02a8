// A part of a JPEG or PNG file, in the orientation in which it is stored.
#pragma once

#include <cstdint>
#include <span>

#include <opencv2/core.hpp>

namespace yolo9 {

// Stored pixels [x1, x2) x [y1, y2), to be averaged down by up to `reduction` both ways.
struct StoredRequest {
  int64_t x1, y1, x2, y2;
  double reduction;
};

// `pixels` (i, j) covers the stored pixels from ((left + i) * reduction, (top + j) * reduction) on.
struct StoredPart {
  cv::Mat pixels;
  int64_t reduction = 1, left = 0, top = 0;
};

enum class DecodeOutcome {
  Done,
  Damaged,      // or cut short: half a picture is none
  Unsupported,  // a kind that is left to OpenCV: CMYK, PNG in passes
};
DecodeOutcome decode_jpeg_part(std::span<const uint8_t> bytes, const StoredRequest& request, StoredPart& part);
DecodeOutcome decode_png_part(std::span<const uint8_t> bytes, const StoredRequest& request, StoredPart& part);

}  // namespace yolo9
