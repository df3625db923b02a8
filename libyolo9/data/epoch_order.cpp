#include <yolo9/data/epoch_order.h>

#include <limits>

#include <c10/util/Exception.h>
#include <yolo9/data/sampling.h>

namespace yolo9 {

EpochOrder::EpochOrder(int64_t count, uint64_t seed, int64_t epoch) {
  TORCH_CHECK(count <= std::numeric_limits<int32_t>::max(), "[epoch_order] ", count, " pictures");
  const std::vector<int64_t> order = shuffled_order(count, seed, epoch);
  order_.assign(order.begin(), order.end());
  place_.resize(order_.size());
  for (size_t i = 0; i < order_.size(); ++i) place_[static_cast<size_t>(order_[i])] = static_cast<int32_t>(i);
}

int64_t EpochOrder::draw_near(int64_t index, Random& random) const {
  const int64_t window = 2 * kReach + 1;
  if (count() <= window) return random.integer(count());
  const int64_t place = place_[static_cast<size_t>(index)] + random.integer(window) - kReach;
  return order_[static_cast<size_t>((place + count()) % count())];
}

std::shared_ptr<const EpochOrder> EpochOrders::at(int64_t epoch) const {
  const std::lock_guard lock(mutex_);
  for (const Kept& kept : {latest_, before_}) {
    if (kept.order && kept.epoch == epoch) return kept.order;
  }
  before_ = latest_;
  latest_ = {epoch, std::make_shared<const EpochOrder>(count_, seed_, epoch)};
  return latest_.order;
}

}  // namespace yolo9
