// Where the pictures of a cache lie in one stretch of memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <yolo9/data/mosaic.h>
#include <opencv2/core.hpp>

namespace yolo9 {

// Places of pictures in one stretch of memory, in order. The first places are the same whatever the budget.
class PicturePlaces {
 public:
  PicturePlaces(const std::vector<PixelSize>& sizes, int64_t budget_bytes)
      : count_(static_cast<int64_t>(sizes.size())) {
    int64_t end = 0;
    for (const PixelSize& size : sizes) {
      const int64_t next = end + aligned(3 * size.height * size.width + kSlack);
      if (next > budget_bytes) break;
      places_.push_back({end, static_cast<int32_t>(size.height), static_cast<int32_t>(size.width)});
      end = next;
    }
    bytes_ = end;
  }

  struct Place {
    int64_t offset = 0;
    int32_t height = 0, width = 0;
    size_t bytes() const { return static_cast<size_t>(3) * static_cast<size_t>(height) * static_cast<size_t>(width); }
    bool fits(const cv::Mat& picture) const {
      return picture.type() == CV_8UC3 && picture.rows == height && picture.cols == width;
    }
    // A view, without a copy.
    cv::Mat at(const uint8_t* memory) const { return {height, width, CV_8UC3, const_cast<uint8_t*>(memory) + offset}; }
  };

  int64_t count() const { return count_; }  // of all pictures
  int64_t kept() const { return static_cast<int64_t>(places_.size()); }
  int64_t bytes() const { return bytes_; }
  bool keeps(int64_t index) const { return index < kept(); }
  const Place& operator[](int64_t index) const { return places_[static_cast<size_t>(index)]; }
  std::string describe(const std::string& medium) const;

 private:
  // What reads several pixels at a time may read past the last one.
  static constexpr int64_t kSlack = 16, kAlignment = 64;
  static int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

  int64_t count_, bytes_ = 0;
  std::vector<Place> places_;
};

// What a process knows of a place.
enum PlaceState : uint8_t { kEmpty, kFilling, kReady, kHopeless };

}  // namespace yolo9
