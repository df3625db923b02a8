#include <catch2/catch.hpp>

#include <yolo9/loss/assigner.h>
#include <yolo9/memory/host_source.h>

#include "loss/scene.h"

namespace {

// Highest memory of one assignment above what was held before it.
int64_t peak_bytes(const golden::Scene& scene) {
  yolo9::HostMemorySource memory;
  const int64_t before = memory.sample().allocated_bytes;
  memory.reset_peak();
  const auto result = yolo9::assign_targets(scene.truths, scene.boxes, scene.scores, scene.points, {});
  REQUIRE(result.anchor.size(0) > 0);
  return memory.sample().peak_allocated_bytes - before;
}

}  // namespace

TEST_CASE("the assigner's peak memory does not grow with the densest image") {
  yolo9::install_host_meter();
  // The same number of boxes, spread evenly and heaped into one image.
  const auto even = golden::make_scene({250, 250, 250, 250}, 320, 8, "assigner:even");
  const auto heaped = golden::make_scene({1, 997, 1, 1}, 320, 8, "assigner:heaped");
  CHECK(static_cast<double>(peak_bytes(heaped)) < 1.25 * static_cast<double>(peak_bytes(even)));
}

TEST_CASE("three thousand boxes in an image of 640 px take little memory") {
  yolo9::install_host_meter();
  const auto scene = golden::make_scene({3000}, 640, 80, "assigner:dense");
  // All pairs at once would take 3000 * 8400 * 4 bytes = 96 MiB for a single one of the intermediate results.
  CHECK(peak_bytes(scene) < int64_t{48} << 20);
}
