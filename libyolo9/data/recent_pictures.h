// Pictures that were decoded lately. Mosaics take their pictures from a stretch of the epoch's order (see
// epoch_order.h), so that each is needed several times within a short time and is decoded once.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>

#include <opencv2/core.hpp>

namespace yolo9 {

// Safe for many threads at once.
class RecentPictures {
 public:
  explicit RecentPictures(int64_t budget_bytes) : budget_bytes_(budget_bytes) {}

  // The picture, from here or from `make`, which is called at most once at a time for an index; what it throws comes
  // out and nothing is kept. The longest unused are dropped beyond the budget, even while others still hold them.
  cv::Mat get(int64_t index, const std::function<cv::Mat()>& make);

  int64_t bytes() const;

 private:
  struct Entry {
    std::mutex mutex;  // held while the picture is made
    cv::Mat picture;
    int64_t bytes = 0;
    bool listed = true;
    std::list<int64_t>::iterator place;
  };
  void drop_oldest();  // with mutex_ held

  int64_t budget_bytes_;
  mutable std::mutex mutex_;  // guards what follows; never taken before an entry's
  int64_t bytes_ = 0;
  std::list<int64_t> by_use_;  // the latest first
  std::unordered_map<int64_t, std::shared_ptr<Entry>> entries_;
};

}  // namespace yolo9
