// The pictures of a run. All take plain numbers and write a file; Error(Usage) if that fails. Values that are not
// finite leave gaps.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <yolo9/monitor/memory_log.h>
#include <yolo9/monitor/results.h>

namespace yolo9 {

// results.png: two rows of five panels, losses and metrics over epochs, with a smoothed line.
void plot_results(const std::vector<ResultsRow>& rows, const std::string& path);

// memory.png: budget, allocated, reserved, peak and predicted memory, micro-batch and rung over steps.
void plot_memory(const std::vector<MemoryRow>& rows, const std::string& path);

// One curve a class and their mean, both axes 0..1.
struct CurvePlot {
  std::string title, x_label, y_label;
  std::vector<double> x;
  std::vector<std::vector<double>> curves;  // one a class
  std::vector<std::string> names;           // legend of each curve, may carry a value
  std::vector<double> mean;
  std::string mean_name;
};
void plot_curves(const CurvePlot& plot, const std::string& path);

// The four plots of an evaluation in `folder`: PR_curve.png, P_curve.png, R_curve.png, F1_curve.png.
// Curves have as many points as they like, evenly over 0..1; one a class.
struct EvaluationCurves {
  std::vector<std::string> names;
  std::vector<double> ap50;  // of each class
  std::vector<std::vector<double>> precision, recall, f1, pr;
};
void plot_evaluation_curves(const EvaluationCurves& curves, const std::string& folder);

// confusion_matrix.png: matrix[predicted][true], the last row and column the background; each column divided by its
// sum. `names` has one entry less than the matrix.
void plot_confusion_matrix(const std::vector<std::vector<double>>& matrix, const std::vector<std::string>& names,
                           const std::string& path);

// labels.jpg: instances a class, box outlines on one another, centres and sizes.
struct LabelBox {
  int64_t class_index = 0;
  double centre_x = 0, centre_y = 0, width = 0, height = 0;  // normalised
};
void plot_labels(const std::vector<LabelBox>& boxes, const std::vector<std::string>& names, const std::string& path);

}  // namespace yolo9
