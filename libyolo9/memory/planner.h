// Plans the memory of a run before it begins: a few real steps with one, two and three images are measured, and what
// they teach says how the whole batch is run, what fits beside it, and what would be needed if nothing does.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <yolo9/memory/governor.h>

namespace yolo9 {

// Runs one step of `shape` with `setting` and undoes it: bytes above the level before, per phase; nothing when the
// memory ran out.
using Probe = std::function<std::optional<std::vector<int64_t>>(const StepShape& shape, const StepSetting& setting)>;

// Bytes that are there before the first image.
struct Baseline {
  int64_t weights_bytes = 0;  // parameters and buffers
  int64_t gradients_bytes = 0;
  int64_t optimizer_bytes = 0;
  int64_t ema_bytes = 0;
  int64_t other_bytes = 0;  // whatever else is live
  int64_t total() const { return weights_bytes + gradients_bytes + optimizer_bytes + ema_bytes + other_bytes; }
};

struct MemoryPlan {
  StepShape shape;  // that was planned for: the largest image, the densest picture
  Baseline baseline;
  int64_t budget_bytes = 0, allowed_bytes = 0;
  StepSetting setting;  // how the draw is run
  Rung rung = Rung::None;
  int64_t predicted_bytes = 0;  // the step's peak with it, the baseline included
  int64_t safe_batch = 0;       // the most images that fit in one piece without any rung; 0: not even one
  int64_t accumulation = 0;     // micro-batches per optimizer step
  int64_t effective_batch = 0;  // images per optimizer step
  int64_t boxes_bytes = 0;      // what the labels cost at their densest
  int64_t largest_size = 0;     // longer side that fits with the same setting, in steps of the stride
  struct Level {
    int checkpointing = 0;
    int64_t bytes_per_image = 0;
    int64_t most_images = 0;  // in one piece
  };
  std::vector<Level> levels;  // those that were measured
};

class Planner {
 public:
  Planner(Governor& governor, Probe probe) : governor_(governor), probe_(std::move(probe)) {}

  // Measures what the governor must know to run `shape` (one draw at its largest). Throws Error(Memory) with the
  // figure that is needed when even one image does not fit at the deepest rung, and when the measurements make no
  // sense (more images needing less).
  void measure(const StepShape& shape);
  // After measure(). `draws`: per optimizer step.
  MemoryPlan plan(const StepShape& shape, const Baseline& baseline, int64_t draws);
  // The most images of this kind that fit in one piece with `setting`, up to `limit`; 0: none.
  int64_t most_images(const StepShape& image, StepSetting setting, int64_t limit) const;

 private:
  // One, two and three images, as far as they fit and the draw has so many; false when one does not fit.
  bool measure_setting(const StepShape& shape, StepSetting setting, int64_t images);
  bool foreseen_to_fit(const StepShape& shape, const StepSetting& setting) const;
  [[noreturn]] void refuse(const StepShape& shape, const StepSetting& setting);

  Governor& governor_;
  Probe probe_;
};

// The largest count up to `limit` for which `fits` holds, given that it holds for all smaller ones; 0: not even for 1.
int64_t largest_that_fits(int64_t limit, const std::function<bool(int64_t)>& fits);

// `shape` with another number of images, each as dense as the average (or, if known, the densest).
StepShape with_images(const StepShape& shape, int64_t images);

// The check-list of memory planning, as lines: baseline, safe batch, accumulation, augmentation, resolution.
std::string describe(const MemoryPlan& plan);

}  // namespace yolo9
