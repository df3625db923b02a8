// The address bookkeeping of one pool of a caching allocator: segments taken from the device, cut into blocks.
// It decides where a request goes, and knows nothing of limits. Modelled on the behaviour that LibTorch
// documents for its CUDA allocator.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>

namespace yolo9 {

class CachingPool {
 public:
  // Requests of up to this many bytes belong to the small pool, all others to the large one.
  static constexpr int64_t kSmallRequest = int64_t{1} << 20;
  // All sizes given to a pool must have been rounded with this: up to a multiple of 512 bytes.
  static int64_t round_size(int64_t bytes);

  struct Place {
    int64_t segment = 0, offset = 0;
  };

  // With expandable segments the pool is one segment of `address_bytes`, of which pages are mapped as needed;
  // otherwise `address_bytes` means nothing.
  CachingPool(bool small, bool expandable, int64_t address_bytes);

  // The smallest free block that suffices, cut if the rest is worth keeping; none if there is no such block.
  std::optional<Place> reuse(int64_t bytes);
  // What would have to be reserved to satisfy a request that reuse() could not; none when the address space of
  // an expandable segment is used up.
  std::optional<int64_t> growth(int64_t bytes) const;
  // Reserves that, and places the request there.
  Place grow(int64_t bytes);
  // Merges the block with free neighbours. Returns its bytes.
  int64_t free(Place place);
  // Gives back what is wholly free: segments, or pages of an expandable segment.
  void trim();

  int64_t block_bytes(Place place) const;
  int64_t reserved_bytes() const { return reserved_bytes_; }
  int64_t used_bytes() const { return used_bytes_; }
  int64_t releasable_bytes() const { return releasable_bytes_; }  // what trim() would give back

 private:
  enum class State { Free, Used, Unmapped };
  struct Block {
    int64_t bytes = 0;
    State state = State::Free;
  };
  using Segment = std::map<int64_t, Block>;  // by offset
  // What an expandable segment maps for a request: page-aligned holes from the block at `first` on.
  struct Mapping {
    int64_t first = 0, total_bytes = 0;
    std::map<int64_t, int64_t> holes;  // offset to bytes
  };

  std::optional<Mapping> plan_mapping(int64_t bytes) const;
  int64_t segment_bytes(int64_t bytes) const;
  bool is_worth_keeping(int64_t rest_bytes) const;
  int64_t extendable_bytes(Place place) const;
  std::pair<int64_t, int64_t> releasable_range(const Segment& segment, int64_t offset) const;
  Place take(Place place, int64_t bytes);
  void add_free(int64_t segment, int64_t offset, int64_t bytes);
  void drop_free(int64_t segment, int64_t offset);
  void trim_pages(int64_t id, int64_t offset);

  bool small_, expandable_;
  int64_t page_bytes_;
  std::map<int64_t, Segment> segments_;  // in the order of their creation, which stands for their addresses
  int64_t next_segment_ = 0;
  std::set<std::tuple<int64_t, int64_t, int64_t>> free_;  // bytes, segment, offset
  int64_t reserved_bytes_ = 0, used_bytes_ = 0, releasable_bytes_ = 0;
};

}  // namespace yolo9
