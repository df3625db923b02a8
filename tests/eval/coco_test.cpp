#include <yolo9/eval/coco.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "support/fixture.h"
#include <yolo9/core/error.h>
#include <yolo9/core/random.h>

namespace {

std::string write(const std::string& name, const std::string& text) {
  const std::string path = fixture::temporary_dir("coco") + "/" + name;
  std::ofstream(path) << text;
  return path;
}

yolo9::CocoAnnotation truth_box(int64_t id, int64_t image, double x, double size, bool crowd = false) {
  return {id, image, 1, {x, 10, size, size}, size * size, crowd};
}

}  // namespace

TEST_CASE("COCO's twelve figures and per-category results equal the reference", "[eval][golden]") {
  const auto files = fixture::golden_files("metrics", "coco_expected.json");
  if (files.empty()) WARN("no COCO fixtures");
  for (const auto& file : files) {
    CAPTURE(file);
    const auto golden = fixture::read_json(file);
    const std::string folder = file.substr(0, file.rfind('/') + 1);
    const auto truth = yolo9::read_coco_truth(folder + golden["ground_truth"].get<std::string>());
    const auto detections = yolo9::read_coco_detections(folder + golden["detections"].get<std::string>());
    CHECK(truth.annotations.size() == golden["annotations"].get<size_t>());
    CHECK(detections.size() == golden["detections_count"].get<size_t>());
    int64_t crowds = 0;
    for (const auto& a : truth.annotations) crowds += a.crowd;
    CHECK(crowds == golden["crowd"].get<int64_t>());

    const auto result = yolo9::evaluate_coco(truth, detections);
    const std::vector<std::string> names = {"AP",       "AP50", "AP75",  "AP_small", "AP_medium", "AP_large",
                                            "AR_1", "AR_10", "AR_100", "AR_small", "AR_medium", "AR_large"};
    const auto figures = result.summary.figures();
    REQUIRE(figures.size() == names.size());
    for (size_t i = 0; i < names.size(); ++i) {
      CAPTURE(names[i]);
      CHECK(figures[i].second == Approx(fixture::number(golden["summary"][names[i]])).margin(1e-6));
    }
    REQUIRE(result.categories.size() == golden["per_category_AP_AR"].size());
    for (size_t i = 0; i < result.categories.size(); ++i) {
      const auto& row = golden["per_category_AP_AR"][i];
      CAPTURE(i);
      CHECK(result.categories[i].id == row[0].get<int64_t>());
      CHECK(result.categories[i].ap == Approx(fixture::number(row[1])).margin(1e-6));
      CHECK(result.categories[i].ar == Approx(fixture::number(row[2])).margin(1e-6));
    }
  }
}

TEST_CASE("COCO evaluation of cases worked out by hand", "[eval]") {
  yolo9::CocoTruth truth;
  truth.images = {5, 9};
  truth.categories = {{1, "thing"}, {2, "absent"}};
  SECTION("a perfect detection is 1 everywhere, -1 where nothing is measured") {
    truth.annotations = {truth_box(1, 5, 10, 20)};
    const auto r = yolo9::evaluate_coco(truth, {{5, 1, {10, 10, 20, 20}, 0.5}});
    CHECK(r.summary.ap == Approx(1.0));
    CHECK(r.summary.ap_small == Approx(1.0));
    CHECK(r.summary.ar1 == Approx(1.0));
    CHECK(r.summary.ap_medium == -1.0);
    CHECK(r.categories[1].ap == -1.0);
  }
  SECTION("a better-scored false positive halves the precision") {
    truth.annotations = {truth_box(1, 5, 10, 20)};
    const auto r = yolo9::evaluate_coco(truth, {{9, 1, {300, 10, 20, 20}, 0.9}, {5, 1, {10, 10, 20, 20}, 0.5}});
    CHECK(r.summary.ap50 == Approx(0.5));
    CHECK(r.summary.ar1 == Approx(1.0));
  }
  SECTION("detections inside a crowd are neither right nor wrong") {
    truth.annotations = {truth_box(1, 5, 10, 20), truth_box(2, 9, 0, 200, true)};
    const auto r = yolo9::evaluate_coco(
        truth, {{9, 1, {50, 50, 20, 20}, 0.9}, {9, 1, {90, 50, 20, 20}, 0.8}, {5, 1, {10, 10, 20, 20}, 0.5}});
    CHECK(r.summary.ap == Approx(1.0));
  }
  SECTION("half the truth found gives recall 1/2") {
    truth.annotations = {truth_box(1, 5, 10, 20), truth_box(2, 9, 10, 20)};
    const auto r = yolo9::evaluate_coco(truth, {{5, 1, {10, 10, 20, 20}, 0.5}});
    CHECK(r.summary.ar100 == Approx(0.5));
    CHECK(r.summary.ap50 == Approx(51.0 / 101));
  }
  SECTION("no detections give 0, no truth gives -1") {
    truth.annotations = {truth_box(1, 5, 10, 20)};
    CHECK(yolo9::evaluate_coco(truth, {}).summary.ap == 0.0);
    truth.annotations.clear();
    CHECK(yolo9::evaluate_coco(truth, {{5, 1, {1, 1, 2, 2}, 0.5}}).summary.ap == -1.0);
  }
  SECTION("a detection of an unknown image is refused") {
    CHECK_THROWS_WITH(yolo9::evaluate_coco(truth, {{77, 1, {1, 1, 2, 2}, 0.5}}), Catch::Contains("image 77"));
  }
}

