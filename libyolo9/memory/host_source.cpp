#include <yolo9/memory/host_source.h>
#include <algorithm>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <string>
#include <utility>

#include <malloc.h>
#include <unistd.h>

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/alignment.h>
#include <c10/core/impl/alloc_cpu.h>
#include <c10/util/Exception.h>

#include <yolo9/memory/host_limits.h>

namespace yolo9 {

namespace {

// Stands before each block, in one alignment unit so that the data stays aligned.
struct BlockHeader {
  size_t bytes;
  int64_t recording;  // which recording holds this block; 0: none
  int64_t trace_block;
};
constexpr size_t kHeaderBytes = c10::gAlignment;
static_assert(sizeof(BlockHeader) <= kHeaderBytes);
// A higher priority than LibTorch's own allocator has.
constexpr uint8_t kPriority = 100;

thread_local int scope_depth = 0;

// While `running` is 0, which is all the time but for a few steps, this costs one relaxed load an allocation.
class TraceRecorder {
 public:
  void start() {
    const std::lock_guard lock(mutex_);
    TORCH_CHECK(running_.load() == 0, "[host trace] a recording is running already");
    trace_ = {};
    next_block_ = 0;
    running_.store(++recordings_);
  }

  AllocationTrace stop() {
    const std::lock_guard lock(mutex_);
    TORCH_CHECK(running_.exchange(0) != 0, "[host trace] no recording is running");
    return std::exchange(trace_, {});
  }

  void mark(const std::string& label) {
    if (running_.load(std::memory_order_relaxed) == 0) return;
    const std::lock_guard lock(mutex_);
    if (running_.load() != 0) trace_.mark(label);
  }

  void note_allocation(BlockHeader* header) {
    header->recording = 0;
    if (scope_depth == 0 || running_.load(std::memory_order_relaxed) == 0) return;
    const std::lock_guard lock(mutex_);
    header->recording = running_.load();
    if (header->recording == 0) return;
    header->trace_block = next_block_++;
    trace_.allocate(header->trace_block, static_cast<int64_t>(header->bytes));
  }

  void note_free(const BlockHeader* header) {
    if (header->recording == 0 || header->recording != running_.load(std::memory_order_relaxed)) return;
    const std::lock_guard lock(mutex_);
    if (header->recording == running_.load()) trace_.free(header->trace_block);
  }

 private:
  std::mutex mutex_;
  std::atomic<int64_t> running_{0};  // number of the recording
  int64_t recordings_ = 0;
  int64_t next_block_ = 0;
  AllocationTrace trace_;
};

// Never destroyed: tensors with static lifetime are freed after this file's own statics would be gone.
TraceRecorder& recorder() {
  static auto* const instance = new TraceRecorder;
  return *instance;
}

class MeteredAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    const auto device = c10::Device(c10::DeviceType::CPU);
    if (bytes == 0) return {nullptr, nullptr, &release, device};
    if (scope_depth > 0) {
      check_budget(static_cast<int64_t>(bytes));
      raise(largest, static_cast<int64_t>(bytes));
    }
    auto* block = static_cast<char*>(c10::alloc_cpu(bytes + kHeaderBytes));
    auto* header = reinterpret_cast<BlockHeader*>(block);
    header->bytes = bytes;
    recorder().note_allocation(header);
    const int64_t now = allocated.fetch_add(static_cast<int64_t>(bytes)) + static_cast<int64_t>(bytes);
    raise(peak, now);
    void* data = block + kHeaderBytes;
    return {data, data, &release, device};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* destination, const void* source, std::size_t count) const override {
    default_copy_data(destination, source, count);
  }

  static void release(void* data) {
    if (!data) return;
    char* block = static_cast<char*>(data) - kHeaderBytes;
    const auto* header = reinterpret_cast<const BlockHeader*>(block);
    recorder().note_free(header);
    allocated.fetch_sub(static_cast<int64_t>(header->bytes));
    c10::free_cpu(block);
  }

  static inline std::atomic<int64_t> allocated{0}, peak{0}, largest{0}, limit{0}, ooms{0}, scoped_count{0},
      refuse_at{0};

 private:
  static void raise(std::atomic<int64_t>& highest, int64_t value) {
    int64_t seen = highest.load(std::memory_order_relaxed);
    while (value > seen && !highest.compare_exchange_weak(seen, value)) {
    }
  }

