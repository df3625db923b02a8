#include <yolo9/memory/caching_pool.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include <c10/util/Exception.h>

namespace yolo9 {

namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kSizeUnit = 512;
constexpr int64_t kSmallSegment = 2 * kMiB;
constexpr int64_t kLargeSegment = 20 * kMiB;
// From here on a request has a segment of its own, rounded up to kOwnSegmentUnit.
constexpr int64_t kOwnSegmentRequest = 10 * kMiB;
constexpr int64_t kOwnSegmentUnit = 2 * kMiB;

int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }
int64_t round_down(int64_t value, int64_t unit) { return value / unit * unit; }

}  // namespace

int64_t CachingPool::round_size(int64_t bytes) { return round_up(bytes, kSizeUnit); }

CachingPool::CachingPool(bool small, bool expandable, int64_t address_bytes)
    : small_(small), expandable_(expandable), page_bytes_(small ? kSmallSegment : kLargeSegment) {
  if (!expandable_) return;
  segments_[next_segment_++][0] = {round_up(address_bytes, page_bytes_), State::Unmapped};
}

std::optional<CachingPool::Place> CachingPool::reuse(int64_t bytes) {
  auto found = free_.lower_bound({bytes, 0, 0});
  if (found == free_.end()) return std::nullopt;
  const auto place_of = [](const auto& entry) { return Place{std::get<1>(entry), std::get<2>(entry)}; };
  // A block that could be extended into unmapped pages counts as large as it could become, so that the growing
  // end is the last to be cut.
  if (expandable_) {
    for (auto next = std::next(found);
         next != free_.end() && extendable_bytes(place_of(*next)) < extendable_bytes(place_of(*found)); ++next) {
      found = next;
    }
  }
  return take(place_of(*found), bytes);
}

std::optional<int64_t> CachingPool::growth(int64_t bytes) const {
  if (!expandable_) return segment_bytes(bytes);
  const auto mapping = plan_mapping(bytes);
  if (!mapping) return std::nullopt;
  return mapping->total_bytes;
}

CachingPool::Place CachingPool::grow(int64_t bytes) {
  if (!expandable_) {
    const int64_t id = next_segment_++;
    segments_[id];
    reserved_bytes_ += segment_bytes(bytes);
    add_free(id, 0, segment_bytes(bytes));
    return take({id, 0}, bytes);
  }
  const auto mapping = plan_mapping(bytes);
  TORCH_CHECK(mapping, "[caching pool] grow() without growth()");
  Segment& segment = segments_.begin()->second;
  for (const auto& [offset, mapped_bytes] : mapping->holes) {
    const int64_t rest = segment.at(offset).bytes - mapped_bytes;
    if (rest > 0) segment[offset + mapped_bytes] = {rest, State::Unmapped};
    segment.at(offset) = {mapped_bytes, State::Used};
    reserved_bytes_ += mapped_bytes;
    used_bytes_ += mapped_bytes;
    free({0, offset});  // now it is a block like any other, and merges with its neighbours
  }
  return take({0, mapping->first}, bytes);
}

// The lowest run of free and unmapped blocks that is long enough. A free block just before an unmapped one is
// part of the run.
std::optional<CachingPool::Mapping> CachingPool::plan_mapping(int64_t bytes) const {
  const Segment& segment = segments_.begin()->second;
  for (auto hole = segment.begin(); hole != segment.end(); ++hole) {
    if (hole->second.state != State::Unmapped) continue;
    auto block = hole;
    if (hole != segment.begin() && std::prev(hole)->second.state == State::Free) block = std::prev(hole);
    Mapping out;
    out.first = block->first;
    int64_t have = 0;
    for (; block != segment.end() && block->second.state != State::Used && have < bytes; ++block) {
      if (block->second.state == State::Free) {
        have += block->second.bytes;
        continue;
      }
      const int64_t mapped = std::min(round_up(bytes - have, page_bytes_), block->second.bytes);
      out.holes[block->first] = mapped;
      out.total_bytes += mapped;
      have += mapped;
    }
    if (have >= bytes) return out;
  }
  return std::nullopt;
}

int64_t CachingPool::segment_bytes(int64_t bytes) const {
  if (small_) return kSmallSegment;
  return bytes < kOwnSegmentRequest ? kLargeSegment : round_up(bytes, kOwnSegmentUnit);
}

bool CachingPool::is_worth_keeping(int64_t rest_bytes) const {
  return small_ || expandable_ ? rest_bytes >= kSizeUnit : rest_bytes > kSmallRequest;
}

