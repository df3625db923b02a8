// From a picture of a data set to a sample: decoding, augmentation, labels.
#pragma once

#include <atomic>
#include <cstdint>

#include <yolo9/data/dataset.h>

namespace yolo9 {

class ItemTable;
class PictureCache;

class SampleMaker {
 public:
  // All must outlive it. `cache` may be null. `rect_shapes`: one a batch, empty unless rectangular.
  SampleMaker(const DatasetOptions& options, const ItemTable& items, const std::vector<PixelSize>& rect_shapes,
              PictureCache* cache);

  Sample make(int64_t index, int64_t epoch, bool mosaic, int64_t repeat) const;
  PixelSize sample_size(int64_t index) const;
  int64_t decode_failures() const { return decode_failures_; }

 private:
  struct Scene;
  cv::Mat read_resized(int64_t index) const;
  cv::Mat load(int64_t index) const;
  Scene single(int64_t index, Random& random, LetterboxInfo& info) const;
  Scene mosaic_scene(int64_t index, Random& random) const;

  const DatasetOptions& options_;
  const ItemTable& items_;
  const std::vector<PixelSize>& rect_shapes_;
  PictureCache* cache_;
  mutable std::atomic<int64_t> decode_failures_{0};
};

}  // namespace yolo9
