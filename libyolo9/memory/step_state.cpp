#include <yolo9/memory/step_state.h>

#include <ATen/Context.h>
#include <c10/core/GradMode.h>

namespace yolo9 {

StepState::StepState(std::vector<torch::Tensor> live) : live_(std::move(live)) {
  for (const auto& tensor : live_) shadow_.push_back(torch::empty_like(tensor));
  const auto device = live_.empty() ? torch::Device(torch::kCPU) : live_.front().device();
  generator_ = at::globalContext().defaultGenerator(device);
}

void StepState::save() {
  c10::NoGradGuard no_grad;
  for (size_t i = 0; i < live_.size(); ++i) shadow_[i].copy_(live_[i]);
  // A generator's state is a small host tensor, whatever the device.
  generator_state_ = generator_.get_state();
}

void StepState::restore() {
  c10::NoGradGuard no_grad;
  for (size_t i = 0; i < live_.size(); ++i) live_[i].copy_(shadow_[i]);
  if (generator_state_.defined()) generator_.set_state(generator_state_);
}

}  // namespace yolo9
