// The order of an epoch, and which pictures are near one another in it.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <yolo9/core/random.h>

namespace yolo9 {

// The pictures of a mosaic are drawn from those within kReach places of its first one in the epoch's order. That order
// is itself drawn anew for every epoch, so over the epochs every picture meets every other; within one, a picture is
// needed only during a short time.
class EpochOrder {
 public:
  static constexpr int64_t kReach = 64;

  EpochOrder(int64_t count, uint64_t seed, int64_t epoch);
  int64_t count() const { return static_cast<int64_t>(order_.size()); }
  // A picture near `index`, which may be `index` itself.
  int64_t draw_near(int64_t index, Random& random) const;

 private:
  std::vector<int32_t> order_, place_;  // each the inverse of the other
};

// Makes the orders of the epochs that are asked for, and keeps the latest two: workers may still be at the last samples
// of one epoch when the next begins.
class EpochOrders {
 public:
  EpochOrders(int64_t count, uint64_t seed) : count_(count), seed_(seed) {}
  std::shared_ptr<const EpochOrder> at(int64_t epoch) const;

 private:
  struct Kept {
    int64_t epoch = -1;
    std::shared_ptr<const EpochOrder> order;
  };
  int64_t count_;
  uint64_t seed_;
  mutable std::mutex mutex_;
  mutable Kept latest_, before_;
};

}  // namespace yolo9
