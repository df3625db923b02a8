#include <yolo9/memory/cuda_source.h>

#include <algorithm>
#include <string>
#include <utility>

#include <ATen/Context.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>

#include <yolo9/core/error.h>

namespace yolo9 {

namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

// Refusals by the optional throw_on_cudamalloc_oom policy are counted apart, where LibTorch has that policy.
template <typename Stats>
int64_t count_refusals(const Stats& stats) {
  if constexpr (requires { stats.num_oom_rejections; }) return stats.num_ooms + stats.num_oom_rejections;
  return stats.num_ooms;
}

class CudaMemorySource : public MemorySource {
 public:
  explicit CudaMemorySource(int device) : device_(static_cast<c10::DeviceIndex>(device)) {
    at::globalContext().lazyInitDevice(c10::DeviceType::CUDA);
  }

  std::string name() const override { return "cuda:" + std::to_string(device_); }

  MemorySample sample() const override {
    constexpr auto kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    const auto stats = allocator::getDeviceStats(device_);
    const auto [free_bytes, total_bytes] = allocator::get()->getMemoryInfo(device_);
    MemorySample out;
    out.allocated_bytes = stats.allocated_bytes[kAll].current;
    out.requested_bytes = stats.requested_bytes[kAll].current;
    out.active_bytes = stats.active_bytes[kAll].current;
    out.reserved_bytes = stats.reserved_bytes[kAll].current;
    out.inactive_split_bytes = stats.inactive_split_bytes[kAll].current;
    out.peak_allocated_bytes = stats.allocated_bytes[kAll].peak;
    out.peak_reserved_bytes = stats.reserved_bytes[kAll].peak;
    out.retries = stats.num_alloc_retries;
    out.ooms = count_refusals(stats);
    out.held_bytes = out.reserved_bytes;
    out.device_free_bytes = static_cast<int64_t>(free_bytes);
    out.device_total_bytes = static_cast<int64_t>(total_bytes);
    out.budget_bytes = budget_bytes_;
    return out;
  }

  void reset_peak() override { allocator::resetPeakStats(device_); }
  int64_t take_peak() override {
    constexpr auto kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    const int64_t peak = allocator::getDeviceStats(device_).allocated_bytes[kAll].peak;
    reset_peak();
    return peak;
  }
  void release_cached() override { allocator::emptyCache(); }

  void set_limit(int64_t budget_bytes) override {
    const auto total = static_cast<double>(allocator::get()->getMemoryInfo(device_).second);
    const double share = budget_bytes == 0 ? 1.0 : std::min(1.0, static_cast<double>(budget_bytes) / total);
    allocator::setMemoryFraction(share, device_);
    budget_bytes_ = budget_bytes;
  }

 private:
  c10::DeviceIndex device_;
  int64_t budget_bytes_ = 0;
};

}  // namespace

bool cuda_memory_available() { return c10::cuda::device_count() > 0; }

std::shared_ptr<MemorySource> make_cuda_memory_source(int device) {
  const int devices = c10::cuda::device_count();
  if (device < 0 || device >= devices) {
    throw Error(ErrorKind::Device,
                "CUDA device " + std::to_string(device) + " cannot be used: the machine has " +
                    std::to_string(devices) + " usable CUDA devices",
                "", devices == 0 ? "use --device cpu" : "use a device from 0 to " + std::to_string(devices - 1));
  }
  return std::make_shared<CudaMemorySource>(device);
}

}  // namespace yolo9