TEST_CASE("malformed COCO files are refused with one line", "[eval]") {
  const std::string good_lists = R"("images":[{"id":1}],"categories":[{"id":1,"name":"a"}],)";
  const std::vector<std::pair<std::string, std::string>> truths = {
      {"", "JSON"},
      {"[{\"id\": 2", "JSON"},
      {"[1, 2", "expected an object"},
      {"{\"images\":[", "JSON"},
      {"[]", "no list"},
      {"7", "no list"},
      {"{\"images\":[],\"categories\":[]}", "annotations"},
      {"{" + good_lists + "\"annotations\":[{\"image_id\":1,\"category_id\":1,\"bbox\":[1,2,3]}]}", "bbox"},
      {"{" + good_lists + "\"annotations\":[{\"image_id\":1,\"category_id\":1}]}", "bbox"},
      {"{" + good_lists + "\"annotations\":[{\"category_id\":1,\"bbox\":[1,2,3,4]}]}", "image_id"},
      {"{" + good_lists + "\"annotations\":[{\"image_id\":1.5,\"category_id\":1,\"bbox\":[1,2,3,4]}]}", "whole"},
      {"{" + good_lists + "\"annotations\":[{\"image_id\":\"x\",\"category_id\":1,\"bbox\":[1,2,3,4]}]}", "number"},
      {"{" + good_lists + "\"annotations\":[{\"image_id\":1,\"category_id\":1,\"bbox\":[1,2,-3,4]}]}", "negative"},
      {"{" + good_lists + "\"annotations\":[5]}", "expected an object"},
      {"{" + good_lists + "\"annotations\":[[1]]}", "expected an object"},
      {"{" + good_lists + "\"annotations\":[null]}", "expected an object"},
  };
  for (const auto& [text, message] : truths) {
    CAPTURE(text);
    const std::string path = write("gt.json", text);
    try {
      yolo9::read_coco_truth(path);
      FAIL("accepted");
    } catch (const yolo9::Error& error) {
      CHECK(error.kind() == yolo9::ErrorKind::Data);
      CHECK_THAT(error.what(), Catch::Contains(message) && Catch::Contains(path) && !Catch::Contains("\n"));
    }
  }
  for (const std::string text :
       {"{}", "[{}]", "[3]", "[{\"image_id\":1,\"category_id\":1,\"bbox\":[1,2,3,4]}]",
        "[{\"image_id\":1,\"category_id\":1,\"bbox\":[1,2,3,1e999],\"score\":1}]", "\"x\"", "[\"x\"]"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(yolo9::read_coco_detections(write("dt.json", text)), yolo9::Error);
  }
  CHECK_THROWS_AS(yolo9::read_coco_truth("/nonexistent.json"), yolo9::Error);
  CHECK_THROWS_AS(yolo9::read_coco_truth(fixture::temporary_dir("coco")), yolo9::Error);
  CHECK(yolo9::read_coco_detections(write("dt.json", "[]")).empty());
}

TEST_CASE("other lists and nested fields of a COCO file are passed over", "[eval]") {
  const std::string path = write("gt.json", R"({"info":{"images":[{"id":77}]},"licenses":[1,{"id":3}],
    "images":[{"id":1,"file_name":"a.jpg","extra":{"id":9}}],
    "categories":[{"id":4,"name":"a","keypoints":["id"]}],
    "annotations":[{"segmentation":[[1,2,3,4]],"bbox":[1,2,3,4],"image_id":1,"category_id":4,"area":5,
                    "iscrowd":1,"attributes":{"id":6,"bbox":[9]}}]})");
  const auto truth = yolo9::read_coco_truth(path);
  CHECK(truth.images == std::vector<int64_t>{1});
  REQUIRE(truth.categories.size() == 1);
  CHECK(truth.categories[0] == std::make_pair(int64_t{4}, std::string("a")));
  REQUIRE(truth.annotations.size() == 1);
  CHECK(truth.annotations[0].crowd);
  CHECK(truth.annotations[0].area == 5);
  CHECK(truth.annotations[0].box.height == 4);
  CHECK(truth.annotations[0].id == 1);
}

TEST_CASE("detections survive being written and read", "[eval]") {
  const std::string path = fixture::temporary_dir("coco") + "/out.json";
  yolo9::write_coco_detections(path, {{12, 3, {1.23456, 2, 3.5, 4}, 0.123456}, {7, 1, {0, 0, 1, 1}, 1}});
  const auto back = yolo9::read_coco_detections(path);
  REQUIRE(back.size() == 2);
  CHECK(back[0].image_id == 12);
  CHECK(back[0].category_id == 3);
  CHECK(back[0].box.x == Approx(1.235).margin(1e-9));
  CHECK(back[0].score == Approx(0.12346).margin(1e-9));
  yolo9::write_coco_detections(path, {{12, 3, {1, 2, 3, 4}, 0.5}}, {{12, "na\"me"}});
  CHECK(fixture::read_json(path)[0]["image_id"] == "na\"me");
  CHECK_THROWS_AS(yolo9::write_coco_detections("/nonexistent/x.json", {}), yolo9::Error);
}
