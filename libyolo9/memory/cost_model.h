// What a step costs, learnt from the steps that were run: bytes above what was live before the step, as a linear
// function of the pixels, the boxes, and the (box, anchor) pairs that go through together.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace yolo9 {

// What goes through the network together.
struct CostPoint {
  int64_t images = 0;
  int64_t height = 0, width = 0;  // pixels of each image
  int64_t boxes = 0;              // labels in all of them
  int64_t pairs = 0;              // (label, anchor) pairs that the assigner looks at together

  // True if nothing in this is smaller than in `other`.
  bool covers(const CostPoint& other) const;
};

class CostModel {
 public:
  // `phase_bytes`: the peaks of the parts of a step (forward and loss; backward; ...), which grow by different laws:
  // the step's peak is the largest of them. Their number must always be the same.
  void observe(const CostPoint& point, const std::vector<int64_t>& phase_bytes);
  // The point did not fit although `at_least` bytes were to be had.
  void observe_failure(const CostPoint& point, int64_t at_least);

  // Best estimate; nothing until a step was observed. With one observation all is taken to grow with the pixels.
  std::optional<int64_t> expect(const CostPoint& point) const;
  // The estimate to act on: raised by the largest excess seen so far, and by failures at smaller points.
  std::optional<int64_t> bound(const CostPoint& point) const;
  // A point that did not fit and is covered by `point` needs more than this; 0: none.
  int64_t failed_below(const CostPoint& point) const;
  bool empty() const { return points_.empty(); }

 private:
  static constexpr size_t kFeatures = 4;
  using Features = std::array<double, kFeatures>;
  struct Observation {
    CostPoint point;
    std::vector<int64_t> phases;
  };
  struct Failure {
    CostPoint point;
    int64_t at_least = 0;
  };
  static Features features_of(const CostPoint& point);
  std::vector<size_t> distinct_features() const;
  void fit();
  double phase_at(size_t phase, const Features& features) const;

  std::map<std::array<int64_t, 5>, Observation> points_;  // the highest of equal ones
  std::vector<Failure> failures_;
  std::vector<Features> weights_;  // per phase
  double excess_ = 1;              // largest measured / estimated among points_, at least 1
};

}  // namespace yolo9
