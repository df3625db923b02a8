#include <yolo9/data/image.h>

#include <catch2/catch.hpp>
#include <yolo9/core/error.h>

#include "golden_support.h"

using namespace golden;

namespace {

yolo9::LetterboxOptions letterbox_options(const nlohmann::json& scene) {
  yolo9::LetterboxOptions options;
  const auto& shape = scene["new_shape"];
  options.height = shape.is_array() ? shape[0].get<int64_t>() : shape.get<int64_t>();
  options.width = shape.is_array() ? shape[1].get<int64_t>() : shape.get<int64_t>();
  options.minimum_padding = scene["auto"];
  options.stretch = scene["scaleFill"];
  options.enlarge = scene["scaleup"];
  options.stride = scene["stride"];
  if (scene.contains("color")) options.colour = {scene["color"][0], scene["color"][1], scene["color"][2]};
  return options;
}

void check_geometry(const yolo9::LetterboxGeometry& geometry, const nlohmann::json& scene) {
  check_near(geometry.ratio_width, scene["ratio_wh"][0], kExactTolerance);
  check_near(geometry.ratio_height, scene["ratio_wh"][1], kExactTolerance);
  CHECK(geometry.pad_width == scene["pad_wh"][0].get<double>());
  CHECK(geometry.pad_height == scene["pad_wh"][1].get<double>());
  CHECK(geometry.height() == scene["out_hw"][0].get<int64_t>());
  CHECK(geometry.width() == scene["out_hw"][1].get<int64_t>());
}

}  // namespace

TEST_CASE("letterbox agrees with the fixture", "[data][golden]") {
  const auto json = read("letterbox");
  if (json.is_null()) return;
  const auto tensors = read_tensors("letterbox");
  for (const auto& scene : json["cases"]) {
    const auto id = scene["id"].dump();
    CAPTURE(id);
    yolo9::LetterboxGeometry geometry;
    const cv::Mat out = yolo9::letterbox(picture(tensors.at(id + ".in")), letterbox_options(scene), &geometry);
    check_geometry(geometry, scene);
    CHECK(difference(out, picture(tensors.at(id + ".out"))) <= 1);
  }
  for (const auto& scene : json["geometry"]) {
    CAPTURE(scene.dump());
    check_geometry(yolo9::letterbox_geometry(scene["h"], scene["w"], letterbox_options(scene)), scene);
  }
}

TEST_CASE("HSV agrees with the fixture", "[data][golden]") {
  const auto json = read("hsv");
  if (json.is_null()) return;
  const auto tensors = read_tensors("hsv");
  for (const auto& scene : json["cases"]) {
    const auto id = scene["id"].dump();
    CAPTURE(id);
    cv::Mat image = picture(tensors.at(id + ".in"));
    yolo9::scale_hsv(image, scene["gains"][0], scene["gains"][1], scene["gains"][2]);
    CHECK(difference(image, picture(tensors.at(id + ".out"))) <= 1);
    const double gains[3] = {scene["hgain"], scene["sgain"], scene["vgain"]};
    for (size_t i = 0; i < 3; ++i) {
      check_near(1 + scene["draws"][i].get<double>() * gains[i], scene["gains"][i], kExactTolerance);
    }
  }
}

TEST_CASE("the size a picture is loaded at agrees with the fixture", "[data][golden]") {
  const auto json = read("loader");
  if (json.is_null()) return;
  for (const auto& scene : json["load_image"]) {
    CAPTURE(scene.dump());
    const auto rule = yolo9::resize_rule(scene["hw"][0], scene["hw"][1], scene["img_size"], scene["augment"]);
    CHECK(rule.height == scene["resized_hw"][0].get<int64_t>());
    CHECK(rule.width == scene["resized_hw"][1].get<int64_t>());
    const auto& name = scene["interpolation"];
    const auto expected = name.is_null()     ? yolo9::Resampling::None
                          : name == "linear" ? yolo9::Resampling::Linear
                                             : yolo9::Resampling::Area;
    CHECK(rule.resampling == expected);
  }
}

TEST_CASE("a picture that would vanish is an error", "[data]") {
  yolo9::LetterboxOptions options;
  options.height = options.width = 64;
  CHECK_THROWS_AS(yolo9::letterbox_geometry(1, 1000, options), yolo9::Error);
  CHECK(yolo9::resize_rule(1, 1000, 64, true).height == 1);
}

TEST_CASE("pictures go to tensors and back", "[data]") {
  cv::Mat image(5, 7, CV_8UC3);
  for (int y = 0; y < 5; ++y) {
    for (int x = 0; x < 7; ++x) {
      image.at<cv::Vec3b>(y, x) = {static_cast<uint8_t>(y), static_cast<uint8_t>(100 + x), static_cast<uint8_t>(200)};
    }
  }
  const auto tensor = yolo9::to_tensor(image);
  REQUIRE(tensor.sizes() == std::vector<int64_t>{3, 5, 7});
  CHECK(tensor[0][3][2].item<int>() == 200);  // red first
  CHECK(tensor[1][3][2].item<int>() == 102);
  CHECK(tensor[2][3][2].item<int>() == 3);
  CHECK(difference(yolo9::to_image(tensor), image) == 0);
}

TEST_CASE("reading: missing, empty and damaged files are data errors", "[data]") {
  const auto folder = fixture::temporary_dir("image");
  std::ofstream(folder + "/empty.jpg").close();
  std::ofstream(folder + "/text.png") << "not a picture";
  for (const char* name : {"/absent.jpg", "/empty.jpg", "/text.png"}) {
    try {
      yolo9::read_image(folder + name);
      FAIL("accepted " << name);
    } catch (const yolo9::Error& error) {
      CHECK(error.kind() == yolo9::ErrorKind::Data);
      CHECK(std::string(error.what()).find(name) != std::string::npos);
    }
  }
  CHECK_THROWS_AS(yolo9::write_image(folder + "/no/such/folder/x.png", cv::Mat(4, 4, CV_8UC3)), yolo9::Error);
}
