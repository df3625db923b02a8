// Decoded pictures at their loaded size, kept so that later epochs need not decode them again.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <yolo9/data/mosaic.h>

namespace cv {
class Mat;
}

namespace yolo9 {

// Which pictures are kept is settled from the start, from their sizes; each is filled in when it is first needed.
// Safe for many threads at once.
class PictureCache {
 public:
  virtual ~PictureCache() = default;
  // The picture, 8-bit BGR, to be read only; empty if it is not there.
  virtual cv::Mat find(int64_t index) const = 0;
  // Whether the picture has a place here, filled or not.
  virtual bool keeps(int64_t index) const = 0;
  // Fills the place of a picture that keeps() says yes to; without effect if it is filled already.
  virtual void put(int64_t index, const cv::Mat& picture) = 0;
};

// `sizes`: of every picture as it will be put.
std::unique_ptr<PictureCache> make_memory_cache(const std::vector<PixelSize>& sizes);

}  // namespace yolo9
