// What happens around training, told to whoever listens: progress lines, result files, plots, metrics.
// Callbacks run between steps, never inside one, and must not change the model.
#pragma once

#include <array>
#include <string>
#include <vector>

#include <yolo9/core/types.h>
#include <yolo9/eval/evaluator.h>
#include <yolo9/train/run_options.h>
#include <yolo9/train/step.h>

namespace yolo9 {

struct RunStart {
  std::string run_dir;
  const RunOptions* options = nullptr;
  std::vector<std::string> names;
  int64_t first_epoch = 0, epochs = 0;
  int64_t steps_done = 0;  // before this call, when resumed
  int64_t batches_per_epoch = 0;
  torch::Tensor labels;  // float [n,5]: class, centre x, centre y, width, height of the whole training set
};

struct StepEvent {
  int64_t epoch = 0;
  int64_t step = 0;          // optimizer steps so far in this run, from 1
  int64_t iteration = 0;     // of the step's last draw, from 0
  int64_t accumulation = 1;  // micro-batches of the step
  int64_t height = 0, width = 0;
  const StepReport* report = nullptr;
  const std::vector<Draw>* draws = nullptr;
};

struct EpochEvent {
  int64_t epoch = 0, epochs = 0;
  std::array<double, 3> losses{};          // mean over the epoch's draws: box, cls, dfl
  std::array<double, 3> learning_rates{};  // by group, as used last in this epoch
  int64_t instances = 0;                   // labels seen
  int64_t images = 0;
  int64_t image_size = 0;
  int64_t micro_batch = 0, accumulation = 0;
  double train_seconds = 0, validation_seconds = 0;
  double remaining_seconds = 0;
  int64_t memory_bytes = 0, budget_bytes = 0;
  const EvalResult* validation = nullptr;  // null when this epoch was not validated
  double fitness = 0;
  bool best = false;
};

struct RunEnd {
  std::string run_dir, best_path, last_path;
  int64_t epochs_done = 0;
  double seconds = 0;
  bool stopped_early = false;
  const EvalResult* validation = nullptr;  // of the best weights
};

class Callback {
 public:
  virtual ~Callback() = default;
  // While the data set is looked at, before on_start: several times a second; `done` == `total` ends it.
  virtual void on_scan(int64_t /*done*/, int64_t /*total*/) {}
  virtual void on_start(const RunStart&) {}
  virtual void on_step(const StepEvent&) {}
  virtual void on_epoch(const EpochEvent&) {}
  // Validation's batches, with detections in network pixels [n,6] per image, for pictures.
  virtual void on_validation_batch(int64_t /*epoch*/, int64_t /*index*/, const Batch&,
                                   const std::vector<torch::Tensor>&) {}
  virtual void on_end(const RunEnd&) {}
};

}  // namespace yolo9
