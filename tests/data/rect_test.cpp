#include <yolo9/data/rect.h>

#include <catch2/catch.hpp>

#include "golden_support.h"

using namespace golden;

TEST_CASE("rectangular batches agree with the fixture", "[data][golden]") {
  const auto json = read("rect");
  if (json.is_null()) return;
  for (const auto& scene : json) {
    CAPTURE(scene["img_size"].dump(), scene["pad"].dump(), scene["batch_size"].dump());
    std::vector<yolo9::PixelSize> sizes;
    for (const auto& wh : scene["image_wh"]) sizes.push_back({wh[1], wh[0]});
    const auto order = yolo9::rect_order(sizes);
    CHECK(order == scene["order"].get<std::vector<int64_t>>());
    std::vector<yolo9::PixelSize> ordered;
    for (const int64_t i : order) ordered.push_back(sizes[static_cast<size_t>(i)]);
    const int64_t batch_size = scene["batch_size"];
    const auto shapes = yolo9::rect_shapes(ordered, batch_size, scene["img_size"], scene["stride"], scene["pad"]);
    REQUIRE(shapes.size() == scene["batch_shapes_hw"].size());
    for (size_t i = 0; i < shapes.size(); ++i) {
      CHECK(shapes[i].height == scene["batch_shapes_hw"][i][0].get<int64_t>());
      CHECK(shapes[i].width == scene["batch_shapes_hw"][i][1].get<int64_t>());
    }
    for (size_t i = 0; i < order.size(); ++i) {
      CHECK(static_cast<int64_t>(i) / batch_size == scene["batch_index"][i].get<int64_t>());
    }
  }
}
