#include <yolo9/memory/host_source.h>

#include <atomic>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include <malloc.h>
#include <unistd.h>

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/alignment.h>
#include <c10/core/impl/alloc_cpu.h>
#include <c10/util/Exception.h>

namespace yolo9 {

namespace {

// Each block is preceded by its size; the header is one alignment unit so that the data stays aligned.
constexpr size_t kHeaderBytes = c10::gAlignment;
// A higher priority than LibTorch's own allocator has.
constexpr uint8_t kPriority = 100;

thread_local int scope_depth = 0;

class MeteredAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    const auto device = c10::Device(c10::DeviceType::CPU);
    if (bytes == 0) return {nullptr, nullptr, &release, device};
    if (scope_depth > 0) check_budget(static_cast<int64_t>(bytes));
    auto* block = static_cast<char*>(c10::alloc_cpu(bytes + kHeaderBytes));
    *reinterpret_cast<size_t*>(block) = bytes;
    const int64_t now = allocated.fetch_add(static_cast<int64_t>(bytes)) + static_cast<int64_t>(bytes);
    int64_t seen = peak.load();
    while (now > seen && !peak.compare_exchange_weak(seen, now)) {
    }
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
    allocated.fetch_sub(static_cast<int64_t>(*reinterpret_cast<size_t*>(block)));
    c10::free_cpu(block);
  }

  static inline std::atomic<int64_t> allocated{0}, peak{0}, limit{0}, ooms{0}, scoped_count{0}, refuse_at{0};

 private:
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

// A cgroup file holds one number or "max".
int64_t read_limit(const std::string& path) {
  std::ifstream file(path);
  int64_t value = 0;
  return file >> value ? value : std::numeric_limits<int64_t>::max();
}

// The value in bytes of a "Name:  123 kB" line.
int64_t read_kib_line(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(name, 0) != 0) continue;
    std::istringstream rest(line.substr(name.size()));
    int64_t kib = 0;
    rest >> kib;
    return kib * 1024;
  }
  return 0;
}

// Folder of this process' cgroup, version 2 or version 1's memory controller, as seen from inside a container.
struct Cgroup {
  int64_t limit = std::numeric_limits<int64_t>::max(), used = 0;
};
Cgroup read_cgroup() {
  Cgroup out;
  std::ifstream file("/proc/self/cgroup");
  std::string path_v2, path_v1;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("0::", 0) == 0) path_v2 = line.substr(3);
    const size_t at = line.find(":memory:");
    if (at != std::string::npos) path_v1 = line.substr(at + 8);
  }
  const auto consider = [&](const std::string& limit_file, const std::string& used_file) {
    const int64_t value = read_limit(limit_file);
    if (value < out.limit) {
      out.limit = value;
      const int64_t used = read_limit(used_file);
      out.used = used == std::numeric_limits<int64_t>::max() ? 0 : used;
    }
  };
  for (const std::string& sub : {path_v2, std::string()}) {
    consider("/sys/fs/cgroup" + sub + "/memory.max", "/sys/fs/cgroup" + sub + "/memory.current");
  }
  for (const std::string& sub : {path_v1, std::string()}) {
    consider("/sys/fs/cgroup/memory" + sub + "/memory.limit_in_bytes",
             "/sys/fs/cgroup/memory" + sub + "/memory.usage_in_bytes");
  }
  return out;
}

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
  out.allocated_bytes = MeteredAllocator::allocated.load();
  out.peak_allocated_bytes = MeteredAllocator::peak.load();
  // The host heap has no notion of a reserve worth planning with: what tensors hold is what counts.
  out.reserved_bytes = out.allocated_bytes;
  out.peak_reserved_bytes = out.peak_allocated_bytes;
  out.ooms = MeteredAllocator::ooms.load();
  out.device_free_bytes = host_available_bytes();
  out.device_total_bytes = host_total_bytes();
  out.budget_bytes = MeteredAllocator::limit.load();
  return out;
}

void HostMemorySource::reset_peak() { MeteredAllocator::peak.store(MeteredAllocator::allocated.load()); }

void HostMemorySource::release_cached() { malloc_trim(0); }

void HostMemorySource::set_limit(int64_t budget_bytes) { MeteredAllocator::limit.store(budget_bytes); }

HostBudgetScope::HostBudgetScope() { ++scope_depth; }
HostBudgetScope::~HostBudgetScope() { --scope_depth; }

void refuse_host_allocation(int64_t n) {
  MeteredAllocator::refuse_at.store(n == 0 ? 0 : MeteredAllocator::scoped_count.load() + n);
}

int64_t host_scoped_allocations() { return MeteredAllocator::scoped_count.load(); }

int64_t host_total_bytes() {
  const int64_t physical = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<int64_t>(sysconf(_SC_PAGE_SIZE));
  return std::min(physical, read_cgroup().limit);
}

int64_t host_available_bytes() {
  const int64_t machine = read_kib_line("/proc/meminfo", "MemAvailable:");
  const Cgroup cgroup = read_cgroup();
  const bool limited = cgroup.limit != std::numeric_limits<int64_t>::max();
  return limited ? std::min(machine, std::max<int64_t>(0, cgroup.limit - cgroup.used)) : machine;
}

int64_t host_peak_resident_bytes() { return read_kib_line("/proc/self/status", "VmHWM:"); }

}  // namespace yolo9
