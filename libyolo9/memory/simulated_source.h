// A model of LibTorch's CUDA caching allocator, so that reserved bytes and fragmentation can be foreseen
// without a device.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include <yolo9/memory/caching_pool.h>
#include <yolo9/memory/source.h>
#include <yolo9/memory/trace.h>

namespace yolo9 {

struct SimulatedOptions {
  int64_t device_total_bytes = int64_t{24} << 30;
  int64_t context_bytes = 0;  // held by this process besides the allocator
  bool expandable_segments = false;
};

// The highest figures between one mark of a trace and the next.
struct PhasePeak {
  std::string label;
  int64_t allocated_bytes = 0;
  int64_t reserved_bytes = 0;
};

struct ReplayResult {
  int64_t peak_allocated_bytes = 0;
  int64_t peak_reserved_bytes = 0;
  int64_t peak_inactive_split_bytes = 0;
  double fragmentation = 0;       // share of the peak reserve that the peak of live blocks does not account for
  int64_t retries = 0;            // during this replay
  std::vector<PhasePeak> phases;  // one for each mark, in order; what precedes the first mark is in none
};

// How it works, as far as sizes go:
// - sizes are rounded up to 512 bytes; requests of up to 1 MiB come from a small pool with segments of 2 MiB,
//   requests under 10 MiB from segments of 20 MiB, larger ones have their own, rounded up to 2 MiB;
// - the smallest free block that suffices is taken, and cut if the rest is at least 512 bytes (small pool) or
//   more than 1 MiB (large pool); a freed block merges with free neighbours in its segment;
// - if a new segment would pass the limit or what the device has left, all wholly free segments are given back
//   and it is tried once more; then the request is refused.
// With expandable segments each pool is one segment, whose pages (2 MiB small, 20 MiB large) are mapped as they
// are needed; blocks are cut wherever at least 512 bytes remain; wholly free pages can be given back.
// Not modelled: streams (there is one), and options of the allocator other than expandable segments.
// Not thread-safe.
class SimulatedCachingSource : public MemorySource {
 public:
  using Handle = int64_t;

  explicit SimulatedCachingSource(SimulatedOptions options);

  std::string name() const override { return options_.expandable_segments ? "simulated (expandable)" : "simulated"; }
  // active_bytes equals allocated_bytes, since there is one stream. inactive_split_bytes is whatever of the
  // reserve is free but cannot be given back, also with expandable segments (CUDA's allocator says 0 there).
  MemorySample sample() const override;
  void reset_peak() override;
  void release_cached() override;
  void set_limit(int64_t budget_bytes) override { budget_bytes_ = budget_bytes; }

  // What other processes hold of the device from now on.
  void set_others_bytes(int64_t bytes) { others_bytes_ = bytes; }

  // Throws c10::OutOfMemoryError; what is held stays as it was, except that cached segments are gone.
  Handle allocate(int64_t bytes);
  void release(Handle handle);

  // On top of what is held already. Blocks that the trace leaves alive are freed at the end. When a request
  // does not fit, the blocks are freed and the exception goes on to the caller.
  ReplayResult replay(const AllocationTrace& trace);

 private:
  struct Live {
    bool small = false;
    CachingPool::Place place;
    int64_t requested_bytes = 0;
  };
  CachingPool& pool(bool small) { return small ? small_ : large_; }
  bool can_grow(int64_t bytes) const;
  int64_t reserved_bytes() const { return small_.reserved_bytes() + large_.reserved_bytes(); }
  int64_t allocated_bytes() const { return small_.used_bytes() + large_.used_bytes(); }
  int64_t inactive_split_bytes() const;
  [[noreturn]] void refuse(int64_t bytes);

  SimulatedOptions options_;
  CachingPool small_, large_;
  std::unordered_map<Handle, Live> live_;
  Handle next_handle_ = 1;
  int64_t requested_bytes_ = 0;
  int64_t peak_allocated_bytes_ = 0, peak_reserved_bytes_ = 0;
  int64_t budget_bytes_ = 0, others_bytes_ = 0;
  int64_t retries_ = 0, ooms_ = 0;
};

}  // namespace yolo9
