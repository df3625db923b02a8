// Average precision, precision/recall/F1 curves and the confusion matrix, as users of the official trainer know them.
#pragma once

#include <cstdint>
#include <vector>

#include <torch/types.h>

namespace yolo9 {

constexpr int64_t kIouLevels = 10;     // IoU thresholds 0.50, 0.55, ... 0.95
constexpr int64_t kCurvePoints = 1000;  // confidences 0 .. 1 at which curves are read

// Number k of the ten thresholds, in float32 as the reference compares them.
float iou_level(int64_t k);

// For each detection, at which thresholds it is correct: bool [n, 10].
// detections: float [n, 6] x1, y1, x2, y2, score, class by descending score; labels: float [m, 5]
// class, x1, y1, x2, y2 (same pixels). Per threshold each detection claims its best label of the same class, and of
// several claims on a label the detection with the lowest index wins, not the one with the best overlap.
torch::Tensor match_detections(const torch::Tensor& detections, const torch::Tensor& labels);

struct PrecisionRecall {
  double ap = 0;
  std::vector<double> precision_envelope, recall;  // with sentinels (0, 1) and (1, 0)
};

// Area under the precision envelope, by the trapezoid rule over 101 recall points.
PrecisionRecall compute_ap(const std::vector<double>& recall, const std::vector<double>& precision);

// Box filter of a fraction of the length (an odd number of points), edge-padded.
std::vector<double> smooth(const std::vector<double>& values, double fraction = 0.05);

// Linear interpolation of the points (xs ascending, ys) at x; `left` below the first point, the last y above the last.
double interpolate(double x, const std::vector<double>& xs, const std::vector<double>& ys, double left);

using Curve = std::vector<double>;  // kCurvePoints values over confidence (or recall) 0 .. 1

struct ApResult {
  std::vector<int64_t> classes;  // those with labels, ascending; everything below is in this order
  std::vector<int64_t> label_counts;
  std::vector<double> tp, fp, precision, recall, f1;  // all read at best_confidence
  std::vector<std::vector<double>> ap;                // ten thresholds each
  std::vector<Curve> precision_curve, recall_curve, f1_curve;  // over confidence, at IoU 0.5
  std::vector<Curve> pr_curve;                                 // precision over recall, at IoU 0.5
  double best_confidence = 0;  // where the smoothed mean F1 is greatest

  double ap50(size_t i) const { return ap[i][0]; }
  double ap5095(size_t i) const;
  double mean_precision() const;
  double mean_recall() const;
  double map50() const;
  double map5095() const;
  double fitness() const { return 0.1 * map50() + 0.9 * map5095(); }
};

// correct: bool [n, 10]; confidence, predicted_class: float [n]; target_class: float [m]. Any order.
// Classes with labels but without detections get zeros; classes without labels are absent.
ApResult ap_per_class(const torch::Tensor& correct, const torch::Tensor& confidence,
                      const torch::Tensor& predicted_class, const torch::Tensor& target_class);

// matrix[predicted][true], where index `classes` stands for the background on both sides.
class ConfusionMatrix {
 public:
  // count_all: detections of an image without any match, or without labels, are false positives like all others.
  // The official trainer leaves them out; false reproduces its numbers.
  explicit ConfusionMatrix(int64_t classes, double confidence = 0.25, double iou = 0.45, bool count_all = true);

  // Same arguments as match_detections. Pairs are matched greedily by overlap, whatever their classes.
  void add(const torch::Tensor& detections, const torch::Tensor& labels);

  int64_t classes() const { return classes_; }
  double at(int64_t predicted, int64_t actual) const;
  std::vector<std::vector<double>> rows() const;
  std::vector<double> true_positives() const;   // per class, without the background
  std::vector<double> false_positives() const;

 private:
  int64_t classes_;
  double confidence_, iou_;
  bool count_all_;
  std::vector<double> cells_;  // (classes + 1)^2, row = predicted
};

}  // namespace yolo9
