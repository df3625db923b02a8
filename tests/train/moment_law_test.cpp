#include <catch2/catch.hpp>

#include <yolo9/train/moment_law.h>

using namespace yolo9;

namespace {

// Two moments that change places: weights of 1 MB freed before maps of 10 bytes a pixel grow; then 7 bytes a pair.
// `helpers`: small blocks that only large loads have.
RecordedLoad load_of(double pixels, double boxes, int64_t helpers) {
  const double pairs = boxes * pixels / 50;
  AllocationTrace trace;
  trace.mark("forward");
  int64_t block = 0;
  for (int64_t i = 0; i < helpers; ++i) {
    trace.allocate(block, 40 + i);
    trace.free(block++);
  }
  const auto maps = static_cast<int64_t>(pixels * 10), assigned = static_cast<int64_t>(pairs * 7);
  const int64_t weights = block++, first = block++, second = block++;
  trace.allocate(weights, 1 << 20);
  trace.allocate(first, maps / 5);
  trace.free(weights);
  trace.allocate(second, maps);
  trace.mark("loss");
  trace.allocate(block, assigned);
  trace.free(block);
  return {{pixels, boxes, pairs}, live_curves(trace)};
}

}  // namespace

TEST_CASE("laws of moments know peaks that no recorded load had") {
  const RecordedLoad loads[2][2] = {{load_of(20000, 4, 0), load_of(20000, 16, 0)},
                                    {load_of(45000, 4, 5), load_of(45000, 16, 5)}};
  const auto laws = fit_part_laws(loads);
  REQUIRE(laws.size() == 3);
  for (const double pixels : {1000.0, 30000.0, 1000000.0})
    for (const double boxes : {0.0, 8.0, 100.0}) {
      const LoadTerms load{pixels, boxes, boxes * pixels / 50};
      CAPTURE(pixels, boxes);
      const double forward = std::max((1 << 20) + pixels * 2, pixels * 12);
      CHECK(static_cast<double>(peak_of(laws[1], load)) == Approx(forward).epsilon(1e-3));
      CHECK(static_cast<double>(peak_of(laws[2], load)) == Approx(pixels * 12 + load.pairs * 7).epsilon(1e-3));
      CHECK(static_cast<double>(peak_of({laws[1].back()}, load)) == Approx(pixels * 12).epsilon(1e-3));
    }
}

TEST_CASE("live bytes are read from a trace part by part") {
  AllocationTrace trace;
  trace.mark("one");
  trace.allocate(0, 100);
  trace.allocate(1, 50);
  trace.free(0);
  trace.mark("two");
  trace.allocate(2, 10);
  const auto parts = live_curves(trace);
  REQUIRE(parts.size() == 3);
  CHECK(parts[0].peak() == 0);
  CHECK(parts[1].live == std::vector<double>{100, 150});
  CHECK(parts[1].block == std::vector<int64_t>{100, 50});
  CHECK(parts[1].peak() == 150);
  CHECK(parts[1].end == 50);
  CHECK(parts[2].peak() == 60);
}