int64_t CachingPool::extendable_bytes(Place place) const {
  const Segment& segment = segments_.at(place.segment);
  const auto block = segment.find(place.offset);
  const auto next = std::next(block);
  const bool extendable = next != segment.end() && next->second.state == State::Unmapped;
  return block->second.bytes + (extendable ? next->second.bytes : 0);
}

CachingPool::Place CachingPool::take(Place place, int64_t bytes) {
  Segment& segment = segments_.at(place.segment);
  drop_free(place.segment, place.offset);
  Block& block = segment.at(place.offset);
  const int64_t rest = block.bytes - bytes;
  TORCH_CHECK(rest >= 0, "[caching pool] a block of ", block.bytes, " bytes for a request of ", bytes);
  block.state = State::Used;
  if (is_worth_keeping(rest)) {
    block.bytes = bytes;
    add_free(place.segment, place.offset + bytes, rest);
  }
  used_bytes_ += segment.at(place.offset).bytes;
  return place;
}

int64_t CachingPool::free(Place place) {
  Segment& segment = segments_.at(place.segment);
  auto block = segment.find(place.offset);
  TORCH_CHECK(block != segment.end() && block->second.state == State::Used, "[caching pool] freed twice");
  const int64_t bytes = block->second.bytes;
  used_bytes_ -= bytes;
  int64_t first = place.offset, merged = bytes;
  if (const auto next = std::next(block); next != segment.end() && next->second.state == State::Free) {
    merged += next->second.bytes;
    drop_free(place.segment, next->first);
    segment.erase(next);
  }
  if (block != segment.begin() && std::prev(block)->second.state == State::Free) {
    const auto previous = std::prev(block);
    merged += previous->second.bytes;
    first = previous->first;
    drop_free(place.segment, previous->first);
    segment.erase(block);
  }
  add_free(place.segment, first, merged);
  return bytes;
}

void CachingPool::trim() {
  std::vector<Place> candidates;
  for (const auto& entry : free_) candidates.push_back({std::get<1>(entry), std::get<2>(entry)});
  for (const Place place : candidates) {
    const Segment& segment = segments_.at(place.segment);
    const auto [begin, end] = releasable_range(segment, place.offset);
    if (begin >= end) continue;
    if (expandable_) {
      trim_pages(place.segment, place.offset);
    } else {
      drop_free(place.segment, place.offset);
      reserved_bytes_ -= end - begin;
      segments_.erase(place.segment);
    }
  }
}

// Unmaps the whole pages of one free block. What is left of it at either side stays mapped.
void CachingPool::trim_pages(int64_t id, int64_t offset) {
  Segment& segment = segments_.at(id);
  const auto [begin, end] = releasable_range(segment, offset);
  const int64_t block_end = offset + segment.at(offset).bytes;
  drop_free(id, offset);
  segment.erase(offset);
  if (begin > offset) add_free(id, offset, begin - offset);
  if (block_end > end) add_free(id, end, block_end - end);
  reserved_bytes_ -= end - begin;
  auto hole = segment.insert_or_assign(begin, Block{end - begin, State::Unmapped}).first;
  if (const auto next = std::next(hole); next != segment.end() && next->second.state == State::Unmapped) {
    hole->second.bytes += next->second.bytes;
    segment.erase(next);
  }
  if (hole != segment.begin() && std::prev(hole)->second.state == State::Unmapped) {
    std::prev(hole)->second.bytes += hole->second.bytes;
    segment.erase(hole);
  }
}

int64_t CachingPool::block_bytes(Place place) const { return segments_.at(place.segment).at(place.offset).bytes; }

// The part of a free block that could be given back, as [begin, end); empty if begin >= end.
std::pair<int64_t, int64_t> CachingPool::releasable_range(const Segment& segment, int64_t offset) const {
  const int64_t bytes = segment.at(offset).bytes;
  if (!expandable_) return {0, segment.size() == 1 ? bytes : 0};
  return {round_up(offset, page_bytes_), round_down(offset + bytes, page_bytes_)};
}

void CachingPool::add_free(int64_t segment, int64_t offset, int64_t bytes) {
  Segment& blocks = segments_.at(segment);
  blocks[offset] = {bytes, State::Free};
  free_.emplace(bytes, segment, offset);
  const auto [begin, end] = releasable_range(blocks, offset);
  releasable_bytes_ += std::max<int64_t>(0, end - begin);
}

void CachingPool::drop_free(int64_t segment, int64_t offset) {
  const Segment& blocks = segments_.at(segment);
  const auto [begin, end] = releasable_range(blocks, offset);
  releasable_bytes_ -= std::max<int64_t>(0, end - begin);
  free_.erase({blocks.at(offset).bytes, segment, offset});
}

}  // namespace yolo9
