// The deploy form: single head, fused; published parameter counts.
#include <catch2/catch.hpp>

#include <cmath>

#include <yolo9/nn/deploy.h>
#include <yolo9/nn/flops.h>

#include "nn/formula_state.h"

namespace {

struct Counts {
  const char* model;
  double millions, gflops;  // of the deploy form at 640 pixels, as published, one decimal
};

void randomize_statistics(torch::nn::Module& module) {
  torch::NoGradGuard guard;
  torch::manual_seed(5);
  for (auto& [name, tensor] : yolo9::state_dict(module)) {
    if (name.find("running_mean") != std::string::npos) tensor.uniform_(-0.1, 0.1);
    if (name.find("running_var") != std::string::npos) tensor.uniform_(0.75, 1.25);
  }
}

}  // namespace

TEST_CASE("deploy forms have the published sizes", "[nn]") {
  for (const auto& [name, millions, gflops] : {Counts{"yolov9-s", 7.1, 26.4}, Counts{"yolov9-m", 20.0, 76.3},
                                               Counts{"yolov9-c", 25.3, 102.1}, Counts{"yolov9-e", 57.3, 189.0}}) {
    CAPTURE(name);
    yolo9::DetectionModel dual(nn_test::model_config(name));
    auto deploy = yolo9::to_single_head(*dual);
    CHECK(!deploy->is_dual());
    deploy->fuse();
    const auto count = static_cast<double>(yolo9::count_parameters(*deploy).total);
    CHECK(std::round(count / 1e5) / 10 == millions);
    CHECK(std::round(yolo9::count_gflops(*deploy) * 10) / 10 == gflops);
    // The bundled single-head configuration is the same network.
    const std::string single = "gelan" + std::string(name).substr(6);
    yolo9::DetectionModel gelan(nn_test::model_config(single));
    const auto plan = yolo9::plan_single_head(*dual);
    const auto derived = yolo9::parse_graph(plan.config_text, "derived");
    REQUIRE(derived.layers.size() == gelan->layers().size());
    for (size_t i = 0; i < derived.layers.size(); ++i) {
      CAPTURE(i);
      CHECK(derived.layers[i].type == gelan->layers()[i].type);
      CHECK(derived.layers[i].resolved_args == gelan->layers()[i].resolved_args);
      CHECK(derived.layers[i].sources == gelan->graph().layers[i].sources);
    }
  }
}

TEST_CASE("layers of the single head come from the documented places", "[nn]") {
  const auto source_of = [](const std::string& name) {
    yolo9::DetectionModel dual(nn_test::model_config(name));
    return yolo9::plan_single_head(*dual).source_of;
  };
  const auto t = source_of("yolov9-t");
  REQUIRE(t.size() == 23);
  for (int64_t i = 0; i < 22; ++i) CHECK(t.at(i) == i);
  CHECK(t.at(22) == 29);
  const auto m = source_of("yolov9-m");
  REQUIRE(m.size() == 23);
  for (int64_t i = 0; i < 22; ++i) CHECK(m.at(i) == i + 1);
  CHECK(m.at(22) == 38);
  const auto e = source_of("yolov9-e");
  REQUIRE(e.size() == 43);
  for (int64_t i = 0; i < 42; ++i) CHECK(e.at(i) == (i < 29 ? i : i + 7));
  CHECK(e.at(42) == 49);
}

TEST_CASE("the single head gives the dual model's main output", "[nn]") {
  for (const std::string name : {"yolov9-t", "yolov9-m"}) {
    CAPTURE(name);
    yolo9::ModelOptions options;
    options.classes = 4;
    yolo9::DetectionModel dual(nn_test::model_config(name), options);
    randomize_statistics(*dual);
    dual->eval();
    auto single = yolo9::to_single_head(*dual);
    CHECK(single->classes() == 4);
    CHECK(!single->is_training());
    torch::NoGradGuard guard;
    const auto x = torch::rand({1, 3, 64, 96});
    const auto expected = dual->forward(x), actual = single->forward(x);
    CHECK(torch::equal(actual.decoded_main, expected.decoded_main));
    CHECK(actual.aux.empty());
    for (size_t i = 0; i < actual.main.size(); ++i) CHECK(torch::equal(actual.main[i], expected.main[i]));
    dual->fuse();
    auto fused = yolo9::to_single_head(*dual);
    CHECK(fused->is_fused());
    CHECK(torch::equal(fused->forward(x).decoded_main, dual->forward(x).decoded_main));
    single->fuse();
    CHECK(fixture::excess(single->forward(x).decoded_main, expected.decoded_main, 5e-3, 1e-4) <= 0);
  }
}

TEST_CASE("a plan keeps multiples, activation and repeats", "[nn]") {
  const std::string text =
      "nc: 2\ndepth_multiple: 0.5\nwidth_multiple: 2.0\nanchors: 3\nactivation: nn.LeakyReLU(0.1)\nbackbone:\n"
      "  - [-1, 1, Silence, []]\n  - [-1, 1, Conv, [8, 3, 2]]\n  - [-1, 4, Conv, [8]]\n"
      "  - [0, 1, Conv, [8, 3, 2]]\nhead:\n"
      "  - [-1, 1, ADown, [16]]\n  - [2, 1, ADown, [16]]\n  - [[3, 4, 2, 5], 1, DualDDetect, [nc]]\n";
  auto dual = yolo9::make_model(text, "m.yaml");
  dual->eval();
  auto single = yolo9::to_single_head(*dual);
  REQUIRE(single->layers().size() == 4);
  CHECK(single->layers()[0].type == "Conv");
  CHECK(single->layers()[1].repeats == 2);
  CHECK(single->layers()[2].widths == std::vector<int64_t>{32});
  CHECK(single->graph().activation.slope == 0.1);
  torch::NoGradGuard guard;
  const auto x = torch::rand({1, 3, 32, 32});
  CHECK(torch::equal(single->forward(x).decoded_main, dual->forward(x).decoded_main));
  CHECK(yolo9::count_gflops(*single, 64) > 0);
  CHECK(yolo9::count_gflops(*single, 64) < yolo9::count_gflops(*dual, 64));
}

TEST_CASE("operations are counted by hand on a small model", "[nn]") {
  auto model = yolo9::make_model(
      "nc: 1\ndepth_multiple: 1\nwidth_multiple: 1\nbackbone:\n  - [-1, 1, Conv, [8, 3, 2]]\n"
      "  - [-1, 2, Conv, [8, 3, 2]]\n"
      "head:\n  - [-1, 1, DDetect, [nc]]\n", "m.yaml");
  // On 64 x 64: Conv 3->8 on 32x32, then two Conv 8->8 on 16x16 and 8x8; head of one level with 64 cells.
  const double stem = 3 * 8 * 9 * 1024.0 + 4 * 8 * 1024.0;
  const double twice = (8 * 8 * 9 + 4 * 8) * (256.0 + 64.0);
  const double box = 8 * 64 * 9 + 64 * 16 * 9 + 64 * 16 + 4 * 128;
  const double cls = 8 * 8 * 9 * 2 + 8 + 4 * 16;
  const double head = (box + cls) * 64 + 16 * 4 * 64;
  CHECK(yolo9::count_gflops(*model, 64) == Approx(2 * (stem + twice + head) / 1e9).epsilon(1e-12));
}
