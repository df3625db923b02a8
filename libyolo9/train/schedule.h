// Learning rates, momentum and accumulation over a run.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <torch/types.h>

#include <yolo9/train/run_options.h>

namespace yolo9 {

struct ScheduleOptions {
  ScheduleShape shape = ScheduleShape::Linear;
  int64_t epochs = 100;
  int64_t batches_per_epoch = 1;
  int64_t batch = 16;          // images of one draw
  int64_t nominal_batch = 64;  // images of one optimizer step that accumulation aims at
  double lr0 = 0.01, lrf = 0.01, momentum = 0.937;
  double warmup_epochs = 3.0, warmup_momentum = 0.8, warmup_bias_lr = 0.1;
  bool modern = false;  // epoch e uses the factor of e after warm-up too, not that of the epoch before
};

struct StepPlan {
  std::array<double, 3> learning_rates{};  // biases, convolution weights, BatchNorm weights
  double momentum = 0;                     // for an optimizer whose momentum is warmed up
  int64_t accumulate = 1;                  // draws per optimizer step
  bool warming_up = false;
};

class Schedule {
 public:
  explicit Schedule(const ScheduleOptions& options);

  // The factor on lr0 that belongs to an epoch, 0 .. epochs.
  double factor(int64_t epoch) const;
  // Warm-up lasts through this iteration: at least 100, however short the run.
  int64_t warmup_iterations() const { return warmup_iterations_; }

  // What iteration `iteration` (counted from the start of the run) of `epoch` works with. Asking again for the same
  // iteration gives the same answer.
  StepPlan plan(int64_t iteration, int64_t epoch);
  // After the epoch's last iteration: sets the rates for the epochs past warm-up. Those lag by one epoch, as in the
  // official recipe, unless `modern`.
  void end_epoch(int64_t epoch);

  // The rates and the accumulation in force, for a checkpoint.
  std::vector<std::pair<std::string, torch::Tensor>> state() const;
  // Throws Error(Weights) if something is missing.
  void load_state(const std::vector<std::pair<std::string, torch::Tensor>>& saved);

 private:
  ScheduleOptions options_;
  int64_t warmup_iterations_;
  std::array<double, 3> learning_rates_{};
  int64_t accumulate_ = 1;
};

// Draws per optimizer step after warm-up: nominal / batch, rounded half to even, at least 1.
int64_t nominal_accumulation(int64_t batch, int64_t nominal_batch);
// Weight decay for the images that a step really has: decay * batch * accumulation / nominal.
double scaled_weight_decay(double weight_decay, int64_t batch, int64_t nominal_batch);

}  // namespace yolo9
