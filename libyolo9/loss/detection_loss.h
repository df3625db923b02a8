// The detection loss of single and dual heads: CIoU, distribution focal loss (Li et al. 2020) and binary
// cross-entropy on task-aligned targets.
#pragma once

#include <cstdint>
#include <vector>

#include <torch/types.h>

#include <yolo9/core/types.h>
#include <yolo9/loss/assigner.h>
#include <yolo9/loss/class_loss.h>

namespace yolo9 {

struct LossOptions {
  int64_t classes = 0;
  int64_t reg_max = 16;
  std::vector<double> strides;
  double box_gain = 7.5, cls_gain = 0.5, dfl_gain = 1.5;
  double cls_pw = 1;    // weight of the positive part of the cross-entropy
  double fl_gamma = 0;  // > 0: focal loss
  double label_smoothing = 0;
  double aux_weight = 0.25;  // of the auxiliary branch of a dual head
  int64_t topk = 10;
  double alpha = 0.5, beta = 6.0;
};

// What a slice of a draw must know of the whole draw. Each branch is divided by its own sum of target scores, so a
// split draw equals the whole one only with the draw's sums.
struct SliceContext {
  torch::Tensor score_sums;  // float [branches], unclamped; undefined: the slice's own
  int64_t batch_size = 0;    // images in the whole draw; 0: those of this slice
  int64_t chunk_pairs = 0;   // pairs that the assigner looks at together; 0: the usual number. Changes no bit
};

struct LossResult {
  torch::Tensor total;       // scalar to back-propagate: (box + cls + dfl) * batch size
  torch::Tensor items;       // float [3], detached: box, cls, dfl after the gains, not times the batch size
  torch::Tensor score_sums;  // float [branches], detached, unclamped; auxiliary first
};

class DetectionLoss {
 public:
  explicit DetectionLoss(LossOptions options);

  // targets: float [N,6], rows image, class, centre x, centre y, width, height (normalised).
  // Over the slices of one draw, with the draw's context, `total`, `items` and gradients add up to the draw's.
  LossResult operator()(const HeadOutput& maps, const torch::Tensor& targets, const SliceContext& slice = {}) const;

  // The sums of target scores alone, without gradients. Over slices they add up to the draw's.
  torch::Tensor score_sums(const HeadOutput& maps, const torch::Tensor& targets, int64_t chunk_pairs = 0) const;

  // The assignment of one branch, and the ground truths it refers to.
  struct Targets {
    GroundTruths truths;
    Assignment positives;
  };
  Targets assign(const std::vector<torch::Tensor>& maps, const torch::Tensor& targets, int64_t chunk_pairs = 0) const;

 private:
  struct Branch;
  Branch branch(const std::vector<torch::Tensor>& maps, const torch::Tensor& targets, const torch::Tensor& sum,
                int64_t chunk_pairs) const;
  GroundTruths ground_truths(const std::vector<torch::Tensor>& maps, const torch::Tensor& targets) const;

  LossOptions options_;
  ClassLossOptions class_options_;
  AssignerOptions assigner_options_;
};

}  // namespace yolo9
