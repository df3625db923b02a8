// Host memory under a budget: a metering allocator in the place of LibTorch's CPU allocator. It counts every
// byte that tensors hold and refuses, with the exception a device would throw, what would pass the budget.
#pragma once

#include <cstdint>
#include <string>

#include <yolo9/memory/source.h>
#include <yolo9/memory/trace.h>

namespace yolo9 {

// Puts the meter in place. Call once, early in main(): tensors allocated before are not counted. It also tells
// the C library to keep freed blocks instead of returning each to the system, because faulting the same pages
// in again at every step costs more time than the arithmetic on them. Further calls do nothing.
// Not counted: scratch memory that oneDNN takes for itself.
void install_host_meter();
bool host_meter_installed();

class HostMemorySource : public MemorySource {
 public:
  HostMemorySource();  // installs the meter if that has not happened
  std::string name() const override { return "host"; }
  // held_bytes is the resident set without mapped files and what was set aside. Cheap enough for several calls a step
  // (tens of microseconds).
  MemorySample sample() const override;
  void reset_peak() override;
  int64_t take_peak() override;
  void release_cached() override;
  void set_limit(int64_t budget_bytes) override;
};

// Memory that this process holds for as long as it runs and that is no tensor, such as kept pictures: from now on the
// source does not count it as the process's to use.
void set_host_bytes_aside(int64_t bytes);

// While one lives, allocations of this thread obey the budget. Outside, they are counted only: a loader thread
// that fills the next batch must never be the one to be refused.
class HostBudgetScope {
 public:
  HostBudgetScope();
  ~HostBudgetScope();
  HostBudgetScope(const HostBudgetScope&) = delete;
  HostBudgetScope& operator=(const HostBudgetScope&) = delete;
};

// For tests of recovery: inside budget scopes the n-th allocation from now (1 = the next) is refused, once.
// 0 cancels.
void refuse_host_allocation(int64_t n);
// Allocations made inside budget scopes since the process began.
int64_t host_scoped_allocations();

// Records the allocations that are made inside budget scopes, by any thread, and the frees of those blocks, by
// any thread and wherever. Blocks that were alive before are not in the trace: see AllocationTrace::seed().
void start_host_trace();
AllocationTrace stop_host_trace();
// Begins a phase; does nothing while no recording runs.
void host_trace_mark(const std::string& label);

// What this process may use of the machine's memory: physical memory, less where a cgroup limits it.
int64_t host_total_bytes();
// What is free for this process now, by /proc/meminfo and the cgroup.
int64_t host_available_bytes();
// Highest resident set of the process so far (VmHWM).
int64_t host_peak_resident_bytes();

}  // namespace yolo9
