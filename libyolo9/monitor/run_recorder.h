// What a training run leaves behind and says on screen: progress lines, results.csv, memory.csv, plots, pictures.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <yolo9/train/callback.h>

namespace yolo9 {

// The callbacks of yolo9-train: progress on standard error, tables and, unless options.no_plots, pictures in `run_dir`.
std::vector<std::shared_ptr<Callback>> default_callbacks(const std::string& run_dir, const RunOptions& options);

// val_batch<index>_labels.jpg and _pred.jpg in `folder`, for the first batches of an evaluation; nothing for later
// ones. Detections are in network pixels, [n,6] per image.
void save_validation_pictures(const std::string& folder, int64_t index, const Batch& batch,
                              const std::vector<torch::Tensor>& detections, const std::vector<std::string>& names);

// Curves and confusion matrix of an evaluation, as PNG files in `folder`.
void plot_evaluation(const EvalResult& result, const std::vector<std::string>& names, const std::string& folder);

}  // namespace yolo9
