#include <yolo9/data/mosaic.h>

#include <catch2/catch.hpp>

#include "golden_support.h"

using namespace golden;

namespace {

// A tile that shows at every pixel which tile, row and column it is.
cv::Mat numbered_tile(int64_t tile, yolo9::PixelSize size) {
  cv::Mat image(static_cast<int>(size.height), static_cast<int>(size.width), CV_8UC3);
  for (int y = 0; y < image.rows; ++y) {
    for (int x = 0; x < image.cols; ++x) {
      image.at<cv::Vec3b>(y, x) = {static_cast<uint8_t>(200 + tile), static_cast<uint8_t>(y), static_cast<uint8_t>(x)};
    }
  }
  return image;
}

std::vector<yolo9::LabelRow> label_rows(const nlohmann::json& labels, const nlohmann::json& segments) {
  std::vector<yolo9::LabelRow> rows;
  for (size_t i = 0; i < labels.size(); ++i) {
    const auto& v = labels[i];
    yolo9::LabelRow row{static_cast<int64_t>(v[0].get<double>()), v[1], v[2], v[3], v[4], {}};
    for (const auto& p : segments[i]) {
      row.polygon.push_back(p[0]);
      row.polygon.push_back(p[1]);
    }
    rows.push_back(row);
  }
  return rows;
}

// The tile's visible part on the canvas, found from the pixels.
struct Visible {
  int64_t pixels = 0;
  int x1 = 1 << 20, y1 = 1 << 20, x2 = 0, y2 = 0;
  int source_x1 = 1 << 20, source_y1 = 1 << 20, source_x2 = 0, source_y2 = 0;
};

Visible find_tile(const cv::Mat& canvas, int64_t tile) {
  Visible v;
  for (int y = 0; y < canvas.rows; ++y) {
    for (int x = 0; x < canvas.cols; ++x) {
      const auto& p = canvas.at<cv::Vec3b>(y, x);
      if (p[0] != 200 + tile) continue;
      ++v.pixels;
      v.x1 = std::min(v.x1, x);
      v.y1 = std::min(v.y1, y);
      v.x2 = std::max(v.x2, x + 1);
      v.y2 = std::max(v.y2, y + 1);
      v.source_x1 = std::min<int>(v.source_x1, p[2]);
      v.source_y1 = std::min<int>(v.source_y1, p[1]);
      v.source_x2 = std::max<int>(v.source_x2, p[2] + 1);
      v.source_y2 = std::max<int>(v.source_y2, p[1] + 1);
    }
  }
  return v;
}

void check_tile(const Visible& v, const nlohmann::json& tile) {
  if (tile.is_null()) {
    CHECK(v.pixels == 0);
    return;
  }
  CHECK(v.pixels == tile["pixels"].get<int64_t>());
  CHECK((v.pixels == int64_t{v.x2 - v.x1} * (v.y2 - v.y1)) == tile["solid"].get<bool>());
  CHECK(nlohmann::json::array({v.x1, v.y1, v.x2, v.y2}) == tile["canvas_x1y1x2y2"]);
  CHECK(nlohmann::json::array({v.source_x1, v.source_y1, v.source_x2, v.source_y2}) == tile["source_x1y1x2y2"]);
}

void check_mosaic(const nlohmann::json& scene, const torch::Tensor& canvas_tensor) {
  const auto id = scene["id"].dump();
  CAPTURE(id);
  const int64_t size = scene["img_size"];
  const yolo9::MosaicCenter center{static_cast<int64_t>(scene["center_draws_y_x"][0].get<double>()),
                                   static_cast<int64_t>(scene["center_draws_y_x"][1].get<double>())};
  std::vector<yolo9::PixelSize> sizes;
  std::vector<cv::Mat> tiles;
  for (const auto& hw : scene["tile_hw"]) {
    sizes.push_back({hw[0], hw[1]});
    tiles.push_back(numbered_tile(static_cast<int64_t>(tiles.size()), sizes.back()));
  }
  const auto placements = tiles.size() == 4 ? yolo9::place_mosaic4(size, center, sizes)
                                            : yolo9::place_mosaic9(size, center, sizes);
  const cv::Mat canvas = yolo9::draw_mosaic(size, tiles, placements);
  CHECK(canvas.rows == scene["canvas_hw"][0].get<int>());
  CHECK(canvas.cols == scene["canvas_hw"][1].get<int>());
  CHECK(difference(canvas, picture(canvas_tensor)) == 0);
  CHECK(scene["fill"] == 114);

  yolo9::Objects objects;
  for (size_t k = 0; k < tiles.size(); ++k) {
    CAPTURE(k);
    check_tile(find_tile(canvas, static_cast<int64_t>(k)), scene["tiles"][k]);
    yolo9::append_mosaic_objects(objects, label_rows(scene["labels_in"][k], scene["segments_in"][k]), sizes[k],
                                 placements[k], size);
  }
  const auto expected = golden::objects(scene["labels_out"], scene["segments_out"]);
  check_objects(objects, expected, kCoordinateTolerance);
  for (size_t i = 0; i < expected.size(); ++i) {
    check_polygon(objects[i].polygon, expected[i].polygon, kCoordinateTolerance);
  }
}

}  // namespace

TEST_CASE("mosaics agree with the fixture", "[data][golden]") {
  const auto json = read("mosaic");
  if (json.is_null()) return;
  const auto tensors = read_tensors("mosaic");
  for (const char* kind : {"mosaic4", "mosaic9"}) {
    for (const auto& scene : json[kind]) check_mosaic(scene, tensors.at(scene["id"].dump() + ".canvas"));
  }
}

TEST_CASE("mosaic centres stay where every tile can be seen", "[data]") {
  yolo9::Random random{3};
  for (int i = 0; i < 300; ++i) {
    const auto four = yolo9::draw_mosaic4_center(64, random);
    CHECK((four.x >= 32 && four.x < 96 && four.y >= 32 && four.y < 96));
    const auto nine = yolo9::draw_mosaic9_center(64, random);
    CHECK((nine.x >= 0 && nine.x < 64 && nine.y >= 0 && nine.y < 64));
  }
}
