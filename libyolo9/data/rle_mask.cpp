#include <yolo9/data/rle_mask.h>

#include <algorithm>
#include <limits>
#include <numeric>

namespace yolo9 {

std::optional<std::vector<int64_t>> decode_run_lengths(const std::string& text) {
  constexpr int kMostGroups = 8;  // 40 bits, more than any picture needs
  std::vector<int64_t> lengths;
  for (size_t at = 0; at < text.size();) {
    int64_t value = 0;
    bool more = true;
    for (int group = 0; more; ++group) {
      if (at == text.size() || group == kMostGroups) return std::nullopt;
      const int bits = static_cast<unsigned char>(text[at++]) - '0';
      if (bits < 0 || bits > 63) return std::nullopt;
      value |= static_cast<int64_t>(bits & 31) << (5 * group);
      more = (bits & 32) != 0;
      if (!more && (bits & 16) != 0) value -= int64_t{1} << (5 * (group + 1));
    }
    if (lengths.size() > 2) value += lengths[lengths.size() - 2];
    if (value < 0) return std::nullopt;
    lengths.push_back(value);
  }
  return lengths;
}

std::optional<RunMask> RunMask::make(int64_t height, int64_t width, const std::vector<int64_t>& lengths) {
  if (std::min(height, width) < 1 || std::max(height, width) > kLongestMaskSide) return std::nullopt;
  RunMask mask;
  int64_t at = 0;
  bool set = false;
  for (const int64_t length : lengths) {
    if (length < 0 || length > height * width - at) return std::nullopt;
    const int64_t end = at + length;
    while (set && at < end) {
      const int64_t x = at / height, stop = std::min(end, (x + 1) * height);
      const int64_t y = at % height;
      // A run of length 0 between two others does not part them.
      if (!mask.runs_.empty() && mask.runs_.back().x == x && mask.runs_.back().y2 == y) {
        mask.runs_.back().y2 += stop - at;
      } else {
        mask.runs_.push_back({x, y, y + stop - at});
      }
      mask.area_ += stop - at;
      at = stop;
    }
    at = end;
    set = !set;
  }
  mask.column_begin_.assign(static_cast<size_t>(width) + 1, 0);
  for (const Run& run : mask.runs_) ++mask.column_begin_[static_cast<size_t>(run.x) + 1];
  std::partial_sum(mask.column_begin_.begin(), mask.column_begin_.end(), mask.column_begin_.begin());
  return mask;
}

Corners RunMask::box() const {
  if (runs_.empty()) return {};
  int64_t top = runs_[0].y1, bottom = runs_[0].y2;
  for (const Run& run : runs_) {
    top = std::min(top, run.y1);
    bottom = std::max(bottom, run.y2);
  }
  return {static_cast<double>(runs_.front().x), static_cast<double>(top), static_cast<double>(runs_.back().x + 1),
          static_cast<double>(bottom)};
}

bool RunMask::is_set(int64_t x, int64_t y) const {
  if (x < 0 || x + 1 >= static_cast<int64_t>(column_begin_.size())) return false;
  const auto begin = runs_.begin() + static_cast<std::ptrdiff_t>(column_begin_[static_cast<size_t>(x)]);
  const auto end = runs_.begin() + static_cast<std::ptrdiff_t>(column_begin_[static_cast<size_t>(x) + 1]);
  const auto after = std::upper_bound(begin, end, y, [](int64_t value, const Run& run) { return value < run.y1; });
  return after != begin && y < std::prev(after)->y2;
}

// Runs of neighbouring columns that overlap belong together: a union of sets, the root being the first run.
std::vector<RunMask::Part> RunMask::find_parts() const {
  std::vector<size_t> parent(runs_.size());
  std::iota(parent.begin(), parent.end(), size_t{0});
  const auto root_of = [&parent](size_t i) {
    while (parent[i] != i) i = parent[i] = parent[parent[i]];
    return i;
  };
  for (size_t column = 1; column + 1 < column_begin_.size(); ++column) {
    size_t left = column_begin_[column - 1], here = column_begin_[column];
    while (left < column_begin_[column] && here < column_begin_[column + 1]) {
      const Run &a = runs_[left], &b = runs_[here];
      if (a.y1 < b.y2 && b.y1 < a.y2) {
        const size_t one = root_of(left), other = root_of(here);
        parent[std::max(one, other)] = std::min(one, other);
      }
      a.y2 < b.y2 ? ++left : ++here;
    }
  }
  std::vector<int64_t> areas(runs_.size(), 0);
  for (size_t i = 0; i < runs_.size(); ++i) areas[root_of(i)] += runs_[i].y2 - runs_[i].y1;
  std::vector<Part> parts;
  for (size_t i = 0; i < runs_.size(); ++i) {
    if (areas[i] > 0) parts.push_back({i, areas[i]});
  }
  std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.area > b.area; });
  return parts;
}

