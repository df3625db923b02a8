// A device of which a test says everything: what is free, what a step takes, who else is there.
#pragma once

#include <functional>

#include <yolo9/memory/governor.h>

namespace yolo9 {

class FakeSource : public MemorySource {
 public:
  std::string name() const override { return "fake"; }
  MemorySample sample() const override {
    MemorySample out = now;
    out.device_free_bytes = now.device_total_bytes > 0 ? now.device_total_bytes - now.held_bytes - others_bytes : 0;
    return out;
  }
  void reset_peak() override { now.peak_allocated_bytes = now.allocated_bytes; }
  void release_cached() override {
    ++releases;
    now.reserved_bytes = now.allocated_bytes;
  }
  void set_limit(int64_t bytes) override { now.budget_bytes = bytes; }

  // One attempt at a step that takes `bytes` above what is live: false if the limit forbids it.
  bool attempt(int64_t bytes) {
    reset_peak();
    const int64_t wanted = now.allocated_bytes + bytes;
    const int64_t room = now.budget_bytes == 0 ? wanted : now.budget_bytes;
    now.peak_allocated_bytes = std::min(wanted, room);
    if (wanted <= room) return true;
    ++now.ooms;
    return false;
  }

  MemorySample now;
  int64_t others_bytes = 0;
  int releases = 0;
};

// Runs a step under the governor, whose cost is `law`; tells how often it ran out.
struct GovernedStep {
  StepSetting setting;
  StepMemory memory;
  int ooms = 0;
};
inline GovernedStep run_governed(Governor& governor, FakeSource& source, const StepShape& shape,
                                 const std::function<int64_t(const StepSetting&)>& law) {
  GovernedStep out;
  out.setting = governor.plan(shape);
  while (!source.attempt(law(out.setting))) {
    ++out.ooms;
    out.setting = governor.shrink(shape, out.setting);
  }
  out.memory = governor.observe(shape, out.setting);
  return out;
}

}  // namespace yolo9
