#include <yolo9/eval/nms.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <limits>

#include "support/fixture.h"
#include <yolo9/core/random.h>
#include <yolo9/core/safetensors.h>

using yolo9::NmsOptions;

namespace {

NmsOptions options_of(const nlohmann::json& args) {
  NmsOptions options;
  options.confidence = args["conf_thres"];
  options.iou = args["iou_thres"];
  options.agnostic = args["agnostic"];
  options.multi_label = args["multi_label"];
  options.max_detections = args["max_det"];
  if (!args["classes"].is_null()) options.classes = args["classes"].get<std::vector<int64_t>>();
  return options;
}

// Random boxes inside a 640 px picture; scores[c][a] drawn by `score`.
torch::Tensor random_prediction(int64_t classes, int64_t anchors, const std::function<float(yolo9::Random&)>& score) {
  yolo9::Random random({7, static_cast<uint64_t>(classes), static_cast<uint64_t>(anchors)});
  torch::Tensor p = torch::empty({1, 4 + classes, anchors});
  auto at = p.accessor<float, 3>();
  for (int64_t a = 0; a < anchors; ++a) {
    at[0][0][a] = static_cast<float>(random.uniform(0, 640));
    at[0][1][a] = static_cast<float>(random.uniform(0, 640));
    at[0][2][a] = static_cast<float>(random.uniform(4, 200));
    at[0][3][a] = static_cast<float>(random.uniform(4, 200));
    for (int64_t c = 0; c < classes; ++c) at[0][4 + c][a] = score(random);
  }
  return p;
}

double plain_iou(const float* a, const float* b) {
  const double w = std::max(0.0, double(std::min(a[2], b[2])) - std::max(a[0], b[0]));
  const double h = std::max(0.0, double(std::min(a[3], b[3])) - std::max(a[1], b[1]));
  return w * h / (double(a[2] - a[0]) * (a[3] - a[1]) + double(b[2] - b[0]) * (b[3] - b[1]) - w * h);
}

}  // namespace

TEST_CASE("nms gives the reference's detections in the reference's order", "[eval][golden]") {
  const auto files = fixture::golden_files("nms", ".json");
  if (files.empty()) WARN("no nms fixtures");
  for (const auto& file : files) {
    const auto cases = fixture::read_json(file)["cases"];
    const auto tensors = yolo9::read_safetensors_map(file.substr(0, file.size() - 4) + "safetensors");
    REQUIRE_FALSE(cases.empty());
    for (const auto& [name, item] : cases.items()) {
      CAPTURE(file, name);
      const auto results = yolo9::non_max_suppression(tensors.at(name + ".input"), options_of(item["args"]));
      REQUIRE(results.size() == item["counts"].size());
      for (size_t i = 0; i < results.size(); ++i) {
        CAPTURE(i);
        REQUIRE(results[i].size(0) == item["counts"][i].get<int64_t>());
        if (results[i].size(0) == 0) continue;
        const auto expected = tensors.at(name + ".out." + std::to_string(i));
        CHECK(fixture::excess(results[i].slice(1, 0, 4), expected.slice(1, 0, 4), 1e-3, 0) <= 0);
        CHECK(torch::equal(results[i].slice(1, 4, 5), expected.slice(1, 4, 5)));
        CHECK(torch::equal(results[i].slice(1, 5, 6), expected.slice(1, 5, 6)));
      }
    }
  }
}

TEST_CASE("nms leaves out candidates that are not finite", "[eval]") {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  torch::Tensor p = random_prediction(3, 50, [](yolo9::Random& r) { return static_cast<float>(r.uniform(0.3, 1)); });
  p[0][0][0] = nan;
  p[0][2][1] = inf;
  p[0][5].slice(0, 2, 5).fill_(nan);
  p[0][6][5] = inf;
  for (const bool multi : {false, true}) {
    for (const bool agnostic : {false, true}) {
      NmsOptions options;
      options.multi_label = multi;
      options.agnostic = agnostic;
      const torch::Tensor out = yolo9::non_max_suppression(p, options)[0];
      CHECK(out.size(0) > 0);
      CHECK(torch::isfinite(out).all().item<bool>());
    }
  }
  CHECK(yolo9::non_max_suppression(torch::full({2, 9, 40}, nan), {})[1].size(0) == 0);
  CHECK(yolo9::non_max_suppression(torch::zeros({1, 9, 0}), {})[0].size(0) == 0);
  CHECK_THROWS_WITH(yolo9::non_max_suppression(torch::zeros({1, 4, 8}), {}),
                    Catch::Contains("[non_max_suppression]"));
}

TEST_CASE("nms results are maximal and free of overlaps", "[eval]") {
  for (const bool agnostic : {false, true}) {
    NmsOptions options;
    options.confidence = 0.1;
    options.iou = 0.5;
    options.multi_label = true;
    options.agnostic = agnostic;
    options.max_detections = 100000;
    const torch::Tensor p = random_prediction(4, 500, [](yolo9::Random& r) { return float(r.uniform()); });
    const torch::Tensor out = yolo9::non_max_suppression(p, options)[0];
    const float* rows = out.data_ptr<float>();
    REQUIRE(out.size(0) > 20);
    for (int64_t i = 0; i < out.size(0); ++i) {
      if (i > 0) CHECK(rows[i * 6 + 4] <= rows[(i - 1) * 6 + 4]);
      for (int64_t j = 0; j < i; ++j) {
        if (!agnostic && rows[i * 6 + 5] != rows[j * 6 + 5]) continue;
        if (plain_iou(rows + i * 6, rows + j * 6) > 0.5 + 1e-3) FAIL("rows " << j << " and " << i << " overlap");
      }
    }
    // The best candidate of all survives, and fewer wanted detections are a prefix.
    CHECK(rows[4] == p[0].slice(0, 4).max().item<float>());
    options.max_detections = 10;
    CHECK(torch::equal(yolo9::non_max_suppression(p, options)[0], out.slice(0, 0, 10)));
  }
}

TEST_CASE("nms of an untrained model's flood of candidates is bounded", "[eval]") {
  // 8,400 anchors x 80 classes, one score in six above the threshold: 112,000 candidates.
  const torch::Tensor p = random_prediction(80, 8400, [](yolo9::Random& r) {
    return r.uniform() < 1.0 / 6 ? static_cast<float>(r.uniform(0.0011, 0.02)) : 0.0005f;
  });
  NmsOptions options;
  options.confidence = 0.001;
  options.iou = 0.7;
  options.multi_label = true;
  const auto begin = std::chrono::steady_clock::now();
  const torch::Tensor out = yolo9::non_max_suppression(p, options)[0];
  const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  INFO("took " << ms << " ms");
  CHECK(out.size(0) == 300);
  CHECK(ms < 500);
}