// Along pixel edges with the part on the right hand, from the top left corner of its pixel (x, y), the leftmost and
// there the topmost: so that the edge before the first one came from below.
std::optional<std::vector<double>> RunMask::trace(int64_t x, int64_t y, int64_t& edges_left) const {
  // By direction (right, down, left, up): the step, and the pixels ahead on the right and on the left hand.
  constexpr int kStep[4][2] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};
  constexpr int kRight[4][2] = {{0, 0}, {-1, 0}, {-1, -1}, {0, -1}};
  constexpr int kLeft[4][2] = {{0, -1}, {0, 0}, {-1, 0}, {-1, -1}};
  std::vector<double> points;
  const int64_t first_x = x, first_y = y;
  int direction = 0, before = 3;
  do {
    if (direction != before) {
      points.push_back(static_cast<double>(x));
      points.push_back(static_cast<double>(y));
    }
    before = direction;
    if (--edges_left < 0) return std::nullopt;
    x += kStep[direction][0];
    y += kStep[direction][1];
    if (!is_set(x + kRight[direction][0], y + kRight[direction][1])) {
      direction = (direction + 1) % 4;
    } else if (is_set(x + kLeft[direction][0], y + kLeft[direction][1])) {
      direction = (direction + 3) % 4;
    }
  } while (x != first_x || y != first_y || direction != 0);
  return points;
}

std::optional<std::vector<std::vector<double>>> RunMask::outlines(size_t most_parts) const {
  std::vector<std::vector<double>> outlines;
  int64_t edges_left = kLongestOutline;
  for (const Part& part : find_parts()) {
    if (outlines.size() == most_parts) break;
    const Run& first = runs_[part.first_run];
    std::optional<std::vector<double>> outline = trace(first.x, first.y1, edges_left);
    if (!outline) return std::nullopt;
    outlines.push_back(std::move(*outline));
  }
  return outlines;
}

std::vector<double> join_polygons(const std::vector<std::vector<double>>& parts) {
  if (parts.empty()) return {};
  constexpr size_t kMostPairs = size_t{1} << 22;  // looked at for all bridges together
  const size_t pairs = kMostPairs / parts.size() + 1;
  std::vector<double> joined = parts.front();
  for (size_t p = 1; p < parts.size(); ++p) {
    const std::vector<double>& part = parts[p];
    const size_t count = joined.size() / 2, part_count = part.size() / 2;
    size_t step = 1;
    while ((count / step + 1) * (part_count / step + 1) > pairs) step *= 2;
    double nearest = std::numeric_limits<double>::infinity();
    size_t from = 0, to = 0;
    for (size_t i = 0; i < count; i += step) {
      for (size_t j = 0; j < part_count; j += step) {
        const double dx = joined[2 * i] - part[2 * j], dy = joined[2 * i + 1] - part[2 * j + 1];
        if (dx * dx + dy * dy >= nearest) continue;
        nearest = dx * dx + dy * dy;
        from = i;
        to = j;
      }
    }
    // ... from, to, ..., last, first, ..., to, from, ...
    std::vector<double> detour(part.begin() + static_cast<std::ptrdiff_t>(2 * to), part.end());
    detour.insert(detour.end(), part.begin(), part.begin() + static_cast<std::ptrdiff_t>(2 * to + 2));
    detour.insert(detour.end(), {joined[2 * from], joined[2 * from + 1]});
    joined.insert(joined.begin() + static_cast<std::ptrdiff_t>(2 * from + 2), detour.begin(), detour.end());
  }
  return joined;
}

}  // namespace yolo9
