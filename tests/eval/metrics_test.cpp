#include <yolo9/eval/metrics.h>

#include <catch2/catch.hpp>
#include <numeric>

#include "support/fixture.h"
#include <yolo9/core/random.h>

namespace {

torch::Tensor table(const nlohmann::json& rows, int64_t width) {
  torch::Tensor t = torch::zeros({static_cast<int64_t>(rows.size()), width});
  for (size_t i = 0; i < rows.size(); ++i) {
    for (int64_t j = 0; j < width; ++j) {
      t[static_cast<int64_t>(i)][j] = fixture::number(rows[i][static_cast<size_t>(j)]);
    }
  }
  return t;
}

std::vector<double> numbers(const nlohmann::json& list) {
  std::vector<double> result;
  for (const auto& v : list) result.push_back(fixture::number(v));
  return result;
}

void check_close(const std::string& what, const std::vector<double>& actual, const nlohmann::json& expected) {
  CAPTURE(what);
  REQUIRE(actual.size() == expected.size());
  double worst = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    worst = std::max(worst, std::abs(actual[i] - fixture::number(expected[i])));
  }
  CHECK(worst <= 1e-6);
}

torch::Tensor scores_of(const nlohmann::json& list) {
  return torch::tensor(numbers(list), torch::kFloat64).to(torch::kFloat32);
}

void check_ap(const yolo9::ApResult& r, const nlohmann::json& expected) {
  std::vector<double> classes(r.classes.begin(), r.classes.end()), ap50, ap5095;
  for (size_t i = 0; i < r.ap.size(); ++i) {
    ap50.push_back(r.ap50(i));
    ap5095.push_back(r.ap5095(i));
    check_close("ap of class " + std::to_string(r.classes[i]), r.ap[i], expected["ap"][i]);
  }
  check_close("classes", classes, expected["classes"]);
  check_close("tp", r.tp, expected["tp"]);
  check_close("fp", r.fp, expected["fp"]);
  check_close("p", r.precision, expected["p"]);
  check_close("r", r.recall, expected["r"]);
  check_close("f1", r.f1, expected["f1"]);
  check_close("ap50", ap50, expected["ap50"]);
  check_close("ap5095", ap5095, expected["ap5095"]);
  check_close("means", {r.mean_precision(), r.mean_recall(), r.map50(), r.map5095(), r.fitness()},
              nlohmann::json::array(
                  {expected["mp"], expected["mr"], expected["map50"], expected["map"], expected["fitness"]}));
}

}  // namespace

TEST_CASE("matching, average precision and the confusion matrix equal the reference", "[eval][golden]") {
  const auto files = fixture::golden_files("metrics", "ap_per_class.json");
  if (files.empty()) WARN("no ap_per_class fixtures");
  for (const auto& file : files) {
    CAPTURE(file);
    const auto golden = fixture::read_json(file);
    const auto levels = numbers(golden["iou_thresholds"]);
    REQUIRE(levels.size() == yolo9::kIouLevels);
    for (size_t k = 0; k < levels.size(); ++k) CHECK(double(yolo9::iou_level(int64_t(k))) == levels[k]);

    yolo9::ConfusionMatrix confusion(golden["nc"], golden["confusion"]["conf"], golden["confusion"]["iou"], false);
    std::vector<torch::Tensor> correct, detections, labels;
    for (size_t i = 0; i < golden["images"].size(); ++i) {
      CAPTURE(i);
      const auto& image = golden["images"][i];
      const torch::Tensor det = table(image["det"], 6), gt = table(image["gt"], 5);
      const torch::Tensor matches = yolo9::match_detections(det, gt);
      const torch::Tensor counts = matches.to(torch::kInt64).sum(1);
      std::vector<double> actual;
      for (int64_t d = 0; d < counts.size(0); ++d) actual.push_back(counts[d].item<double>());
      check_close("correct levels", actual, image["correct_levels"]);
      correct.push_back(matches);
      detections.push_back(det);
      labels.push_back(gt);
      confusion.add(det, gt);
    }
    const torch::Tensor all = torch::cat(detections);
    check_ap(yolo9::ap_per_class(torch::cat(correct), all.select(1, 4), all.select(1, 5),
                                 torch::cat(labels).select(1, 0)),
             golden["result"]);
    // The same from the flat arrays, which the matching cannot have spoilt.
    const auto& flat = golden["flat"];
    check_ap(yolo9::ap_per_class(table(flat["tp"], 10).to(torch::kBool), scores_of(flat["conf"]),
                                 scores_of(flat["pred_cls"]), scores_of(flat["target_cls"])),
             golden["result"]);

    const auto rows = confusion.rows();
    REQUIRE(rows.size() == golden["confusion"]["matrix"].size());
    for (size_t p = 0; p < rows.size(); ++p) {
      check_close("matrix row " + std::to_string(p), rows[p], golden["confusion"]["matrix"][p]);
    }
    check_close("tp", confusion.true_positives(), golden["confusion"]["tp_fp"][0]);
    check_close("fp", confusion.false_positives(), golden["confusion"]["tp_fp"][1]);

    const auto& ap = golden["compute_ap"];
    const auto area = yolo9::compute_ap(numbers(ap["recall"]), numbers(ap["precision"]));
    check_close("ap", {area.ap}, nlohmann::json::array({ap["ap"]}));
    check_close("mpre", area.precision_envelope, ap["mpre"]);
    check_close("mrec", area.recall, ap["mrec"]);
    const auto& s = golden["smooth"];
    check_close("smooth", yolo9::smooth(numbers(s["y"]), s["f"]), s["out"]);
    check_close("smooth, default", yolo9::smooth(numbers(s["y"])), s["out_default"]);
    CHECK(s["f_default"].get<double>() == 0.05);
  }
}

