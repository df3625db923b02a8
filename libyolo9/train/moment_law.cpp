#include <yolo9/train/moment_law.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace yolo9 {

namespace {

// Moments that come so near to the peak stand for it.
constexpr double kNearPeak = 0.995;
// Pairs of allocations that do the same at two sizes: as large, or larger as the pixels are more. Kernels that divide
// their work by its size make some that have no counterpart, so the pairing is the best one in a band around the
// diagonal (the longest common subsequence, larger blocks counting more).
std::vector<std::pair<size_t, size_t>> match_moments(const LiveCurve& small, const LiveCurve& large,
                                                     double pixel_ratio) {
  const auto rows = static_cast<int64_t>(small.block.size()), columns = static_cast<int64_t>(large.block.size());
  if (rows == 0 || columns == 0) return {};
  const int64_t reach = 64 + 2 * std::abs(rows - columns), width = 2 * reach + 1;
  const auto left_of = [&](int64_t i) { return i * columns / rows - reach; };  // first column of row i's band
  const auto same = [&](int64_t i, int64_t j) {
    const auto a = static_cast<double>(small.block[static_cast<size_t>(i)]),
               b = static_cast<double>(large.block[static_cast<size_t>(j)]);
    return a == b || std::abs(b / a / pixel_ratio - 1) < 0.03;
  };
  // best(i, j): of what lies from i and j on.
  std::vector<float> best(static_cast<size_t>((rows + 1) * width));
  const auto at = [&](int64_t i, int64_t j) -> float& {
    return best[static_cast<size_t>(i * width + std::clamp<int64_t>(j - left_of(i), 0, width - 1))];
  };
  for (int64_t i = rows - 1; i >= 0; --i)
    for (int64_t k = width - 1; k >= 0; --k) {
      const int64_t j = left_of(i) + k;
      if (j < 0 || j >= columns) continue;
      float score = std::max(at(i + 1, j), k + 1 < width ? at(i, j + 1) : 0.0f);
      if (same(i, j))
        score = std::max(score, at(i + 1, j + 1) + std::log2(static_cast<float>(small.block[static_cast<size_t>(i)])));
      at(i, j) = score;
    }
  std::vector<std::pair<size_t, size_t>> pairs;
  for (int64_t i = 0, j = 0; i < rows && j < columns;) {
    if (same(i, j) && at(i, j) > std::max(at(i + 1, j), at(i, j + 1)))
      pairs.emplace_back(i++, j++);
    else if (at(i + 1, j) >= at(i, j + 1))
      ++i;
    else
      ++j;
  }
  return pairs;
}

// The law through four measured values, at [size][boxes]: none of its growths is negative.
MomentLaw fit_moment(const double (&y)[2][2], const RecordedLoad (&loads)[2][2]) {
  MomentLaw law;
  const double few = loads[0][0].terms.boxes, many = loads[0][1].terms.boxes;
  const double pixels[] = {loads[0][0].terms.pixels, loads[1][0].terms.pixels};
  const double anchors[] = {loads[0][0].terms.pairs / few, loads[1][0].terms.pairs / few};
  double per_box[2], base[2];
  for (int s = 0; s < 2; ++s) per_box[s] = std::max(0.0, (y[s][1] - y[s][0]) / (many - few));
  law.per_pair = (per_box[1] - per_box[0]) / (anchors[1] - anchors[0]);
  law.per_box = per_box[0] - law.per_pair * anchors[0];
  if (law.per_pair < 0) {
    law.per_pair = 0;
    law.per_box = per_box[1];
  } else if (law.per_box < 0) {
    law.per_box = 0;
    law.per_pair = per_box[1] / anchors[1];
  }
  for (int s = 0; s < 2; ++s) base[s] = y[s][0] - (law.per_box + law.per_pair * anchors[s]) * few;
  law.per_pixel = std::max(0.0, (base[1] - base[0]) / (pixels[1] - pixels[0]));
  law.constant = base[1] - law.per_pixel * pixels[1];
  return law;
}

}  // namespace

int64_t peak_of(const PartLaw& law, const LoadTerms& load) {
  double most = 0;
  for (const auto& moment : law) most = std::max(most, moment.at(load));
  return std::llround(most);
}

double LiveCurve::peak() const {
  return live.empty() ? end : std::max(end, *std::max_element(live.begin(), live.end()));
}

std::vector<LiveCurve> live_curves(const AllocationTrace& trace) {
  std::vector<LiveCurve> parts(1);
  std::map<int64_t, int64_t> blocks;
  int64_t live = 0;
  for (const auto& event : trace.events()) {
    if (event.kind == TraceEvent::Kind::Mark) {
      parts.back().end = static_cast<double>(live);
      parts.emplace_back();
    } else if (event.kind == TraceEvent::Kind::Allocate) {
      blocks[event.block] = event.bytes;
      live += event.bytes;
      parts.back().block.push_back(event.bytes);
      parts.back().live.push_back(static_cast<double>(live));
    } else {
      live -= blocks.at(event.block);
    }
  }
  parts.back().end = static_cast<double>(live);
  return parts;
}

std::vector<PartLaw> fit_part_laws(const RecordedLoad (&loads)[2][2]) {
  const double ratio = loads[1][0].terms.pixels / loads[0][0].terms.pixels;
  std::vector<PartLaw> laws(loads[0][0].parts.size());
  for (size_t part = 0; part < laws.size(); ++part) {
    const LiveCurve &small = loads[0][0].parts.at(part), &small_many = loads[0][1].parts.at(part);
    const LiveCurve &large = loads[1][0].parts.at(part), &large_many = loads[1][1].parts.at(part);
    const auto law_of = [&](const double(&y)[2][2]) { return fit_moment(y, loads); };
    double seen[2] = {small.end, large.end};  // highest of the moments that have a law
    if (small.live.size() == small_many.live.size() && large.live.size() == large_many.live.size())
      for (const auto& [i, j] : match_moments(small, large, ratio)) {
        const MomentLaw law = law_of({{small.live[i], small_many.live[i]}, {large.live[j], large_many.live[j]}});
        // A wrong pair, if no pictures would need less than nothing.
        if (law.constant < -0.01 * large.live[j]) continue;
        laws[part].push_back(law);
        seen[0] = std::max(seen[0], small.live[i]);
        seen[1] = std::max(seen[1], large.live[j]);
      }
    // Where the allocations at one size are not those at another, only the peaks can be compared.
    if (seen[0] < small.peak() * kNearPeak || seen[1] < large.peak() * kNearPeak)
      laws[part].push_back(law_of({{small.peak(), small_many.peak()}, {large.peak(), large_many.peak()}}));
    laws[part].push_back(law_of({{small.end, small_many.end}, {large.end, large_many.end}}));
  }
  return laws;
}

}  // namespace yolo9
