// Non-maximum suppression on the head's decoded output.
#pragma once

#include <cstdint>
#include <vector>

#include <torch/types.h>

namespace yolo9 {

struct NmsOptions {
  double confidence = 0.25;  // a candidate's score must be greater
  double iou = 0.45;         // a candidate overlapping a kept one by more is dropped
  std::vector<int64_t> classes;  // only these classes; empty: all
  bool agnostic = false;         // suppress across classes
  bool multi_label = false;      // an anchor may give a candidate for each class, not only for its best
  int64_t max_detections = 300;
  int64_t max_candidates = 30000;  // the best this many enter the suppression
};

// prediction: [B, 4 + nc, A], centre x, centre y, width, height, then class scores, any floating type and device.
// Returns for each image a float32 CPU tensor [n, 6]: x1, y1, x2, y2, score, class, by descending score; equal
// scores stay in the order of anchors, then classes. Candidates with a non-finite score or box are left out.
// The work is bounded by max_candidates * max_detections overlaps an image, however bad the model is.
std::vector<torch::Tensor> non_max_suppression(const torch::Tensor& prediction, const NmsOptions& options);

}  // namespace yolo9
