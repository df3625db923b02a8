#include <yolo9/eval/coco.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <unordered_map>

#include <ATen/Parallel.h>

#include <yolo9/core/error.h>
#include <yolo9/core/log.h>

namespace yolo9 {

namespace {

constexpr size_t kThresholds = 10, kRecalls = 101, kAreas = 4, kLimits = 3;
constexpr std::array<size_t, kLimits> kMaxDetections = {1, 10, 100};
constexpr std::array<std::pair<double, double>, kAreas> kAreaRanges = {
    {{0, 1e10}, {0, 32 * 32}, {32 * 32, 96 * 96}, {96 * 96, 1e10}}};

// numpy.linspace(start, stop, count)
std::vector<double> linspace(double start, double stop, size_t count) {
  const double step = (stop - start) / static_cast<double>(count - 1);
  std::vector<double> values;
  for (size_t i = 0; i < count; ++i) values.push_back(static_cast<double>(i) * step + start);
  values.back() = stop;
  return values;
}

// What one detection came to for one range of areas: bit t of `matched` and `ignored` speaks of threshold t.
struct Outcome {
  double score;
  uint32_t rank;  // among its image's detections of the category, by score
  std::array<uint16_t, kAreas> matched{}, ignored{};
};

struct CategoryTables {
  std::array<double, kAreas> truth_count{};  // not ignored
  // Means over what was measured, -1 where there is no truth.
  std::array<std::array<double, kThresholds>, kAreas> precision{};                     // at 100 detections
  std::array<std::array<std::array<double, kThresholds>, kLimits>, kAreas> recall{};
};

double overlap(const CocoBox& detection, const CocoBox& truth, bool crowd) {
  const double width =
      std::min(detection.x + detection.width, truth.x + truth.width) - std::max(detection.x, truth.x);
  const double height =
      std::min(detection.y + detection.height, truth.y + truth.height) - std::max(detection.y, truth.y);
  if (width <= 0 || height <= 0) return 0;
  const double inter = width * height, own = detection.width * detection.height;
  return inter / (crowd ? own : own + truth.width * truth.height - inter);
}

bool outside(double area, size_t range) {
  return area < kAreaRanges[range].first || area > kAreaRanges[range].second;
}

// Greedy matching of one image's detections (by descending score) to its truth, for one range of areas.
// `overlaps` is [detections][truth in the order given].
void match_image(const std::vector<const CocoAnnotation*>& truth, const std::vector<const CocoDetection*>& detections,
                 const std::vector<double>& overlaps, size_t range, const std::vector<double>& thresholds,
                 Outcome* outcomes, double& truth_count) {
  const size_t count = truth.size();
  std::vector<size_t> order(count);  // ignored truth last
  std::iota(order.begin(), order.end(), size_t{0});
  const auto is_ignored = [&](size_t g) { return truth[g]->crowd || outside(truth[g]->area, range); };
  std::stable_partition(order.begin(), order.end(), [&](size_t g) { return !is_ignored(g); });
  size_t real = 0;
  while (real < count && !is_ignored(order[real])) ++real;
  truth_count += static_cast<double>(real);

  std::vector<uint16_t> taken(count, 0);
  for (size_t d = 0; d < detections.size(); ++d) {
    const double* row = overlaps.data() + d * count;
    const bool other_size = outside(detections[d]->box.width * detections[d]->box.height, range);
    for (size_t t = 0; t < kThresholds; ++t) {
      const auto bit = static_cast<uint16_t>(1u << t);
      double best = std::min(thresholds[t], 1 - 1e-10);
      size_t match = count;
      for (size_t k = 0; k < count; ++k) {
        const size_t g = order[k];
        if (k >= real && match < count && !is_ignored(match)) break;  // real truth is preferred to ignored
        if ((taken[g] & bit) && !truth[g]->crowd) continue;
        if (row[g] < best) continue;
        best = row[g];
        match = g;
      }
      const bool counts = match < count && truth[match]->id != 0;
      if (match < count) {
        taken[match] |= bit;
        if (is_ignored(match)) outcomes[d].ignored[range] |= bit;
      }
      if (counts) outcomes[d].matched[range] |= bit;
      if (!counts && other_size) outcomes[d].ignored[range] |= bit;
    }
  }
}

// Precision at the recall points and the final recall of one curve; `outcomes` by descending score.
std::pair<double, double> measure(const std::vector<Outcome>& outcomes, size_t range, size_t threshold, size_t limit,
                                  double truth_count, const std::vector<double>& recall_points) {
  std::vector<double> recall, precision;
  double tp = 0, fp = 0;
  for (const Outcome& outcome : outcomes) {
    if (outcome.rank >= limit) continue;
    const bool ignored = outcome.ignored[range] >> threshold & 1, matched = outcome.matched[range] >> threshold & 1;
    if (!ignored) (matched ? tp : fp) += 1;
    recall.push_back(tp / truth_count);
    precision.push_back(tp / (fp + tp + std::numeric_limits<double>::epsilon()));
  }
  for (size_t i = precision.size(); i-- > 1;) precision[i - 1] = std::max(precision[i - 1], precision[i]);
  double sum = 0;
  size_t at = 0;
  for (const double point : recall_points) {
    while (at < recall.size() && recall[at] < point) ++at;
    if (at == recall.size()) break;
    sum += precision[at];
  }
  return {sum / kRecalls, recall.empty() ? 0.0 : recall.back()};
}

// Indices of one category's boxes, in order of image position, then of appearance.
struct CategoryMembers {
  std::vector<std::pair<uint32_t, uint32_t>> truth, detections;  // (image position, index)
};

CategoryTables evaluate_category(CategoryMembers& members, const CocoTruth& truth,
                                 const std::vector<CocoDetection>& detections) {
  const std::vector<double> thresholds = linspace(0.5, 0.95, kThresholds), points = linspace(0, 1, kRecalls);
  const auto by_image = [](const auto& a, const auto& b) { return a.first < b.first; };
  std::stable_sort(members.truth.begin(), members.truth.end(), by_image);
  std::sort(members.detections.begin(), members.detections.end(), [&](const auto& a, const auto& b) {
    if (a.first != b.first) return a.first < b.first;
    if (detections[a.second].score != detections[b.second].score) {
      return detections[a.second].score > detections[b.second].score;
    }
    return a.second < b.second;
  });

  CategoryTables tables;
  std::vector<Outcome> outcomes;
  std::vector<const CocoAnnotation*> image_truth;
  std::vector<const CocoDetection*> image_detections;
  std::vector<double> overlaps;
  size_t g = 0, d = 0;
  while (g < members.truth.size() || d < members.detections.size()) {
    uint32_t image = std::numeric_limits<uint32_t>::max();
    if (g < members.truth.size()) image = members.truth[g].first;
    if (d < members.detections.size()) image = std::min(image, members.detections[d].first);
    image_truth.clear();
    image_detections.clear();
    for (; g < members.truth.size() && members.truth[g].first == image; ++g) {
      image_truth.push_back(&truth.annotations[members.truth[g].second]);
    }
    for (; d < members.detections.size() && members.detections[d].first == image; ++d) {
      if (image_detections.size() < kMaxDetections.back()) {
        image_detections.push_back(&detections[members.detections[d].second]);
      }
    }
    overlaps.clear();
    const size_t first = outcomes.size();
    for (const CocoDetection* detection : image_detections) {
      outcomes.push_back({detection->score, static_cast<uint32_t>(outcomes.size() - first)});
      for (const CocoAnnotation* t : image_truth) overlaps.push_back(overlap(detection->box, t->box, t->crowd));
    }
    for (size_t a = 0; a < kAreas; ++a) {
      match_image(image_truth, image_detections, overlaps, a, thresholds, outcomes.data() + first,
                  tables.truth_count[a]);
    }
  }
  std::stable_sort(outcomes.begin(), outcomes.end(),
                   [](const Outcome& a, const Outcome& b) { return a.score > b.score; });
  for (size_t a = 0; a < kAreas; ++a) {
    for (size_t m = 0; m < kLimits; ++m) {
      if (a > 0 && m + 1 < kLimits) continue;  // the summary asks for sizes at 100 detections only
      for (size_t t = 0; t < kThresholds; ++t) {
        if (tables.truth_count[a] == 0) continue;
        const auto [precision, recall] = measure(outcomes, a, t, kMaxDetections[m], tables.truth_count[a], points);
        if (m + 1 == kLimits) tables.precision[a][t] = precision;
        tables.recall[a][m][t] = recall;
      }
    }
  }
  return tables;
}

// Mean over categories that have truth, and over thresholds first..last.
class Mean {
 public:
  template <class Values>
  void add(const Values& values, size_t first = 0, size_t last = kThresholds - 1) {
    for (size_t t = first; t <= last; ++t) sum_ += values[t];
    count_ += last - first + 1;
  }
  double value() const { return count_ == 0 ? -1.0 : sum_ / static_cast<double>(count_); }

