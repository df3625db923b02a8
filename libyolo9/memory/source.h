// What an allocator says of itself. One interface for every kind of memory, so that the governor above it
// runs, and is tested, without the device it is meant for.
#pragma once

#include <cstdint>
#include <string>

namespace yolo9 {

struct MemorySample {
  int64_t allocated_bytes = 0;       // held by live tensors
  int64_t reserved_bytes = 0;        // held by the allocator, in use or cached
  int64_t peak_allocated_bytes = 0;  // highest allocated_bytes since reset_peak()
  int64_t peak_reserved_bytes = 0;   // highest reserved_bytes since reset_peak()
  int64_t retries = 0;               // allocations that worked only after the cache was emptied
  int64_t ooms = 0;                  // allocations refused
  int64_t device_free_bytes = 0;     // free on the device, other processes considered
  int64_t device_total_bytes = 0;
  int64_t budget_bytes = 0;          // what this process may use; 0: no limit was set
};

class MemorySource {
 public:
  virtual ~MemorySource() = default;
  virtual std::string name() const = 0;
  virtual MemorySample sample() const = 0;
  virtual void reset_peak() = 0;
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
