// Task-aligned assignment of ground truths to anchors (Feng et al., TOOD, 2021).
#pragma once

#include <cstdint>
#include <vector>

#include <torch/types.h>

namespace yolo9 {

// All boxes of a batch in one flat list, image by image: nothing is padded to the densest image.
struct GroundTruths {
  torch::Tensor image;  // int64 [N], ascending
  torch::Tensor label;  // int64 [N]
  torch::Tensor box;    // float [N,4], corner form, pixels
};

// Class scores of all anchors, left in the head's own maps.
struct ClassScores {
  std::vector<torch::Tensor> levels;  // [B, classes, h, w] each, any strides; anchors in order of levels
  bool are_logits = true;             // false: already between 0 and 1
};

struct AssignerOptions {
  int64_t topk = 10;
  double alpha = 0.5;  // exponent of the score
  double beta = 6.0;   // exponent of the overlap
  double eps = 1e-9;
  // Bound on the (ground truth, anchor) pairs looked at together, hence on the peak memory; the result does not
  // depend on it by a single bit. At least one ground truth is taken at a time.
  int64_t chunk_pairs = 1 << 18;
};

// The positives, ordered by anchor, then image. The target scores of every other anchor and class are zero.
struct Assignment {
  torch::Tensor image, anchor, truth;  // int64 [P]; truth indexes GroundTruths
  torch::Tensor score;                 // float [P], the target score at the truth's label
};

// boxes: float [B,A,4], corner form, pixels; points: float [A,2], pixels. Everything is detached.
Assignment assign_targets(const GroundTruths& truths, const torch::Tensor& boxes, const ClassScores& scores,
                          const torch::Tensor& points, const AssignerOptions& options);

}  // namespace yolo9
