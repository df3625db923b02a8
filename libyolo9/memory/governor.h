// The governor: decides how many images go through the network together, so that a step fits its budget.
// It never changes the effective batch, only how it is cut.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include <yolo9/memory/source.h>

namespace yolo9 {

enum class GovernorMode {
  On,     // foresees, shrinks, recovers, grows back
  Watch,  // measures and reports; an out-of-memory ends the run
  Off,    // does nothing
};
GovernorMode parse_governor_mode(const std::string& name);  // "on", "watch", "off"; throws Error(Usage)

struct GovernorOptions {
  GovernorMode mode = GovernorMode::On;
  int64_t budget_bytes = 0;    // 0: all the source has
  double headroom = 0.10;      // share of the budget that predictions leave free
  int64_t patience_steps = 20; // steps without trouble before a larger slice is tried again
};

// What a step is about to process; cost is learnt per image size.
struct StepShape {
  int64_t draw_size = 0;  // images of one draw (the user's batch)
  int64_t height = 0, width = 0;
  int64_t boxes = 0;  // labels in the draw
};

// What a step did, for the log.
struct StepMemory {
  int64_t micro_batch = 0;
  int64_t allocated_bytes = 0;  // live after the step
  int64_t reserved_bytes = 0;
  int64_t peak_bytes = 0;       // the highest live bytes during the attempt that succeeded
  int64_t predicted_bytes = 0;  // 0 while nothing was learnt yet
  int64_t budget_bytes = 0;
  int64_t retries = 0;          // of the allocator, since the process began
  int64_t ooms = 0;             // recovered in this step
  std::string decision;         // empty, or one line that says what was changed and why
};

class Governor {
 public:
  Governor(std::shared_ptr<MemorySource> source, GovernorOptions options);

  // Images per slice for this step: the whole draw while it is known or hoped to fit.
  int64_t plan(const StepShape& shape);
  // After an out-of-memory with slices of `micro_batch`: the next size to try, half as large.
  // Throws Error(Memory) with the figure that was needed when one image alone does not fit, and rethrows nothing
  // else. In Watch and Off modes it throws at once.
  int64_t shrink(const StepShape& shape, int64_t micro_batch);
  // Learns from a step that succeeded.
  StepMemory observe(const StepShape& shape, int64_t micro_batch);

  MemorySource& source() { return *source_; }
  const GovernorOptions& options() const { return options_; }
  int64_t budget_bytes() const { return budget_bytes_; }

 private:
  // The peaks seen at one image size, as a line through what does not depend on the slice and a cost an image.
  struct Cost {
    int64_t largest_good = 0;     // slice that worked
    int64_t smallest_bad = 0;     // slice that ran out; 0: none
    std::map<int64_t, int64_t> peak_of_slice;
    int64_t quiet_steps = 0;
  };
  using Key = std::pair<int64_t, int64_t>;

  int64_t predict(const Cost& cost, int64_t micro_batch) const;
  int64_t largest_foreseen(const Cost& cost, int64_t draw_size) const;

  std::shared_ptr<MemorySource> source_;
  GovernorOptions options_;
  int64_t budget_bytes_ = 0;
  std::map<Key, Cost> costs_;
  int64_t ooms_in_step_ = 0;
  std::string decision_;
};

}  // namespace yolo9
