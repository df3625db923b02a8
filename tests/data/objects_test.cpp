#include <yolo9/data/objects.h>

#include <catch2/catch.hpp>

#include "golden_support.h"

using namespace golden;

TEST_CASE("conversions and clipping agree with the fixture", "[data][golden]") {
  const auto boxes = read("boxes");
  if (boxes.is_null()) return;
  const double w = boxes["w"], h = boxes["h"], pad_x = boxes["padw"], pad_y = boxes["padh"];
  for (size_t i = 0; i < boxes["xywhn"].size(); ++i) {
    CAPTURE(i);
    const yolo9::Corners pixels = yolo9::denormalise(center(boxes["xywhn"][i]), w, h, pad_x, pad_y);
    check_box(pixels, corners(boxes["xywhn2xyxy"][i]), kExactTolerance);
    check_center(yolo9::to_center(pixels), center(boxes["xyxy2xywh"][i]), kExactTolerance);
    check_box(yolo9::to_corners(center(boxes["xyxy2xywh"][i])), corners(boxes["xywh2xyxy"][i]), kExactTolerance);
    check_center(yolo9::normalise(pixels, w, h), center(boxes["xyxy2xywhn_noclip"][i]), kExactTolerance);
    const yolo9::Corners inside = yolo9::clip(pixels, w - yolo9::kClipMargin, h - yolo9::kClipMargin);
    check_center(yolo9::normalise(inside, w, h), center(boxes["xyxy2xywhn_clip_eps"][i]), kExactTolerance);
    check_box(yolo9::clip(pixels, 640, 480), corners(boxes["clip_boxes_480x640"][i]), kExactTolerance);
  }
  for (const auto& row : boxes["make_divisible"]) {
    CHECK(yolo9::round_up(row[0].get<double>(), row[1].get<int64_t>()) == row[2].get<int64_t>());
  }
}

TEST_CASE("undoing a letterbox agrees with the fixture", "[data][golden]") {
  const auto boxes = read("boxes");
  if (boxes.is_null()) return;
  for (const auto& scene : boxes["scale_boxes"]) {
    const int64_t h1 = scene["img1_hw"][0], w1 = scene["img1_hw"][1];
    const int64_t h0 = scene["img0_hw"][0], w0 = scene["img0_hw"][1];
    CAPTURE(h1, w1, h0, w0);
    yolo9::CenteredLetterbox box = yolo9::centered_letterbox(h1, w1, h0, w0);
    if (!scene["ratio_pad"].is_null()) {
      box = {scene["ratio_pad"][0][0], scene["ratio_pad"][1][0], scene["ratio_pad"][1][1]};
    }
    for (size_t i = 0; i < scene["in"].size(); ++i) {
      const auto actual = yolo9::undo_letterbox(corners(scene["in"][i]), box.ratio, box.pad_x, box.pad_y,
                                                static_cast<double>(w0), static_cast<double>(h0));
      check_box(actual, corners(scene["out"][i]), kExactTolerance);
    }
  }
}

TEST_CASE("polygon functions agree with the fixture", "[data][golden]") {
  const auto boxes = read("boxes");
  if (boxes.is_null()) return;
  for (const auto& scene : boxes["segment2box"]) {
    const auto points = polygon(scene["segment"]);
    const auto& box = scene["box"].size() == 1 ? scene["box"][0] : scene["box"];
    check_box(yolo9::box_of_inside_points(points, scene["width"], scene["height"]), corners(box), kExactTolerance);
  }
  const auto& all = boxes["segments2boxes"];
  for (size_t i = 0; i < all["segments"].size(); ++i) {
    check_center(yolo9::to_center(yolo9::box_of_points(polygon(all["segments"][i]))), center(all["xywh"][i]),
                 kExactTolerance);
  }
  for (const auto& scene : boxes["resample_segments"]) {
    check_polygon(yolo9::resample(polygon(scene["segment"]), scene["n"]), polygon(scene["out"]), kExactTolerance);
  }
  const auto& dense = boxes["resample_1000"];
  const auto points = yolo9::resample(polygon(dense["segment"]), dense["n"]);
  yolo9::Point sum;
  yolo9::Polygon every_50th;
  for (size_t i = 0; i < points.size(); ++i) {
    sum = {sum.x + points[i].x, sum.y + points[i].y};
    if (i % 50 == 0) every_50th.push_back(points[i]);
  }
  check_polygon(every_50th, polygon(dense["every_50th"]), kExactTolerance);
  check_near(sum.x, dense["sum"][0], kExactTolerance);
  check_near(sum.y, dense["sum"][1], kExactTolerance);
  const auto& placed = boxes["xyn2xy"];
  const auto moved =
      yolo9::denormalise(polygon(placed["segment"]), placed["w"], placed["h"], placed["padw"], placed["padh"]);
  check_polygon(moved, polygon(placed["out"]), kExactTolerance);
}

TEST_CASE("surviving boxes agree with the fixture", "[data][golden]") {
  const auto boxes = read("boxes");
  if (boxes.is_null()) return;
  for (const auto& scene : boxes["box_candidates"]) {
    const yolo9::CandidateRule rule{.min_side_pixels = scene["wh_thr"],
                                    .max_aspect = scene["ar_thr"],
                                    .min_area_share = scene["area_thr"]};
    for (size_t i = 0; i < scene["before"].size(); ++i) {
      CAPTURE(i);
      CHECK(yolo9::is_candidate(corners(scene["before"][i]), corners(scene["after"][i]), rule) ==
            scene["keep"][i].get<bool>());
    }
  }
}

TEST_CASE("covered shares", "[data]") {
  const auto shares = yolo9::covered_shares({0, 0, 10, 10}, {{5, 0, 15, 10}, {20, 20, 30, 30}, {2, 2, 4, 4}});
  REQUIRE(shares.size() == 3);
  CHECK(shares[0] == Approx(0.5));
  CHECK(shares[1] == 0);
  CHECK(shares[2] == Approx(1.0));
}
