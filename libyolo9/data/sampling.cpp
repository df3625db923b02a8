#include <yolo9/data/sampling.h>

#include <algorithm>
#include <numeric>

namespace yolo9 {

std::vector<int64_t> shuffled_order(int64_t count, uint64_t seed, int64_t epoch) {
  constexpr uint64_t kOrderStream = 0x6F72646572;  // "order": apart from the samples' own streams
  Random random{seed, kOrderStream, static_cast<uint64_t>(epoch)};
  return random.permutation(count);
}

std::vector<double> class_weights(const std::vector<int64_t>& class_counts) {
  std::vector<double> weights;
  for (const int64_t count : class_counts) weights.push_back(1.0 / static_cast<double>(std::max<int64_t>(count, 1)));
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights) weight /= sum;
  return weights;
}

std::vector<double> image_weights(const Dataset& dataset, const std::vector<double>& class_weights) {
  std::vector<double> weights(static_cast<size_t>(dataset.size()), 0.0);
  for (int64_t i = 0; i < dataset.size(); ++i) {
    for (const LabelRow& row : dataset.labels(i)) {
      weights[static_cast<size_t>(i)] += class_weights.at(static_cast<size_t>(row.class_index));
    }
  }
  return weights;
}

std::vector<int64_t> weighted_order(const std::vector<double>& weights, int64_t count, Random& random) {
  TORCH_CHECK(!weights.empty(), "[weighted_order] no weights");
  std::vector<double> cumulated(weights.size());
  std::partial_sum(weights.begin(), weights.end(), cumulated.begin());
  const double total = cumulated.back();
  std::vector<int64_t> order;
  for (int64_t i = 0; i < count; ++i) {
    if (total <= 0) {
      order.push_back(random.integer(static_cast<int64_t>(weights.size())));
      continue;
    }
    // The first entry above the draw: an entry of weight 0 equals the one before and is never first.
    const auto found = std::upper_bound(cumulated.begin(), cumulated.end(), random.uniform() * total);
    order.push_back(std::min<int64_t>(found - cumulated.begin(), static_cast<int64_t>(weights.size()) - 1));
  }
  return order;
}

}  // namespace yolo9
