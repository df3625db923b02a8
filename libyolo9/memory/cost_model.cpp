#include <yolo9/memory/cost_model.h>

#include <algorithm>
#include <cmath>

namespace yolo9 {

namespace {

// As many different points are kept; with multi-scale and any number of boxes there would be no end of them.
constexpr size_t kMaxPoints = 256;
// A failure counts as this much more than what was there.
constexpr double kFailureMargin = 1.02;
// A feature is its own if this share of it is no combination of the others.
constexpr double kDistinct = 0.02;
// Less than this share is arithmetic, not memory.
constexpr double kRounding = 1e-6;

// Solves the small symmetric positive system a x = b in place (Gauss with pivots).
std::vector<double> solve(std::vector<std::vector<double>> a, std::vector<double> b) {
  const size_t n = b.size();
  for (size_t column = 0; column < n; ++column) {
    size_t pivot = column;
    for (size_t row = column + 1; row < n; ++row)
      if (std::abs(a[row][column]) > std::abs(a[pivot][column])) pivot = row;
    std::swap(a[column], a[pivot]);
    std::swap(b[column], b[pivot]);
    if (std::abs(a[column][column]) < 1e-300) continue;
    for (size_t row = column + 1; row < n; ++row) {
      const double factor = a[row][column] / a[column][column];
      for (size_t k = column; k < n; ++k) a[row][k] -= factor * a[column][k];
      b[row] -= factor * b[column];
    }
  }
  for (size_t row = n; row-- > 0;) {
    for (size_t k = row + 1; k < n; ++k) b[row] -= a[row][k] * b[k];
    b[row] = std::abs(a[row][row]) < 1e-300 ? 0 : b[row] / a[row][row];
  }
  return b;
}

}  // namespace

bool CostPoint::covers(const CostPoint& other) const {
  return images >= other.images && images * height * width >= other.images * other.height * other.width &&
         boxes >= other.boxes && pairs >= other.pairs;
}

CostModel::Features CostModel::features_of(const CostPoint& point) {
  return {static_cast<double>(point.images) * static_cast<double>(point.height) * static_cast<double>(point.width), 1.0,
          static_cast<double>(point.boxes), static_cast<double>(point.pairs)};
}

double CostModel::phase_at(size_t phase, const Features& features) const {
  double sum = 0;
  for (size_t k = 0; k < kFeatures; ++k) sum += weights_[phase][k] * features[k];
  return sum;
}

// The features that the points tell apart, in order of importance: one that is nearly a combination of those before it
// would get its weight by chance.
std::vector<size_t> CostModel::distinct_features() const {
  std::vector<size_t> usable;
  std::vector<std::vector<double>> basis;
  for (size_t k = 0; k < kFeatures; ++k) {
    std::vector<double> column;
    for (const auto& [key, observation] : points_) column.push_back(features_of(observation.point)[k]);
    const auto dot = [](const std::vector<double>& a, const std::vector<double>& b) {
      double sum = 0;
      for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
      return sum;
    };
    const double length = std::sqrt(dot(column, column));
    if (length == 0) continue;
    for (const auto& unit : basis) {
      const double share = dot(column, unit);
      for (size_t i = 0; i < column.size(); ++i) column[i] -= share * unit[i];
    }
    const double rest = std::sqrt(dot(column, column));
    if (rest < kDistinct * length) continue;
    for (double& value : column) value /= rest;
    basis.push_back(std::move(column));
    usable.push_back(k);
  }
  return usable;
}

// Least squares of relative errors, per phase, with coefficients that are not negative.
void CostModel::fit() {
  const size_t phases = points_.begin()->second.phases.size();
  Features largest{};
  for (const auto& [key, observation] : points_) {
    const auto features = features_of(observation.point);
    for (size_t k = 0; k < kFeatures; ++k) largest[k] = std::max(largest[k], features[k]);
  }
  const auto usable = distinct_features();
  weights_.assign(phases, Features{});
  for (size_t phase = 0; phase < phases; ++phase) {
    std::vector<size_t> active = usable;
    while (!active.empty()) {
      const size_t n = active.size();
      std::vector<std::vector<double>> a(n, std::vector<double>(n));
      std::vector<double> b(n), scale(n);
      // Columns are brought to one size, or the squares of pixels would drown the rest.
      for (size_t i = 0; i < n; ++i) scale[i] = std::max(1.0, largest[active[i]]);
      for (const auto& [key, observation] : points_) {
        const auto features = features_of(observation.point);
        const double measured = std::max(1.0, static_cast<double>(observation.phases[phase]));
        for (size_t i = 0; i < n; ++i) {
          const double left = features[active[i]] / scale[i] / measured;
          for (size_t j = 0; j < n; ++j) a[i][j] += left * features[active[j]] / scale[j] / measured;
          b[i] += left;
        }
      }
      for (size_t i = 0; i < n; ++i) a[i][i] *= 1 + 1e-12;
      const auto solution = solve(a, b);
      const auto least = std::min_element(solution.begin(), solution.end());
      if (*least < 0 && n > 1) {
        active.erase(active.begin() + (least - solution.begin()));
        continue;
      }
      for (size_t i = 0; i < n; ++i) weights_[phase][active[i]] = solution[i] / scale[i];
      break;
    }
  }
  excess_ = 1;
  for (const auto& [key, observation] : points_) {
    const auto features = features_of(observation.point);
    double expected = 1;
    for (size_t phase = 0; phase < phases; ++phase) expected = std::max(expected, phase_at(phase, features));
    const auto measured = *std::max_element(observation.phases.begin(), observation.phases.end());
    const double ratio = static_cast<double>(measured) / expected;
    if (ratio > 1 + kRounding) excess_ = std::max(excess_, ratio);
  }
}

void CostModel::observe(const CostPoint& point, const std::vector<int64_t>& phase_bytes) {
  if (phase_bytes.empty()) return;
  std::erase_if(failures_, [&](const Failure& failure) { return point.covers(failure.point); });
  const std::array<int64_t, 5> key{point.images, point.height, point.width, point.boxes, point.pairs};
  const auto found = points_.find(key);
  bool changed = found == points_.end();
  if (changed) {
    if (points_.size() >= kMaxPoints) return;  // by now nothing new is to be learnt from one more
    points_[key] = {point, phase_bytes};
  } else {
    for (size_t i = 0; i < phase_bytes.size() && i < found->second.phases.size(); ++i) {
      if (phase_bytes[i] <= found->second.phases[i]) continue;
      found->second.phases[i] = phase_bytes[i];
      changed = true;
    }
  }
  if (changed) fit();
}

void CostModel::observe_failure(const CostPoint& point, int64_t at_least) {
  for (auto& failure : failures_) {
    if (failure.point.images != point.images || failure.point.height != point.height ||
        failure.point.width != point.width || failure.point.boxes != point.boxes || failure.point.pairs != point.pairs)
      continue;
    failure.at_least = std::max(failure.at_least, at_least);
    return;
  }
  failures_.push_back({point, at_least});
}

int64_t CostModel::failed_below(const CostPoint& point) const {
  int64_t most = 0;
  for (const auto& failure : failures_)
    if (point.covers(failure.point)) most = std::max(most, failure.at_least);
  return static_cast<int64_t>(static_cast<double>(most) * kFailureMargin);
}

std::optional<int64_t> CostModel::expect(const CostPoint& point) const {
  if (points_.empty()) return std::nullopt;
  const auto features = features_of(point);
  double most = 0;
  for (size_t phase = 0; phase < weights_.size(); ++phase) most = std::max(most, phase_at(phase, features));
  return std::llround(most);
}

std::optional<int64_t> CostModel::bound(const CostPoint& point) const {
  const auto estimate = expect(point);
  if (!estimate) return std::nullopt;
  return std::max(static_cast<int64_t>(std::llround(static_cast<double>(*estimate) * excess_)), failed_below(point));
}

}  // namespace yolo9
