#include <yolo9/train/image_weights.h>

#include <algorithm>
#include <numeric>

namespace yolo9 {

std::vector<double> image_weights(const std::vector<std::vector<int64_t>>& labels_per_image, int64_t classes,
                                  const std::vector<double>& class_maps) {
  std::vector<double> counts(static_cast<size_t>(classes), 0.0);
  for (const auto& labels : labels_per_image)
    for (const int64_t label : labels) counts[static_cast<size_t>(label)] += 1.0;
  std::vector<double> weight(counts.size());
  for (size_t c = 0; c < counts.size(); ++c) {
    // An absent class counts as one label: it must not turn into infinity.
    const double missed = 1.0 - (c < class_maps.size() ? class_maps[c] : 0.0);
    weight[c] = missed * missed / std::max(counts[c], 1.0);
  }
  const double mean =
      std::accumulate(weight.begin(), weight.end(), 0.0) / std::max<double>(1.0, static_cast<double>(classes));
  std::vector<double> out(labels_per_image.size(), 0.0);
  for (size_t i = 0; i < out.size(); ++i)
    for (const int64_t label : labels_per_image[i])
      out[i] += weight[static_cast<size_t>(label)] / (mean > 0 ? mean : 1.0);
  if (std::all_of(out.begin(), out.end(), [](double w) { return w <= 0; })) std::fill(out.begin(), out.end(), 1.0);
  return out;
}

std::vector<int64_t> draw_weighted(const std::vector<double>& weights, int64_t count, Random& random) {
  std::vector<double> cumulative(weights.size());
  std::partial_sum(weights.begin(), weights.end(), cumulative.begin());
  std::vector<int64_t> out;
  out.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const double at = random.uniform(0.0, cumulative.back());
    // upper_bound: a picture of weight zero has an empty interval and is never hit.
    const auto hit = std::upper_bound(cumulative.begin(), cumulative.end(), at);
    out.push_back(std::min<int64_t>(hit - cumulative.begin(), static_cast<int64_t>(weights.size()) - 1));
  }
  return out;
}

}  // namespace yolo9
