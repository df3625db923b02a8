// What an allocator says of itself. One interface for every kind of memory, so that the governor above it
// runs, and is tested, without the device it is meant for.
#pragma once

#include <cstdint>
#include <string>

namespace yolo9 {

struct MemorySample {
  int64_t allocated_bytes = 0;       // held by live tensors, rounded as the allocator rounds
  int64_t requested_bytes = 0;       // what those tensors asked for
  int64_t active_bytes = 0;          // allocated, or freed but still in use by a stream
  int64_t reserved_bytes = 0;        // held by the allocator, in use or cached
  int64_t inactive_split_bytes = 0;  // free parts of segments in use: cannot be given back (fragmentation)
  int64_t peak_allocated_bytes = 0;  // highest allocated_bytes since reset_peak()
  int64_t peak_reserved_bytes = 0;   // highest reserved_bytes since reset_peak()
  int64_t largest_block_bytes = 0;   // largest single allocation of a step so far; 0: not known
  int64_t retries = 0;               // allocations for which the cache had to be emptied
  int64_t ooms = 0;                  // allocations refused
  int64_t held_bytes = 0;            // what this process holds of the device, as far as it can tell: what becomes
                                     // free for others when it ends
  int64_t device_free_bytes = 0;     // free on the device now, other processes considered
  int64_t device_total_bytes = 0;
  int64_t budget_bytes = 0;  // what this process may use; 0: no limit was set
};

class MemorySource {
 public:
  virtual ~MemorySource() = default;
  virtual std::string name() const = 0;
  virtual MemorySample sample() const = 0;
  virtual void reset_peak() = 0;
  // peak_allocated_bytes, then reset_peak(): what is asked several times a step, without a look at the device.
  virtual int64_t take_peak() {
    const int64_t peak = sample().peak_allocated_bytes;
    reset_peak();
    return peak;
  }
  // Gives cached, unused memory back to the system.
  virtual void release_cached() = 0;
  // 0 lifts the limit.
  virtual void set_limit(int64_t budget_bytes) = 0;
};

// A budget as users write it: "8GiB", "500MB", "2147483648" (bytes), or "85%" of `available_bytes`.
// GB, MB and KB are powers of ten; GiB, MiB and KiB powers of two; a bare G, M or K means GiB, MiB, KiB.
// Throws Error(Usage) for anything else, for zero, negative or overflowing values.
int64_t parse_bytes(const std::string& text, int64_t available_bytes);

// "1.50 GiB": for messages.
std::string format_bytes(int64_t bytes);

}  // namespace yolo9
