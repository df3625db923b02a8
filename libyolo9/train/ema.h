// Exponential moving average of a model's floating state.
#pragma once

#include <cstdint>
#include <vector>

#include <torch/types.h>

namespace yolo9 {

class Ema {
 public:
  // `averages` follow `live`, buffer by buffer; both are kept, not copied. Give them equal values to start with.
  Ema(std::vector<torch::Tensor> live, std::vector<torch::Tensor> averages, double decay = 0.9999, double tau = 2000);

  // The share of the old average kept by update number `update`, counted from 1. It grows from nearly nothing, so
  // that the average forgets the untrained start.
  double decay_at(int64_t update) const;
  // Allocates nothing.
  void update();

  int64_t updates() const { return updates_; }
  void set_updates(int64_t updates) { updates_ = updates; }

 private:
  std::vector<torch::Tensor> live_, averages_;
  double decay_, tau_;
  int64_t updates_ = 0;
};

}  // namespace yolo9
