// Convolution, batch normalisation and activation as one function with a backward pass of its own. It keeps its input
// and the convolution's output; batch normalisation's output, which the activation needs, is had again element by
// element. Composed of LibTorch's modules the same keeps all three.
#pragma once

#include <vector>

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/types.h>

#include <yolo9/nn/activation.h>

namespace yolo9 {

struct ConvNorm {
  torch::nn::Conv2dImpl& conv;
  torch::nn::BatchNorm2dImpl& bn;
};

// Whether `conv_block` stands for this: training, SiLU or no activation, convolutions without bias on 4-D maps, and
// normalisation with running statistics.
bool conv_block_takes(const torch::Tensor& x, const std::vector<ConvNorm>& branches, const Activation& activation);

// activation(sum over one or two branches of bn(conv(x))). Running statistics and counters change as bn changes them.
// Under autocast the convolution and the result have autocast's type, statistics stay in float.
torch::Tensor conv_block(const torch::Tensor& x, const std::vector<ConvNorm>& branches, const Activation& activation);

}  // namespace yolo9
