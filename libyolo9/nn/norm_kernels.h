// Batch normalisation with activation on the CPU, in passes that touch memory once. Sums are in double precision and
// are taken in an order that depends on the shape only: any number of threads gives the same bits.
#pragma once

#include <vector>

#include <torch/types.h>

namespace yolo9 {

// One normalised input: y [B,C,H,W] with float [C] tensors (contiguous, on the CPU); deviation = 1 / sqrt(var + eps).
struct NormBranch {
  torch::Tensor y, mean, deviation, gamma, beta;
};

// Float or bfloat16 on the CPU, dense in channels-last or contiguous layout (a range of channels of such a tensor
// will do), not empty.
bool norm_kernels_take(const torch::Tensor& y);

// Over batch and space, double [C]; the variance is the biased one.
struct ChannelMoments {
  torch::Tensor mean, variance;
};
ChannelMoments channel_moments(const torch::Tensor& y);

// out = activation(sum over branches of (y - mean) * deviation * gamma + beta), activation being SiLU or nothing.
// One or two branches of equal type. False, and nothing done, if the layouts do not agree.
bool normalize_into(const std::vector<NormBranch>& branches, bool silu, torch::Tensor& out);

struct NormGradient {
  torch::Tensor grad;  // of the sum that goes into the activation
  // Double [C]: sums over batch and space of grad, and for each branch of grad * (y - mean) * deviation. They are the
  // gradients of beta and gamma.
  torch::Tensor sum;
  std::vector<torch::Tensor> products;
};
// `grad_out` has the type and layout of the branches' y.
NormGradient activation_gradient(const std::vector<NormBranch>& branches, bool silu, const torch::Tensor& grad_out);

// The gradient of a branch's y, into `out`, which may be gradient.grad itself.
void norm_gradient_into(const NormGradient& gradient, const std::vector<NormBranch>& branches, size_t branch,
                        torch::Tensor& out);

}  // namespace yolo9
