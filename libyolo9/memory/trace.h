// A recorded sequence of allocations and frees, to be replayed through a model of another allocator.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace yolo9 {

struct TraceEvent {
  enum class Kind { Allocate, Free, Mark };
  Kind kind = Kind::Allocate;
  int64_t block = 0;  // which block; for a mark, which of labels()
  int64_t bytes = 0;  // asked for; allocations only
};

// Ordered: each block is allocated once and freed at most once, after that. Marks divide the sequence into
// phases ("forward", "backward", "step"): a phase lasts until the next mark.
//
// As text, one event a line:
//   yolo9-allocation-trace 1
//   a <block> <bytes>
//   f <block>
//   m <label>
class AllocationTrace {
 public:
  void allocate(int64_t block, int64_t bytes);
  void free(int64_t block);
  void mark(const std::string& label);  // not empty, one line
  // Puts blocks that were alive before the recording (weights, optimizer state) in front of all other events.
  // They are never freed; their block numbers are negative.
  void seed(const std::vector<int64_t>& bytes_of_blocks);

  const std::vector<TraceEvent>& events() const { return events_; }
  const std::string& label(const TraceEvent& mark) const { return labels_.at(static_cast<size_t>(mark.block)); }
  bool empty() const { return events_.empty(); }
  int64_t live_bytes() const { return live_bytes_; }  // asked for and not freed at the end
  int64_t peak_bytes() const;                         // most bytes asked for that were alive at one moment

  void write(const std::string& path) const;             // throws Error(Usage) if it cannot be written
  static AllocationTrace read(const std::string& path);  // throws Error(Usage) with file:line

 private:
  std::vector<TraceEvent> events_;
  std::vector<std::string> labels_;
  // Bytes of every block so far; 0 once freed.
  std::map<int64_t, int64_t> blocks_;
  int64_t live_bytes_ = 0;
  int64_t seeds_ = 0;
};

}  // namespace yolo9
