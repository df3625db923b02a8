#include <catch2/catch.hpp>

#include <yolo9/core/safetensors.h>
#include <yolo9/loss/anchors.h>

#include "support/fixture.h"

TEST_CASE("anchors and distance conversions agree with the fixture", "[golden]") {
  const auto files = fixture::golden_files("tal", "anchors.json");
  if (files.empty()) WARN("no anchor fixture");
  for (const auto& file : files) {
    const auto info = fixture::read_json(file);
    const auto data = yolo9::read_safetensors_map(file.substr(0, file.size() - 4) + "safetensors");
    const auto strides = info.at("strides").get<std::vector<double>>();
    for (size_t index = 0; index < info.at("cases").size(); ++index) {
      CAPTURE(file, index);
      const auto sizes = info.at("cases")[index].at("grids").get<std::vector<std::pair<int64_t, int64_t>>>();
      const auto key = [&](const char* name) { return data.at(std::to_string(index) + "." + name); };
      const auto grid = yolo9::make_anchors(sizes, strides);
      CHECK(grid.starts.back() == info.at("cases")[index].at("anchors").get<int64_t>());
      CHECK(grid.points.equal(key("anchors")));
      CHECK(grid.strides.unsqueeze(1).equal(key("strides")));
      CHECK(fixture::excess(yolo9::distances_to_corner(key("dist"), grid.points), key("xyxy"), 1e-6, 1e-6) <= 0);
      CHECK(fixture::excess(yolo9::distances_to_centre(key("dist"), grid.points), key("xywh"), 1e-6, 1e-6) <= 0);
      CHECK(fixture::excess(yolo9::corner_to_distances(key("xyxy"), grid.points, 16), key("back"), 1e-6, 1e-6) <= 0);
    }
  }
}

TEST_CASE("expected distances read either memory format") {
  const auto map = fixture::uniform("anchors:map", {2, 70, 3, 5}) * 8;
  const auto bins = torch::arange(16, torch::kFloat);
  const auto expected =
      (map.narrow(1, 0, 64).view({2, 4, 16, 15}).softmax(2) * bins.view({1, 1, 16, 1})).sum(2).transpose(1, 2);
  CHECK(fixture::excess(yolo9::expected_distances(map, 16), expected, 1e-5, 1e-6) <= 0);
  const auto channels_last = map.contiguous(at::MemoryFormat::ChannelsLast);
  CHECK(fixture::excess(yolo9::expected_distances(channels_last, 16), expected, 1e-5, 1e-6) <= 0);
}
