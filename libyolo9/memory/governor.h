// The governor: decides before each step how it is run so that it fits its budget, learns from each step what steps
// cost, and after an out-of-memory says how the step is tried again. It never changes the effective batch.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <yolo9/memory/cost_model.h>
#include <yolo9/memory/setting.h>
#include <yolo9/memory/source.h>

namespace yolo9 {

enum class GovernorMode {
  On,     // foresees, shrinks, recovers, grows back
  Watch,  // measures, foresees and reports; an out-of-memory ends the run
  Off,    // does nothing, and sets no limit
};
GovernorMode parse_governor_mode(const std::string& name);  // "on", "watch", "off"; throws Error(Usage)
// "10%" or "0.1": the share of the budget to keep free; throws Error(Usage) for anything else or 90 % and more.
double parse_headroom(const std::string& text);

struct GovernorOptions {
  GovernorMode mode = GovernorMode::On;
  int64_t budget_bytes = 0;     // 0: budget_share of what the device offers
  double budget_share = 1.0;    // of what is free or held by this process, when no budget was given
  double headroom = 0.10;       // share of the budget that plans leave free, at least the largest block of a step
  int64_t patience_steps = 20;  // steps without trouble before less economy is tried again
  LadderOptions ladder;
};

// What a step did, for the log.
struct StepMemory {
  StepSetting setting;
  Rung rung = Rung::None;
  int64_t micro_batch = 0;
  int64_t allocated_bytes = 0;  // live after the step
  int64_t reserved_bytes = 0;
  int64_t peak_bytes = 0;       // the highest live bytes during the attempt that succeeded
  int64_t predicted_bytes = 0;  // of that attempt; 0 while nothing was learnt yet
  int64_t budget_bytes = 0;
  int64_t retries = 0;   // of the allocator, since the process began
  int64_t ooms = 0;      // recovered in this step
  std::string decision;  // empty, or what was changed and why
};

class Governor {
 public:
  Governor(std::shared_ptr<MemorySource> source, GovernorOptions options);

  // How this step is to be run: the most wanted setting that is foreseen, or hoped, to fit. Looks at the device, so
  // that other processes' growth shrinks the budget at once.
  StepSetting plan(const StepShape& shape);
  // After an out-of-memory with `setting`, everything of the attempt being undone: the next one to try. Throws
  // Error(Memory) with the figure that was needed when there is none, and at once in Watch and Off modes.
  StepSetting shrink(const StepShape& shape, const StepSetting& setting);
  // Learns from a step that succeeded. `phase_peaks`: the highest live bytes of each part of the step, for laws that
  // differ (forward and loss, backward); empty: the source's peak since its reset. Always as many.
  StepMemory observe(const StepShape& shape, const StepSetting& setting, std::vector<int64_t> phase_peaks = {});
  // The same for a step that was run only to learn from it.
  void learn(const StepShape& shape, const StepSetting& setting, const std::vector<int64_t>& phase_bytes);

  // The same for one that ran out of memory.
  void learn_failure(const StepShape& shape, const StepSetting& setting);

  // The setting that plan() would give a shape that it has not met, without any consequence.
  StepSetting foresee(const StepShape& shape) const;
  // Bytes above what is live between steps; nothing while nothing of the kind was observed.
  std::optional<int64_t> expect(const StepShape& shape, const StepSetting& setting) const;
  // The same with the margin of past errors: what decisions rest on.
  std::optional<int64_t> bound(const StepShape& shape, const StepSetting& setting) const;

  // Changes the budget from the next step on.
  void set_budget(int64_t budget_bytes) { options_.budget_bytes = budget_bytes; }
  // What rungs there are may become known only after the governor was made.
  LadderOptions& ladder() { return options_.ladder; }
  MemorySource& source() { return *source_; }
  const GovernorOptions& options() const { return options_; }
  // Live bytes outside steps, as last looked at.
  int64_t rest_bytes() const { return rest_bytes_; }
  // The budget in force, and the part of it that plans may use.
  int64_t budget_bytes() const { return budget_bytes_; }
  int64_t allowed_bytes() const;
  // Looks at the device now.
  void refresh_budget();

 private:
  // What was last done at one image size.
  struct Place {
    StepSetting setting;
    int64_t quiet_steps = 0;
    int64_t patience = 0;
    bool growing = false;  // the last change was upwards and is not proven yet
  };

  CostPoint point_of(const StepShape& shape, const StepSetting& setting) const;
  const CostModel& model_of(const StepSetting& setting) const;
  // Live bytes that the setting is foreseen to reach; 0: not known, and not known to fail.
  int64_t need(const StepShape& shape, const StepSetting& setting) const;
  size_t first_that_fits(const StepShape& shape, const std::vector<StepSetting>& ladder, size_t from,
                         int64_t blind_micro_batch) const;
  void decide(const std::string& line);
  bool release_cache(const MemorySample& now);
  [[noreturn]] void give_up(const StepShape& shape, const StepSetting& setting, const MemorySample& now) const;

  std::shared_ptr<MemorySource> source_;
  GovernorOptions options_;
  int64_t budget_bytes_ = 0;
  int64_t announced_bytes_ = 0;  // the budget that was last said
  int64_t rest_bytes_ = 0;       // live before the attempt
  int64_t largest_block_bytes_ = 0;
  std::map<std::pair<int, bool>, CostModel> models_;  // by checkpointing level and precision
  std::map<std::pair<int64_t, int64_t>, Place> places_;
  int64_t ooms_in_step_ = 0;
  bool released_in_step_ = false;
  bool slices_announced_ = false;
  std::string decision_;
};

}  // namespace yolo9
