#include <yolo9/eval/metrics.h>

#include <cmath>
#include <map>
#include <numeric>

namespace yolo9 {

namespace {

constexpr double kEps = 1e-16;  // the reference's guard against empty denominators

// A CPU float32 [n, width] view of a detection or label table.
torch::Tensor as_table(const torch::Tensor& table, int64_t width) {
  if (!table.defined() || table.size(0) == 0) return torch::zeros({0, width}, torch::kFloat32);
  TORCH_CHECK(table.dim() == 2 && table.size(1) >= width, "[metrics] expected a table of width ", width, ", got ",
              table.sizes());
  return table.to(torch::kCPU, torch::kFloat32).contiguous();
}

// Corner boxes at a and b; float32 and the 1e-7 as in the reference.
float box_iou(const float* a, const float* b) {
  const float width = std::max(0.0f, std::min(a[2], b[2]) - std::max(a[0], b[0]));
  const float height = std::max(0.0f, std::min(a[3], b[3]) - std::max(a[1], b[1]));
  const float inter = width * height;
  return inter / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - inter + 1e-7f);
}

double mean_of(const std::vector<double>& values) {
  return values.empty() ? 0.0 : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::vector<double> to_doubles(const torch::Tensor& tensor) {
  const torch::Tensor t = tensor.to(torch::kCPU, torch::kFloat64).contiguous().flatten();
  return {t.data_ptr<double>(), t.data_ptr<double>() + t.numel()};
}

}  // namespace

float iou_level(int64_t k) {
  static const torch::Tensor levels = torch::linspace(0.5, 0.95, kIouLevels, torch::kFloat32);
  return levels.data_ptr<float>()[k];
}

torch::Tensor match_detections(const torch::Tensor& detections, const torch::Tensor& labels) {
  const torch::Tensor det = as_table(detections, 6), lab = as_table(labels, 5);
  const int64_t n = det.size(0), m = lab.size(0);
  torch::Tensor correct = torch::zeros({n, kIouLevels}, torch::kBool);
  bool* out = correct.data_ptr<bool>();
  const float* d = det.data_ptr<float>();
  const float* l = lab.data_ptr<float>();
  const int64_t det_width = det.size(1), lab_width = lab.size(1);
  std::vector<int64_t> taken(static_cast<size_t>(m), 0);  // bit k: label is taken at threshold k
  for (int64_t i = 0; i < n; ++i) {
    const float* box = d + i * det_width;
    float best = -1;
    int64_t best_label = -1;
    for (int64_t j = 0; j < m; ++j) {
      const float* label = l + j * lab_width;
      if (label[0] != box[5]) continue;
      const float iou = box_iou(label + 1, box);
      if (iou >= best) {  // of equal overlaps the last label
        best = iou;
        best_label = j;
      }
    }
    if (best_label < 0) continue;
    int64_t& levels = taken[static_cast<size_t>(best_label)];
    for (int64_t k = 0; k < kIouLevels && best >= iou_level(k); ++k) {
      if (levels >> k & 1) continue;
      levels |= int64_t{1} << k;
      out[i * kIouLevels + k] = true;
    }
  }
  return correct;
}

double interpolate(double x, const std::vector<double>& xs, const std::vector<double>& ys, double left) {
  if (xs.empty() || x < xs.front()) return left;
  const auto above = std::upper_bound(xs.begin(), xs.end(), x);
  if (above == xs.end()) return ys.back();
  const auto j = static_cast<size_t>(above - xs.begin()) - 1;
  return ys[j] + (ys[j + 1] - ys[j]) / (xs[j + 1] - xs[j]) * (x - xs[j]);
}

PrecisionRecall compute_ap(const std::vector<double>& recall, const std::vector<double>& precision) {
  PrecisionRecall result;
  result.recall.push_back(0.0);
  result.recall.insert(result.recall.end(), recall.begin(), recall.end());
  result.recall.push_back(1.0);
  auto& envelope = result.precision_envelope;
  envelope.push_back(1.0);
  envelope.insert(envelope.end(), precision.begin(), precision.end());
  envelope.push_back(0.0);
  for (size_t i = envelope.size() - 1; i > 0; --i) envelope[i - 1] = std::max(envelope[i - 1], envelope[i]);
  constexpr int kPoints = 101;
  double previous = 0;
  for (int i = 0; i < kPoints; ++i) {
    const double value = interpolate(i / 100.0, result.recall, envelope, envelope.front());
    if (i > 0) result.ap += (value + previous) / 2 / (kPoints - 1);
    previous = value;
  }
  return result;
}

std::vector<double> smooth(const std::vector<double>& values, double fraction) {
  if (values.empty()) return {};
  const auto n = static_cast<int64_t>(values.size());
  const auto width = static_cast<int64_t>(std::nearbyint(static_cast<double>(n) * fraction * 2)) / 2 + 1;
  const int64_t odd = width + (width % 2 == 0 ? 1 : 0);
  std::vector<double> result;
  for (int64_t i = 0; i < n; ++i) {
    double sum = 0;
    for (int64_t k = i - odd / 2; k <= i + odd / 2; ++k) {
      sum += values[static_cast<size_t>(std::clamp<int64_t>(k, 0, n - 1))] / static_cast<double>(odd);
    }
    result.push_back(sum);
  }
  return result;
}

double ApResult::ap5095(size_t i) const { return mean_of(ap[i]); }
double ApResult::mean_precision() const { return mean_of(precision); }
double ApResult::mean_recall() const { return mean_of(recall); }

double ApResult::map50() const {
  std::vector<double> values;
  for (size_t i = 0; i < ap.size(); ++i) values.push_back(ap50(i));
  return mean_of(values);
}

double ApResult::map5095() const {
  std::vector<double> values;
  for (size_t i = 0; i < ap.size(); ++i) values.push_back(ap5095(i));
  return mean_of(values);
}

namespace {

// One class: rows of `correct` picked by `order` (descending confidence).
void add_class(ApResult& result, const std::vector<int64_t>& order, const bool* correct,
               const std::vector<double>& confidence, int64_t labels) {
  std::vector<double> ap(kIouLevels, 0.0);
  Curve p(kCurvePoints, 0.0), r(kCurvePoints, 0.0), pr(kCurvePoints, 0.0);
  if (!order.empty()) {
    std::vector<double> negated;  // ascending, for interpolate
    for (const int64_t row : order) negated.push_back(-confidence[static_cast<size_t>(row)]);
    for (int64_t k = 0; k < kIouLevels; ++k) {
      std::vector<double> recall, precision;
      double hits = 0;
      for (size_t i = 0; i < order.size(); ++i) {
        hits += correct[order[i] * kIouLevels + k] ? 1 : 0;
        recall.push_back(hits / (static_cast<double>(labels) + kEps));
        precision.push_back(hits / static_cast<double>(i + 1));
      }
      const PrecisionRecall area = compute_ap(recall, precision);
      ap[static_cast<size_t>(k)] = area.ap;
      if (k > 0) continue;
      for (int64_t x = 0; x < kCurvePoints; ++x) {
        const double at = static_cast<double>(x) / (kCurvePoints - 1);
        const auto slot = static_cast<size_t>(x);
        r[slot] = interpolate(-at, negated, recall, 0.0);
        p[slot] = interpolate(-at, negated, precision, 1.0);
        pr[slot] = interpolate(at, area.recall, area.precision_envelope, 1.0);
      }
    }
  }
  Curve f1(kCurvePoints);
  for (size_t x = 0; x < f1.size(); ++x) f1[x] = 2 * p[x] * r[x] / (p[x] + r[x] + kEps);
  result.ap.push_back(std::move(ap));
  result.precision_curve.push_back(std::move(p));
  result.recall_curve.push_back(std::move(r));
  result.f1_curve.push_back(std::move(f1));
  result.pr_curve.push_back(std::move(pr));
}

void read_at_best_f1(ApResult& result) {
  Curve mean(kCurvePoints, 0.0);
  for (const Curve& f1 : result.f1_curve) {
    for (size_t x = 0; x < mean.size(); ++x) mean[x] += f1[x] / static_cast<double>(result.f1_curve.size());
  }
  const Curve smoothed = smooth(mean, 0.1);
  const auto best = static_cast<size_t>(std::max_element(smoothed.begin(), smoothed.end()) - smoothed.begin());
  result.best_confidence = static_cast<double>(best) / (kCurvePoints - 1);
  for (size_t i = 0; i < result.classes.size(); ++i) {
    const double p = result.precision_curve[i][best], r = result.recall_curve[i][best];
    const double tp = std::nearbyint(r * static_cast<double>(result.label_counts[i]));
    result.precision.push_back(p);
    result.recall.push_back(r);
    result.f1.push_back(result.f1_curve[i][best]);
    result.tp.push_back(tp);
    result.fp.push_back(std::nearbyint(tp / (p + kEps) - tp));
  }
}

}  // namespace

ApResult ap_per_class(const torch::Tensor& correct, const torch::Tensor& confidence,
                      const torch::Tensor& predicted_class, const torch::Tensor& target_class) {
  TORCH_CHECK(correct.size(0) == confidence.numel() && correct.size(0) == predicted_class.numel(),
              "[ap_per_class] ", correct.size(0), " rows of matches for ", confidence.numel(), " confidences and ",
              predicted_class.numel(), " classes");
  ApResult result;
  std::map<int64_t, int64_t> labels;  // class -> count, ascending
  for (const double c : to_doubles(target_class)) ++labels[static_cast<int64_t>(c)];
  const std::vector<double> scores = to_doubles(confidence), predicted = to_doubles(predicted_class);
  const torch::Tensor hits = correct.to(torch::kCPU, torch::kBool).contiguous();
  std::vector<int64_t> order(scores.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return scores[static_cast<size_t>(a)] > scores[static_cast<size_t>(b)];
  });
  std::map<int64_t, std::vector<int64_t>> rows;
  for (const int64_t row : order) rows[static_cast<int64_t>(predicted[static_cast<size_t>(row)])].push_back(row);
  for (const auto& [label, count] : labels) {
    result.classes.push_back(label);
    result.label_counts.push_back(count);
    add_class(result, rows[label], hits.numel() > 0 ? hits.data_ptr<bool>() : nullptr, scores, count);
  }
  if (!labels.empty()) read_at_best_f1(result);
  return result;
}

