// Convolution with normalisation and activation, and the two-branch convolution that folds into one.
#pragma once

#include <optional>

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>

#include <yolo9/nn/activation.h>
#include <yolo9/nn/layer.h>

namespace yolo9 {

// All normalisation layers of a model.
inline constexpr double kBatchNormEps = 1e-3;
inline constexpr double kBatchNormMomentum = 0.03;

struct ConvOptions {
  int64_t kernel = 1;
  int64_t stride = 1;
  std::optional<int64_t> padding = std::nullopt;  // absent: keeps the size at stride 1 for odd kernels
  int64_t groups = 1;
  int64_t dilation = 1;
  Activation activation = {};

  // The padding in effect.
  int64_t pad() const { return padding.value_or((dilation * (kernel - 1) + 1) / 2); }
};

// conv (no bias) -> bn -> activation; once fused, conv (with bias) -> activation.
class ConvImpl : public BlockImpl {
 public:
  ConvImpl(int64_t in, int64_t out, const ConvOptions& options = {});
  torch::Tensor forward(const torch::Tensor& x) override;

  // Folds bn into conv. A second call does nothing.
  void fuse();
  bool is_fused() const { return bn.is_empty(); }

  torch::nn::Conv2d conv{nullptr};
  torch::nn::BatchNorm2d bn{nullptr};

 private:
  Activation activation_;
};
TORCH_MODULE(Conv);

// activation(conv1(x) + conv2(x)) with a 3x3 and a 1x1 branch; once fused, activation(conv(x)).
class RepConvNImpl : public BlockImpl {
 public:
  RepConvNImpl(int64_t in, int64_t out, int64_t stride = 1, const Activation& activation = {});
  torch::Tensor forward(const torch::Tensor& x) override;

  void fuse();
  bool is_fused() const { return !conv.is_empty(); }

  Conv conv1{nullptr}, conv2{nullptr};
  torch::nn::Conv2d conv{nullptr};

 private:
  Activation activation_;
};
TORCH_MODULE(RepConvN);

// Fuses every RepConvN and Conv below (and including) `root`.
void fuse_convolutions(torch::nn::Module& root);

}  // namespace yolo9
