// Box and distribution focal loss of the positives.
#pragma once

#include <utility>

#include <torch/types.h>

namespace yolo9 {

// Cross-entropy between the distributions over distance bins and the two bins around each target, weighted by
// nearness, mean over the four sides: log_probability [N,4,bins] and target [N,4] in grid units -> [N].
// Targets lie in [0, bins - 1).
torch::Tensor distribution_focal_loss(const torch::Tensor& log_probability, const torch::Tensor& target);

// Sums over positives of weight * (1 - CIoU) and weight * distribution focal loss.
// logits: float [P,4,bins]; target: float [P,4] corner form and points: float [P,2], grid units; weight: float [P].
std::pair<torch::Tensor, torch::Tensor> regression_loss(const torch::Tensor& logits, const torch::Tensor& target,
                                                        const torch::Tensor& points, const torch::Tensor& weight);

}  // namespace yolo9