ConfusionMatrix::ConfusionMatrix(int64_t classes, double confidence, double iou, bool count_all)
    : classes_(classes), confidence_(confidence), iou_(iou), count_all_(count_all),
      cells_(static_cast<size_t>((classes + 1) * (classes + 1)), 0.0) {}

double ConfusionMatrix::at(int64_t predicted, int64_t actual) const {
  return cells_[static_cast<size_t>(predicted * (classes_ + 1) + actual)];
}

void ConfusionMatrix::add(const torch::Tensor& detections, const torch::Tensor& labels) {
  const torch::Tensor det = as_table(detections, 6), lab = as_table(labels, 5);
  const auto conf = static_cast<float>(confidence_), threshold = static_cast<float>(iou_);
  std::vector<const float*> boxes, truths;
  for (int64_t i = 0; i < det.size(0); ++i) {
    const float* row = det.data_ptr<float>() + i * det.size(1);
    if (row[4] > conf) boxes.push_back(row);
  }
  for (int64_t j = 0; j < lab.size(0); ++j) truths.push_back(lab.data_ptr<float>() + j * lab.size(1));

  struct Pair {
    size_t label, detection;
    float iou;
  };
  std::vector<Pair> pairs;
  for (size_t j = 0; j < truths.size(); ++j) {
    for (size_t i = 0; i < boxes.size(); ++i) {
      const float iou = box_iou(truths[j] + 1, boxes[i]);
      if (iou > threshold) pairs.push_back({j, i, iou});
    }
  }
  // First every detection keeps its best label, then every label its best detection.
  std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) { return a.iou > b.iou; });
  constexpr auto kNone = static_cast<size_t>(-1);
  std::vector<bool> seen(boxes.size(), false), matched(boxes.size(), false);
  std::vector<size_t> partner(truths.size(), kNone);
  for (const Pair& pair : pairs) {
    if (seen[pair.detection]) continue;
    seen[pair.detection] = true;
    if (partner[pair.label] != kNone) continue;
    partner[pair.label] = pair.detection;
    matched[pair.detection] = true;
  }
  const auto count = [&](int64_t predicted, int64_t actual) {
    TORCH_CHECK(predicted >= 0 && predicted <= classes_ && actual >= 0 && actual <= classes_,
                "[ConfusionMatrix] class out of range: predicted ", predicted, ", true ", actual);
    cells_[static_cast<size_t>(predicted * (classes_ + 1) + actual)] += 1;
  };
  for (size_t j = 0; j < truths.size(); ++j) {
    const auto actual = static_cast<int64_t>(truths[j][0]);
    count(partner[j] == kNone ? classes_ : static_cast<int64_t>(boxes[partner[j]][5]), actual);
  }
  if (!count_all_ && pairs.empty()) return;
  for (size_t i = 0; i < boxes.size(); ++i) {
    if (!matched[i]) count(static_cast<int64_t>(boxes[i][5]), classes_);
  }
}

std::vector<std::vector<double>> ConfusionMatrix::rows() const {
  std::vector<std::vector<double>> result;
  for (int64_t p = 0; p <= classes_; ++p) {
    result.emplace_back();
    for (int64_t a = 0; a <= classes_; ++a) result.back().push_back(at(p, a));
  }
  return result;
}

std::vector<double> ConfusionMatrix::true_positives() const {
  std::vector<double> result;
  for (int64_t c = 0; c < classes_; ++c) result.push_back(at(c, c));
  return result;
}

std::vector<double> ConfusionMatrix::false_positives() const {
  std::vector<double> result;
  for (int64_t c = 0; c < classes_; ++c) {
    double sum = 0;
    for (int64_t a = 0; a <= classes_; ++a) sum += at(c, a);
    result.push_back(sum - at(c, c));
  }
  return result;
}

}  // namespace yolo9
