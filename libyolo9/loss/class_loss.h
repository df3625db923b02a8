// The classification term: a dense background, where almost every target is zero, plus a correction at the few
// positives.
#pragma once

#include <cstdint>

#include <torch/types.h>

namespace yolo9 {

struct ClassLossOptions {
  double positive_weight = 1;  // weight of the positive part of the cross-entropy
  double focal_gamma = 0;      // > 0: focal loss (Lin et al. 2017) with alpha 0.25
  double smoothing = 0;        // target t becomes t * (1 - smoothing) + smoothing / 2
};

// Binary cross-entropy of logits against targets in 0..1, element by element. Differentiable.
torch::Tensor class_loss(const torch::Tensor& logits, const torch::Tensor& targets, const ClassLossOptions& options);

// class_loss(logits, target) - class_loss(logits, 0): what a positive adds to the background.
torch::Tensor positive_correction(const torch::Tensor& logits, const torch::Tensor& targets,
                                  const ClassLossOptions& options);

struct LevelTerms {
  torch::Tensor background;    // scalar: sum of class_loss(., 0) over all class channels of the map
  torch::Tensor box_logits;    // float [P, box_channels]
  torch::Tensor class_logits;  // float [P]
};

// Reads a raw map [B, box_channels + classes, h, w] once and writes its gradient once: the background sum and the
// logits at P distinct (image, cell) places, cell = row * w + column. Any memory format and floating type.
LevelTerms read_level(const torch::Tensor& map, const torch::Tensor& image, const torch::Tensor& cell,
                      const torch::Tensor& label, int64_t box_channels, const ClassLossOptions& options);

}  // namespace yolo9
