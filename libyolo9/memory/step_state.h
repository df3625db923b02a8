// Everything that an attempt at a step may change although the step has not succeeded, kept so that the
// attempt can be undone: BatchNorm's running statistics and counters, and the generators of random numbers.
// Gradients are not kept: they are zero before a step, and zero again after a roll-back.
#pragma once

#include <vector>

#include <ATen/core/Generator.h>
#include <torch/types.h>

namespace yolo9 {

class StepState {
 public:
  // Tensors whose values are saved and restored in place. The shadow copies are made here; save() and
  // restore() allocate nothing on the tensors' device.
  explicit StepState(std::vector<torch::Tensor> live);

  void save();
  void restore();

  // The generator of the tensors' device, as it is now.
  torch::Tensor generator_state() const { return generator_.get_state(); }
  void set_generator_state(const torch::Tensor& state) { generator_.set_state(state); }

 private:
  std::vector<torch::Tensor> live_, shadow_;
  at::Generator generator_;
  torch::Tensor generator_state_;
};

}  // namespace yolo9
