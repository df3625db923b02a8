#include <catch2/catch.hpp>

#include <yolo9/memory/cost_model.h>

using namespace yolo9;

namespace {

CostPoint point(int64_t images, int64_t side, int64_t boxes = 0, int64_t pairs = 0) {
  return {images, side, side, boxes, pairs};
}

}  // namespace

TEST_CASE("a cost model is exact where the law is linear") {
  // 1000 + 3 a pixel + 20 a box + 2 a pair
  const auto law = [](const CostPoint& p) {
    return 1000 + 3 * p.images * p.height * p.width + 20 * p.boxes + 2 * p.pairs;
  };
  CostModel model;
  CHECK(model.empty());
  CHECK_FALSE(model.expect(point(1, 64)));
  for (const auto& p : {point(1, 64), point(2, 64), point(3, 64), point(2, 64, 100, 500), point(2, 64, 300, 900),
                        point(2, 64, 50, 900)})
    model.observe(p, {law(p)});
  for (const auto& p : {point(16, 64), point(1, 640), point(7, 320, 1000, 5000)})
    CHECK(static_cast<double>(*model.expect(p)) == Approx(static_cast<double>(law(p))).epsilon(1e-3));
  // Nothing measured was above the line: the bound is the estimate.
  CHECK(static_cast<double>(*model.bound(point(16, 64))) ==
        Approx(static_cast<double>(law(point(16, 64)))).epsilon(1e-3));
}

TEST_CASE("the largest phase is the peak, each by its own law") {
  CostModel model;
  // One phase grows with the pixels, the other with the boxes.
  const auto phases = [](const CostPoint& p) {
    return std::vector<int64_t>{10 * p.images * p.height * p.width, 1000 + 5000 * p.boxes};
  };
  for (const auto& p : {point(1, 32), point(2, 32), point(2, 32, 1), point(2, 32, 4), point(3, 32, 9)})
    model.observe(p, phases(p));
  CHECK(*model.expect(point(8, 32)) == Approx(81920).epsilon(1e-2));
  CHECK(*model.expect(point(8, 32, 40)) == Approx(201000).epsilon(1e-2));
}

TEST_CASE("what always grows together is not shared out by chance") {
  CostModel model;
  // Ten boxes in every image: their cost cannot be told from the pictures', and is taken as the pictures'.
  for (int64_t n = 1; n <= 3; ++n) model.observe(point(n, 64, 10 * n), {1000 + 5000 * n});
  CHECK(*model.expect(point(3, 64, 0)) == Approx(16000).epsilon(1e-3));
  // One picture without boxes tells: 4000 of the 5000 are the picture's.
  model.observe(point(1, 64, 0), {5000});
  CHECK(*model.expect(point(2, 64, 40)) == Approx(1000 + 2 * 4000 + 4000).epsilon(1e-3));
}

TEST_CASE("with one observation everything grows with the pixels") {
  CostModel model;
  model.observe(point(4, 64, 10), {4000});
  CHECK(*model.expect(point(8, 64, 10)) == 8000);
  CHECK(*model.expect(point(4, 128, 10)) == 16000);
}

TEST_CASE("what was measured above the line raises the bound") {
  CostModel model;
  for (int64_t n = 1; n <= 4; ++n) model.observe(point(n, 64), {1000 * n});
  CHECK(*model.bound(point(8, 64)) == Approx(8000).epsilon(0.01));
  model.observe(point(4, 64), {4400});  // the same again, higher
  CHECK(*model.bound(point(4, 64)) >= 4400);
  CHECK(*model.bound(point(8, 64)) > 8400);
}

TEST_CASE("a failure is a lower bound for everything larger until it is disproved") {
  CostModel model;
  model.observe_failure(point(8, 64, 10), 5000);
  CHECK(model.failed_below(point(8, 64, 10)) >= 5000);
  CHECK(model.failed_below(point(9, 64, 10)) >= 5000);
  CHECK(model.failed_below(point(8, 128, 10)) >= 5000);
  CHECK(model.failed_below(point(4, 64, 10)) == 0);
  CHECK(model.failed_below(point(8, 64, 5)) == 0);
  for (int64_t n = 1; n <= 2; ++n) model.observe(point(n, 64, 10), {100 * n});
  CHECK(*model.bound(point(8, 64, 10)) >= 5000);
  model.observe(point(8, 64, 10), {800});
  CHECK(*model.bound(point(8, 64, 10)) < 1000);
}

TEST_CASE("points without end do not grow the model without end") {
  CostModel model;
  for (int64_t i = 1; i <= 2000; ++i) model.observe(point(1, 64, i), {100000 + 7 * i});
  CHECK(*model.expect(point(1, 64, 3000)) == Approx(121000).epsilon(0.01));
}
