// The training run: epochs of steps, validation, checkpoints. The only epoch loop.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <yolo9/core/communicator.h>
#include <yolo9/train/callback.h>
#include <yolo9/train/hyp.h>
#include <yolo9/train/run_options.h>

namespace yolo9 {

struct TrainResult {
  std::string run_dir, best_path, last_path;
  double best_fitness = 0;
  int64_t best_epoch = 0;
  int64_t epochs_done = 0;  // in this call
  bool stopped_early = false;
  bool interrupted = false;  // by request_stop: last.pt is of the last finished epoch
  EvalResult validation;     // of the best weights, on the validation set
};

class Trainer {
 public:
  // Options must have passed check_options. `run_dir` exists and is writable; when options.resume is set it is the
  // folder the resumed checkpoint lies in.
  Trainer(RunOptions options, Hyp hyp, std::string run_dir, std::vector<std::shared_ptr<Callback>> callbacks = {});
  ~Trainer();

  // Throws Error for mistakes in configuration, data, weights or when one image does not fit.
  TrainResult run();

  // Ends the run after the step in progress. What the epoch did so far is not kept: resuming begins it again.
  // May be called from a signal handler or another thread.
  static void request_stop() noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace yolo9
