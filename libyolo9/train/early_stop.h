// Stops a run that has not become better for a while.
#pragma once

#include <cstdint>

namespace yolo9 {

class EarlyStop {
 public:
  // patience: epochs without an equal or better fitness; 0: never stop.
  explicit EarlyStop(int64_t patience) : patience_(patience) {}

  // Takes the fitness of `epoch`; true when the run should end after it.
  bool should_stop(int64_t epoch, double fitness) {
    if (fitness >= best_fitness_) {
      best_fitness_ = fitness;
      best_epoch_ = epoch;
    }
    return patience_ > 0 && epoch - best_epoch_ >= patience_;
  }
  // Whether the epoch after `epoch` could be the last, so that it must be validated and saved.
  bool may_stop_next(int64_t epoch) const { return patience_ > 0 && epoch - best_epoch_ >= patience_ - 1; }

  double best_fitness() const { return best_fitness_; }
  int64_t best_epoch() const { return best_epoch_; }
  void restore(double best_fitness, int64_t best_epoch) {
    best_fitness_ = best_fitness;
    best_epoch_ = best_epoch;
  }

 private:
  int64_t patience_;
  double best_fitness_ = 0;
  int64_t best_epoch_ = 0;
};

}  // namespace yolo9