 private:
  double sum_ = 0;
  size_t count_ = 0;
};

CocoSummary summarize(const std::vector<CategoryTables>& tables) {
  constexpr size_t kAt75 = 5;
  std::array<Mean, kAreas> ap, ar;
  std::array<Mean, kLimits> ar_at;
  Mean ap50, ap75;
  for (const CategoryTables& category : tables) {
    for (size_t a = 0; a < kAreas; ++a) {
      if (category.truth_count[a] == 0) continue;
      ap[a].add(category.precision[a]);
      ar[a].add(category.recall[a].back());
    }
    if (category.truth_count[0] == 0) continue;
    ap50.add(category.precision[0], 0, 0);
    ap75.add(category.precision[0], kAt75, kAt75);
    for (size_t m = 0; m < kLimits; ++m) ar_at[m].add(category.recall[0][m]);
  }
  CocoSummary s;
  s.ap = ap[0].value(), s.ap50 = ap50.value(), s.ap75 = ap75.value();
  s.ap_small = ap[1].value(), s.ap_medium = ap[2].value(), s.ap_large = ap[3].value();
  s.ar1 = ar_at[0].value(), s.ar10 = ar_at[1].value(), s.ar100 = ar_at[2].value();
  s.ar_small = ar[1].value(), s.ar_medium = ar[2].value(), s.ar_large = ar[3].value();
  return s;
}

// Positions of sorted unique ids.
std::unordered_map<int64_t, uint32_t> positions_of(std::vector<int64_t> ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  std::unordered_map<int64_t, uint32_t> result;
  for (const int64_t id : ids) result.emplace(id, static_cast<uint32_t>(result.size()));
  return result;
}

std::vector<CategoryMembers> sort_into_categories(const CocoTruth& truth, const std::vector<CocoDetection>& detections,
                                                  const std::unordered_map<int64_t, uint32_t>& categories) {
  const auto images = positions_of(truth.images);
  std::vector<CategoryMembers> members(categories.size());
  bool zero_id = false;
  for (size_t i = 0; i < truth.annotations.size(); ++i) {
    const auto image = images.find(truth.annotations[i].image_id);
    const auto category = categories.find(truth.annotations[i].category_id);
    if (image == images.end() || category == categories.end()) continue;
    zero_id |= truth.annotations[i].id == 0;
    members[category->second].truth.emplace_back(image->second, static_cast<uint32_t>(i));
  }
  if (zero_id) log_warn("an annotation has the id 0: COCO's evaluation never counts it as found; number them from 1");
  size_t unknown = 0;
  for (size_t i = 0; i < detections.size(); ++i) {
    const auto image = images.find(detections[i].image_id);
    if (image == images.end()) {
      throw Error(ErrorKind::Data,
                  "detection " + std::to_string(i) + " is of image " + std::to_string(detections[i].image_id) +
                      ", which the annotations do not list", "", "use predictions made on the same images");
    }
    const auto category = categories.find(detections[i].category_id);
    if (category == categories.end()) {
      ++unknown;
      continue;
    }
    members[category->second].detections.emplace_back(image->second, static_cast<uint32_t>(i));
  }
  if (unknown > 0) log_warn(std::to_string(unknown) + " detections of categories that the annotations do not list");
  return members;
}

}  // namespace

std::vector<std::pair<std::string, double>> CocoSummary::figures() const {
  return {{"AP", ap},   {"AP50", ap50}, {"AP75", ap75},   {"APs", ap_small}, {"APm", ap_medium}, {"APl", ap_large},
          {"AR1", ar1}, {"AR10", ar10}, {"AR100", ar100}, {"ARs", ar_small}, {"ARm", ar_medium}, {"ARl", ar_large}};
}

CocoResult evaluate_coco(const CocoTruth& truth, const std::vector<CocoDetection>& detections) {
  std::vector<int64_t> ids;
  for (const auto& category : truth.categories) ids.push_back(category.first);
  const auto categories = positions_of(ids);
  auto members = sort_into_categories(truth, detections, categories);
  std::vector<CategoryTables> tables(members.size());
  at::parallel_for(0, static_cast<int64_t>(members.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const auto slot = static_cast<size_t>(k);
      tables[slot] = evaluate_category(members[slot], truth, detections);
    }
  });
  CocoResult result;
  result.summary = summarize(tables);
  result.categories.resize(tables.size());
  for (const auto& [id, name] : truth.categories) {
    const size_t slot = categories.at(id);
    const CategoryTables& table = tables[slot];
    CocoCategoryResult& category = result.categories[slot];
    category.id = id;
    category.name = name;
    if (table.truth_count[0] == 0) continue;
    Mean ap, ap50, ar;
    ap.add(table.precision[0]);
    ap50.add(table.precision[0], 0, 0);
    ar.add(table.recall[0].back());
    category.ap = ap.value(), category.ap50 = ap50.value(), category.ar = ar.value();
  }
  return result;
}

}  // namespace yolo9
