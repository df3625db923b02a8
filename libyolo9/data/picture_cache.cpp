#include <yolo9/data/picture_cache.h>

#include <array>
#include <mutex>

#include <opencv2/core.hpp>

namespace yolo9 {
namespace {

class MemoryCache : public PictureCache {
 public:
  explicit MemoryCache(size_t count) : pictures_(count) {}

  cv::Mat find(int64_t index) const override {
    const std::lock_guard lock(lock_of(index));
    return pictures_[static_cast<size_t>(index)];
  }

  bool keeps(int64_t) const override { return true; }

  void put(int64_t index, const cv::Mat& picture) override {
    const std::lock_guard lock(lock_of(index));
    cv::Mat& place = pictures_[static_cast<size_t>(index)];
    if (place.empty()) place = picture;
  }

 private:
  static constexpr size_t kLocks = 61;
  std::mutex& lock_of(int64_t index) const { return locks_[static_cast<size_t>(index) % kLocks]; }

  std::vector<cv::Mat> pictures_;
  mutable std::array<std::mutex, kLocks> locks_;
};

}  // namespace

std::unique_ptr<PictureCache> make_memory_cache(const std::vector<PixelSize>& sizes) {
  return std::make_unique<MemoryCache>(sizes.size());
}

}  // namespace yolo9
