// A small synthetic data set: coloured shapes on textured backgrounds. The same options give the same bytes.
#pragma once

#include <cstdint>
#include <string>

namespace yolo9 {

struct ShapesOptions {
  uint64_t seed = 0;
  int64_t train = 400, val = 100;  // pictures
  int64_t width = 192, height = 192;
};

// Writes folder/data.yaml and images/ and labels/ with train/ and val/ below each: one to four shapes a picture, of
// the classes circle, square and triangle, as boxes and as polygons. Replaces files of the names it writes and leaves
// others alone. Throws Error(Data) if something cannot be written, Error(Usage) for counts below 0 or pictures
// smaller than 32 pixels.
void make_shapes(const std::string& folder, const ShapesOptions& options);

}  // namespace yolo9
