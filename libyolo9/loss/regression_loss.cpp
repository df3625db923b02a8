#include <yolo9/loss/regression_loss.h>

#include <ATen/ATen.h>

#include <yolo9/core/boxes.h>
#include <yolo9/loss/anchors.h>

namespace yolo9 {

torch::Tensor distribution_focal_loss(const torch::Tensor& log_probability, const torch::Tensor& target) {
  const auto left = target.floor();
  const auto left_bin = left.to(at::kLong).unsqueeze(-1);
  const auto log_left = log_probability.gather(-1, left_bin).squeeze(-1);
  const auto log_right = log_probability.gather(-1, left_bin + 1).squeeze(-1);
  const auto right_weight = target - left;
  return -(log_left * (1 - right_weight) + log_right * right_weight).mean(-1);
}

std::pair<torch::Tensor, torch::Tensor> regression_loss(const torch::Tensor& logits, const torch::Tensor& target,
                                                        const torch::Tensor& points, const torch::Tensor& weight) {
  const int64_t bins = logits.size(2);
  const auto log_probability = at::log_softmax(logits, 2);
  const auto distances = at::matmul(log_probability.exp(), at::arange(bins, logits.options().requires_grad(false)));
  const auto ciou = corner_iou(distances_to_corner(distances, points), target, IouKind::CIoU);
  const auto dfl = distribution_focal_loss(log_probability, corner_to_distances(target, points, bins));
  return {((1 - ciou) * weight).sum(), (dfl * weight).sum()};
}

}  // namespace yolo9