  static void check_budget(int64_t bytes) {
    const int64_t count = scoped_count.fetch_add(1) + 1;
    int64_t chosen = refuse_at.load();
    const bool forced = chosen != 0 && count >= chosen && refuse_at.compare_exchange_strong(chosen, 0);
    const int64_t budget = limit.load();
    const int64_t held = allocated.load();
    if (!forced && (budget == 0 || held + bytes <= budget)) return;
    ooms.fetch_add(1);
    TORCH_CHECK_WITH(OutOfMemoryError, false, "[host memory] out of memory: ", bytes, " bytes asked for, ", held,
                     " held, budget ", budget, " bytes");
  }
};

MeteredAllocator& meter() {
  static MeteredAllocator allocator;
  return allocator;
}

std::atomic<bool> installed{false};

const HostLimits& limits() {
  static const HostLimits instance;
  return instance;
}

// Second number of /proc/self/statm, in pages, less the third: pages of mapped files can be dropped at any time, and
// count as available already.
int64_t read_resident_bytes() {
  static const int64_t page_bytes = sysconf(_SC_PAGE_SIZE);
  const std::string text = read_kernel_file("/proc/self/statm");
  char* end = nullptr;
  std::strtoll(text.c_str(), &end, 10);
  const int64_t resident = std::strtoll(end, &end, 10), shared = std::strtoll(end, nullptr, 10);
  return (resident - shared) * page_bytes;
}

std::atomic<int64_t> set_aside_bytes{0};

}  // namespace

void install_host_meter() {
  if (installed.exchange(true)) return;
  // All blocks come from the heap (glibc caps M_MMAP_THRESHOLD at 32 MiB, so mapping is switched off instead),
  // and the heap's top is not given back between steps (-1: never; release_cached() does it on demand).
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
  c10::SetCPUAllocator(&meter(), kPriority);
}

bool host_meter_installed() { return installed.load(); }

HostMemorySource::HostMemorySource() { install_host_meter(); }

MemorySample HostMemorySource::sample() const {
  MemorySample out;
  // Nothing is rounded, cut or cached here: one figure answers for live, active and reserved bytes.
  out.allocated_bytes = MeteredAllocator::allocated.load();
  out.requested_bytes = out.active_bytes = out.reserved_bytes = out.allocated_bytes;
  out.peak_allocated_bytes = out.peak_reserved_bytes = MeteredAllocator::peak.load();
  out.ooms = MeteredAllocator::ooms.load();
  const HostReading machine = limits().read();
  out.held_bytes = std::max<int64_t>(0, read_resident_bytes() - set_aside_bytes.load());
  out.device_free_bytes = machine.available_bytes;
  out.device_total_bytes = machine.total_bytes;
  out.budget_bytes = MeteredAllocator::limit.load();
  out.largest_block_bytes = MeteredAllocator::largest.load();
  return out;
}

void HostMemorySource::reset_peak() { MeteredAllocator::peak.store(MeteredAllocator::allocated.load()); }

int64_t HostMemorySource::take_peak() { return MeteredAllocator::peak.exchange(MeteredAllocator::allocated.load()); }

void HostMemorySource::release_cached() { malloc_trim(0); }

void HostMemorySource::set_limit(int64_t budget_bytes) { MeteredAllocator::limit.store(budget_bytes); }

void set_host_bytes_aside(int64_t bytes) { set_aside_bytes.store(bytes); }

HostBudgetScope::HostBudgetScope() { ++scope_depth; }
HostBudgetScope::~HostBudgetScope() { --scope_depth; }

void refuse_host_allocation(int64_t n) {
  MeteredAllocator::refuse_at.store(n == 0 ? 0 : MeteredAllocator::scoped_count.load() + n);
}

int64_t host_scoped_allocations() { return MeteredAllocator::scoped_count.load(); }

void start_host_trace() {
  install_host_meter();
  recorder().start();
}

AllocationTrace stop_host_trace() { return recorder().stop(); }

void host_trace_mark(const std::string& label) { recorder().mark(label); }

int64_t host_total_bytes() { return limits().read().total_bytes; }

int64_t host_available_bytes() { return limits().read().available_bytes; }

int64_t host_peak_resident_bytes() {
  return find_kernel_number(read_kernel_file("/proc/self/status"), "VmHWM:", 0) * 1024;
}

}  // namespace yolo9
