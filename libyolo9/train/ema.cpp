#include <yolo9/train/ema.h>

#include <cmath>

#include <ATen/ATen.h>

namespace yolo9 {

Ema::Ema(std::vector<torch::Tensor> live, std::vector<torch::Tensor> averages, double decay, double tau)
    : live_(std::move(live)), averages_(std::move(averages)), decay_(decay), tau_(tau) {
  TORCH_CHECK(live_.size() == averages_.size(), "[Ema] ", live_.size(), " buffers but ", averages_.size(), " averages");
  for (size_t i = 0; i < live_.size(); ++i)
    TORCH_CHECK(live_[i].sizes() == averages_[i].sizes() && live_[i].is_floating_point(), "[Ema] buffer ", i,
                " and its average differ in size, or hold no floating numbers");
}

double Ema::decay_at(int64_t update) const { return decay_ * (1 - std::exp(-static_cast<double>(update) / tau_)); }

void Ema::update() {
  const at::NoGradGuard no_grad;
  const double weight = 1 - decay_at(++updates_);
  for (size_t i = 0; i < live_.size(); ++i) averages_[i].lerp_(live_[i], weight);
}

}  // namespace yolo9