TEST_CASE("average precision of simple cases", "[eval]") {
  const torch::Tensor truth = torch::tensor({{0.f, 10.f, 10.f, 50.f, 50.f}, {1.f, 60.f, 60.f, 90.f, 90.f}});
  SECTION("perfect detections score 1") {
    const torch::Tensor det = torch::tensor({{10.f, 10.f, 50.f, 50.f, 0.9f, 0.f}, {60.f, 60.f, 90.f, 90.f, 0.8f, 1.f}});
    const auto r = yolo9::ap_per_class(yolo9::match_detections(det, truth), det.select(1, 4), det.select(1, 5),
                                       truth.select(1, 0));
    CHECK(r.map50() == Approx(0.995).margin(0.0051));
    CHECK(r.map5095() == Approx(r.map50()));
    CHECK(r.mean_recall() == Approx(1.0));
    CHECK(r.mean_precision() == Approx(1.0));
  }
  SECTION("the wrong class scores 0") {
    const torch::Tensor det = torch::tensor({{10.f, 10.f, 50.f, 50.f, 0.9f, 1.f}});
    const auto matches = yolo9::match_detections(det, truth);
    CHECK_FALSE(matches.any().item<bool>());
    const auto r = yolo9::ap_per_class(matches, det.select(1, 4), det.select(1, 5), truth.select(1, 0));
    CHECK(r.map50() == 0.0);
    CHECK(r.classes == std::vector<int64_t>{0, 1});
  }
  SECTION("no detections, no labels") {
    const auto none = torch::zeros({0, 6});
    const auto r = yolo9::ap_per_class(yolo9::match_detections(none, truth), none.select(1, 4), none.select(1, 5),
                                       truth.select(1, 0));
    CHECK(r.classes.size() == 2);
    CHECK(r.fitness() == 0.0);
    const auto empty = yolo9::ap_per_class(torch::zeros({0, 10}), torch::zeros({0}), torch::zeros({0}),
                                           torch::zeros({0}));
    CHECK(empty.classes.empty());
    CHECK(empty.map50() == 0.0);
    CHECK(empty.mean_precision() == 0.0);
  }
}

TEST_CASE("of two claims on a label the earlier detection wins", "[eval]") {
  const torch::Tensor truth = torch::tensor({{0.f, 0.f, 0.f, 100.f, 100.f}});
  const torch::Tensor det = torch::tensor({{0.f, 0.f, 100.f, 80.f, 0.9f, 0.f}, {0.f, 0.f, 100.f, 100.f, 0.8f, 0.f}});
  const torch::Tensor levels = yolo9::match_detections(det, truth).to(torch::kInt64).sum(1);
  CHECK(levels[0].item<int64_t>() == 7);  // IoU 0.8 (a little less): thresholds 0.50 .. 0.75 or 0.80
  CHECK(levels[1].item<int64_t>() == 3);  // the thresholds that the first does not reach
}

TEST_CASE("the confusion matrix counts lone detections unless told not to", "[eval]") {
  const torch::Tensor det = torch::tensor({{0.f, 0.f, 10.f, 10.f, 0.9f, 1.f}});
  const torch::Tensor far = torch::tensor({{0.f, 50.f, 50.f, 90.f, 90.f}});
  yolo9::ConfusionMatrix counting(2), official(2, 0.25, 0.45, false);
  for (auto* m : {&counting, &official}) {
    m->add(det, far);
    m->add(det, torch::zeros({0, 5}));
    m->add(torch::zeros({0, 6}), far);
    CHECK(m->at(2, 0) == 2.0);
  }
  CHECK(counting.at(1, 2) == 2.0);
  CHECK(official.at(1, 2) == 0.0);
  CHECK_THROWS_WITH(counting.add(torch::zeros({0, 6}), torch::tensor({{7.f, 0.f, 0.f, 1.f, 1.f}})),
                    Catch::Contains("[ConfusionMatrix]"));
}
