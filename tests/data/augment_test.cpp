#include <yolo9/data/augment.h>

#include <catch2/catch.hpp>
#include <opencv2/imgproc.hpp>

#include "golden_support.h"

using namespace golden;

namespace {

yolo9::PerspectiveDraws perspective_draws(const nlohmann::json& d) {
  return {d["perspective_x"], d["perspective_y"], d["angle_deg"],            d["scale"],
          d["shear_x_deg"],   d["shear_y_deg"],   d["translate_x_fraction"], d["translate_y_fraction"]};
}

void check_perspective(const nlohmann::json& scene, const std::map<std::string, torch::Tensor>& tensors) {
  const auto id = scene["id"].dump();
  CAPTURE(id);
  const yolo9::PerspectiveDraws draws = perspective_draws(scene["draws"]);
  const bool divide = scene["perspective"].get<double>() != 0;
  const int64_t out_h = scene["out_hw"][0], out_w = scene["out_hw"][1];
  const yolo9::Border border{scene["border_hw"][0], scene["border_hw"][1]};
  const auto matrix = yolo9::perspective_matrix(draws, scene["h"], scene["w"], out_h, out_w);
  for (size_t i = 0; i < 9; ++i) {
    const double expected = scene["matrix"].is_null() ? (i % 4 == 0 ? 1.0 : 0.0)
                                                      : scene["matrix"][i / 3][i % 3].get<double>();
    check_near(matrix[i], expected, kExactTolerance);
  }
  cv::Mat image = picture(tensors.at(id + ".in"));
  yolo9::Objects objects = golden::objects(scene["labels"], scene["segments"]);

  // Before and after of every object, and which of them stay.
  const auto& candidates = scene["candidates"];
  const auto warped = yolo9::warp_boxes(objects, matrix, divide, out_h, out_w);
  REQUIRE(warped.size() == candidates["after"].size());
  for (size_t i = 0; i < warped.size(); ++i) {
    CAPTURE(i);
    check_box(warped[i], corners(candidates["after"][i]), kExactTolerance);
    const yolo9::Corners& old = objects[i].box;
    const yolo9::Corners before{old.x1 * draws.scale, old.y1 * draws.scale, old.x2 * draws.scale, old.y2 * draws.scale};
    check_box(before, corners(candidates["before"][i]), kExactTolerance);
    yolo9::CandidateRule rule;
    rule.min_area_share = candidates["area_thr"];
    CHECK(yolo9::is_candidate(before, warped[i], rule) == candidates["keep"][i].get<bool>());
  }

  const cv::Mat expected = picture(tensors.at(id + ".out"));
  yolo9::apply_perspective(image, objects, draws, divide, border);
  REQUIRE(image.rows == out_h);
  REQUIRE(image.cols == out_w);
  CHECK(difference(image, expected) <= 1);
  check_objects(objects, golden::objects(scene["out_labels"]), kExactTolerance);
}

// Equal pictures where OpenCV is at least as new as the fixture's. Older ones fill polygons with other edge pixels:
// then the two may differ only on the outlines of the pasted polygons (one pixel to either side), where a pixel is
// pasted or not.
void check_pasted(const cv::Mat& before, const cv::Mat& actual, const cv::Mat& expected, const yolo9::Objects& objects,
                  size_t pasted) {
  REQUIRE(actual.size() == expected.size());
  const bool same_edges = CV_VERSION_MAJOR * 100 + CV_VERSION_MINOR >= 410;
  cv::Mat edges = cv::Mat::zeros(actual.size(), CV_8UC1);
  for (size_t i = objects.size() - pasted; i < objects.size(); ++i) {
    std::vector<cv::Point> outline;
    for (const auto& p : objects[i].polygon) outline.emplace_back(static_cast<int>(p.x), static_cast<int>(p.y));
    cv::polylines(edges, outline, true, cv::Scalar(255));
  }
  cv::dilate(edges, edges, cv::Mat::ones(3, 3, CV_8UC1));
  int64_t wrong = 0;
  for (int y = 0; y < actual.rows; ++y) {
    for (int x = 0; x < actual.cols; ++x) {
      const auto& value = actual.at<cv::Vec3b>(y, x);
      if (value == expected.at<cv::Vec3b>(y, x)) continue;
      const bool either = value == before.at<cv::Vec3b>(y, x) ||
                          value == before.at<cv::Vec3b>(y, before.cols - 1 - x);
      wrong += same_edges || edges.at<uint8_t>(y, x) == 0 || !either;
    }
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("perspective agrees with the fixture", "[data][golden]") {
  const auto json = read("perspective");
  if (json.is_null()) return;
  const auto tensors = read_tensors("perspective");
  for (const auto& scene : json["cases"]) check_perspective(scene, tensors);
}

TEST_CASE("mixup agrees with the fixture", "[data][golden]") {
  const auto json = read("mixup");
  if (json.is_null()) return;
  const auto tensors = read_tensors("mixup");
  for (const auto& scene : json["cases"]) {
    const auto id = scene["id"].dump();
    CAPTURE(id);
    const cv::Mat mixed = yolo9::mix(picture(tensors.at(id + ".a")), picture(tensors.at(id + ".b")), scene["ratio"]);
    CHECK(difference(mixed, picture(tensors.at(id + ".out"))) == 0);
    yolo9::Objects objects = golden::objects(scene["labels1"]);
    const yolo9::Objects others = golden::objects(scene["labels2"]);
    objects.insert(objects.end(), others.begin(), others.end());
    check_objects(objects, golden::objects(scene["labels"]), kExactTolerance);
  }
  CHECK(json["beta_parameters"] == nlohmann::json::array({32.0, 32.0}));
}

TEST_CASE("copy-paste agrees with the fixture", "[data][golden]") {
  const auto json = read("copy_paste");
  if (json.is_null()) return;
  const auto tensors = read_tensors("copy_paste");
  for (const auto& scene : json["cases"]) {
    const auto id = scene["id"].dump();
    CAPTURE(id);
    cv::Mat image = picture(tensors.at(id + ".in"));
    yolo9::Objects objects = golden::objects(scene["labels"], scene["segments"]);
    // Nobody looks for candidates where nothing is to be pasted.
    const bool pastes = scene["p"].get<double>() > 0;
    const auto accepted = pastes ? yolo9::paste_candidates(objects, image.cols) : std::vector<int64_t>{};
    CHECK(accepted == scene["accepted"].get<std::vector<int64_t>>());
    const auto chosen = scene["chosen"].get<std::vector<int64_t>>();
    yolo9::Random random{1};
    const auto drawn = yolo9::draw_pasted(accepted, scene["p"], random);
    CHECK(drawn.size() == chosen.size());
    CHECK(std::set<int64_t>(drawn.begin(), drawn.end()).size() == drawn.size());
    const cv::Mat before = image.clone();
    yolo9::copy_paste(image, objects, chosen);
    check_pasted(before, image, picture(tensors.at(id + ".out")), objects, chosen.size());
    const auto expected = golden::objects(scene["out_labels"], scene["out_segments"]);
    check_objects(objects, expected, kExactTolerance);
    for (size_t i = 0; i < expected.size(); ++i) {
      check_polygon(objects[i].polygon, expected[i].polygon, kExactTolerance);
    }
  }
}

TEST_CASE("random draws keep boxes inside and classes known", "[data]") {
  yolo9::AugmentOptions options;
  options.degrees = 20;
  options.shear = 5;
  options.copy_paste = 0.5;
  for (uint64_t round = 0; round < 200; ++round) {
    CAPTURE(round);
    yolo9::Random random{99, round};
    options.perspective = round % 2 == 0 ? 0 : 0.001;
    cv::Mat image(96, 96, CV_8UC3, cv::Scalar(10, 20, 30));
    yolo9::Objects objects;
    std::set<int64_t> classes;
    for (int64_t i = 0; i < 8; ++i) {
      const double x = random.uniform(0, 80), y = random.uniform(0, 80);
      const double w = random.uniform(1, 40), h = random.uniform(1, 40);
      yolo9::Object object{i, yolo9::clip({x, y, x + w, y + h}, 96, 96), {}};
      if (i % 2 == 0) {
        const auto& b = object.box;
        object.polygon = {{b.x1, b.y1}, {b.x2, b.y1}, {b.x2, b.y2}};
      }
      classes.insert(i);
      objects.push_back(object);
    }
    yolo9::copy_paste(image, objects, yolo9::draw_pasted(yolo9::paste_candidates(objects, 96), 0.5, random));
    const auto draws = yolo9::draw_perspective(options, random);
    yolo9::apply_perspective(image, objects, draws, options.perspective != 0, {-24, -24});
    if (round % 3 == 0) yolo9::flip_left_right(image, objects);
    if (round % 5 == 0) yolo9::flip_up_down(image, objects);
    REQUIRE(image.size() == cv::Size(48, 48));
    for (const auto& object : objects) {
      CHECK(classes.count(object.class_index) == 1);
      CHECK((object.box.x1 >= 0 && object.box.y1 >= 0 && object.box.x2 <= 48 && object.box.y2 <= 48));
      CHECK((object.box.x2 - object.box.x1 > 2 && object.box.y2 - object.box.y1 > 2));
    }
  }
}

TEST_CASE("draws stay within their options", "[data]") {
  yolo9::AugmentOptions options;
  options.degrees = 10;
  options.shear = 3;
  options.perspective = 0.0005;
  yolo9::Random random{5};
  for (int i = 0; i < 500; ++i) {
    const auto d = yolo9::draw_perspective(options, random);
    CHECK(std::abs(d.angle_degrees) <= 10);
    CHECK(std::abs(d.shear_x_degrees) <= 3);
    CHECK(std::abs(d.perspective_y) <= 0.0005);
    CHECK((d.scale >= 0.1 - 1e-12 && d.scale <= 1.9));
    CHECK((d.translate_x >= 0.4 - 1e-12 && d.translate_x <= 0.6 + 1e-12));
    const auto gains = yolo9::draw_hsv(options, random);
    CHECK(std::abs(gains.hue - 1) <= options.hsv_h);
    CHECK(std::abs(gains.saturation - 1) <= options.hsv_s);
    CHECK(std::abs(gains.value - 1) <= options.hsv_v);
  }
}

TEST_CASE("flips move the box with its pixels", "[data]") {
  cv::Mat image = cv::Mat::zeros(20, 30, CV_8UC3);
  image(cv::Rect(3, 2, 5, 4)).setTo(cv::Scalar(255, 255, 255));
  yolo9::Objects objects{{0, {3, 2, 8, 6}, {{3, 2}, {8, 2}, {8, 6}}}};
  const auto filled = [&] {
    const auto& b = objects[0].box;
    const cv::Rect rect(static_cast<int>(b.x1), static_cast<int>(b.y1), static_cast<int>(b.x2 - b.x1),
                        static_cast<int>(b.y2 - b.y1));
    return cv::sum(image(rect))[0] == 255.0 * 20 && cv::sum(image)[0] == 255.0 * 20;
  };
  yolo9::flip_left_right(image, objects);
  CHECK(filled());
  yolo9::flip_up_down(image, objects);
  CHECK(filled());
  check_box(yolo9::box_of_points(objects[0].polygon), objects[0].box, 0);
}
