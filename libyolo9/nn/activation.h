// The activation function after a convolution. A model uses one kind throughout (SiLU unless the
// configuration's `activation` key says otherwise).
#pragma once

#include <string>

#include <torch/types.h>

namespace yolo9 {

struct Activation {
  enum class Kind { Identity, SiLU, ReLU, LeakyReLU, GELU, Hardswish, Mish };
  Kind kind = Kind::SiLU;
  double slope = 0.01;  // LeakyReLU only
};

// "SiLU", "nn.SiLU()", "nn.LeakyReLU(0.1)", ...; throws std::invalid_argument naming the known ones.
Activation parse_activation(const std::string& text);

// Applies the activation to `x`, which must not be needed by anyone else: without gradients it works in place.
torch::Tensor activate(const Activation& activation, const torch::Tensor& x);

// Whether the backward pass needs the activation's output, so that the output must not be changed in place.
bool keeps_output_for_backward(const Activation& activation);

}  // namespace yolo9
