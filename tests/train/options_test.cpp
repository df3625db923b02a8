#include <catch2/catch.hpp>

#include <fstream>

#include <yolo9/core/error.h>
#include <yolo9/train/hyp.h>
#include <yolo9/train/image_weights.h>
#include <yolo9/train/run_data.h>
#include <yolo9/train/run_options.h>

#include "support/fixture.h"

using namespace yolo9;

namespace {

std::string written(const std::string& text) {
  static int count = 0;
  const std::string path = fixture::temporary_dir("hyp" + std::to_string(count++)) + "/hyp.yaml";
  std::ofstream(path) << text;
  return path;
}

std::string complaint(const std::string& text) {
  try {
    load_hyp(written(text));
  } catch (const Error& error) {
    CHECK(error.exit_status() == 2);
    const std::string line = error.what();
    return line.substr(line.find("hyp.yaml"));
  }
  return "none";
}

}  // namespace

TEST_CASE("hyper-parameters come back from their yaml") {
  Hyp hyp;
  hyp.lr0 = 0.00123456789;
  hyp.mixup = 1.0 / 3;
  const Hyp back = load_hyp(written(hyp_to_yaml(hyp)));
  CHECK(back.lr0 == hyp.lr0);
  CHECK(back.mixup == hyp.mixup);
  CHECK(hyp_to_yaml(back) == hyp_to_yaml(hyp));
}

TEST_CASE("bundled hyper-parameters load, and missing keys take their defaults") {
  for (const char* name : {"scratch-high", "scratch-low", "scratch-small"}) CHECK_NOTHROW(load_hyp(find_hyp(name)));
  CHECK(load_hyp(find_hyp("scratch-small")).lr0 == 0.002);
  const Hyp hyp = load_hyp(written("lr0: 0.5\nobj: 0.7\n"));
  CHECK(hyp.lr0 == 0.5);
  CHECK(hyp.momentum == 0.937);
  CHECK_THROWS_AS(find_hyp("no-such-file"), Error);
}

TEST_CASE("bad hyper-parameters are refused with file and line") {
  CHECK(complaint("lr0: 0.1\nlr_f: 0.1\n") == "hyp.yaml:2: unknown key \"lr_f\"; did you mean \"lrf\"?");
  CHECK(complaint("lr0: fast\n") == "hyp.yaml:1: expected a finite number, found fast");
  CHECK(complaint("mosaic: 1.5\n") == "hyp.yaml:1: mosaic is 1.5, outside 0..1");
  CHECK(complaint("- 1\n") == "hyp.yaml:1: expected a map of hyper-parameters");
}

TEST_CASE("run options come back from their yaml, and unknown ones are refused") {
  RunOptions options;
  options.cfg = "yolov9-t";
  options.data = "a \"quoted\" # path.yaml";
  options.schedule = ScheduleShape::FlatCosine;
  options.freeze = {3, 5};
  options.seed = 7;
  options.image_weights = true;
  const RunOptions back = options_from_yaml(options_to_yaml(options), "opt.yaml");
  CHECK(options_to_yaml(back) == options_to_yaml(options));
  CHECK(back.data == options.data);
  CHECK(back.schedule == ScheduleShape::FlatCosine);
  CHECK(back.freeze == std::vector<int64_t>{3, 5});
  CHECK_THROWS_WITH(options_from_yaml("epoch: 3\n", "run.yaml"),
                    "run.yaml:1: unknown key \"epoch\"; did you mean \"epochs\"?");
}

TEST_CASE("options that make no sense are refused before anything happens") {
  RunOptions good;
  good.cfg = "yolov9-t";
  good.data = "data.yaml";
  CHECK_NOTHROW(check_options(good));
  const auto refused = [&](auto change) {
    RunOptions bad = good;
    change(bad);
    CHECK_THROWS_AS(check_options(bad), Error);
  };
  refused([](RunOptions& o) { o.data.clear(); });
  refused([](RunOptions& o) { o.cfg.clear(); });
  refused([](RunOptions& o) { o.epochs = 0; });
  refused([](RunOptions& o) { o.batch = 0; });
  refused([](RunOptions& o) { o.image_size = 16; });
  refused([](RunOptions& o) { o.patience = -1; });
  refused([](RunOptions& o) { o.close_mosaic = -1; });
  refused([](RunOptions& o) { o.cache = "tape"; });
  refused([](RunOptions& o) { o.rect = o.image_weights = true; });
  refused([](RunOptions& o) { o.workers = -2; });
  refused([](RunOptions& o) { o.rect = o.quad = true; });
  refused([](RunOptions& o) {
    o.quad = true;
    o.batch = 6;
  });
  for (const char* cache : {"", "ram", "disk"}) {
    RunOptions fine = good;
    fine.cache = cache;
    fine.quad = true;
    CHECK_NOTHROW(check_options(fine));
  }
}

TEST_CASE("kept pictures leave memory to the training") {
  constexpr int64_t kGiB = int64_t{1} << 30;
  const torch::Device cpu(torch::kCPU), cuda(torch::kCUDA, 0);
  CHECK(picture_budget_bytes(10 * kGiB, 0, cpu) == 5 * kGiB);
  CHECK(picture_budget_bytes(10 * kGiB, 4 * kGiB, cpu) == 5 * kGiB);
  CHECK(picture_budget_bytes(10 * kGiB, 9 * kGiB, cpu) == 0);
  CHECK(picture_budget_bytes(10 * kGiB, 100 * kGiB, cpu) == 0);
  CHECK(picture_budget_bytes(10 * kGiB, 4 * kGiB, cuda) == 8 * kGiB);
}

TEST_CASE("image weights favour rare and badly detected classes") {
  const std::vector<std::vector<int64_t>> labels{{0, 0}, {0, 1}, {}, {1}};
  const auto weights = image_weights(labels, 2, {});
  // Class 0 has three labels, class 1 two: 1/3 and 1/2, mean 5/12.
  CHECK(weights[0] == Approx(2 * (1.0 / 3) / (5.0 / 12)));
  CHECK(weights[1] == Approx((1.0 / 3 + 1.0 / 2) / (5.0 / 12)));
  CHECK(weights[2] == 0);
  const auto learnt = image_weights(labels, 2, {1.0, 0.0});
  CHECK(learnt[0] == 0);
  CHECK(learnt[3] > 0);
  Random random{1};
  const auto drawn = draw_weighted(learnt, 3000, random);
  std::vector<int> hits(4);
  for (const int64_t index : drawn) ++hits[static_cast<size_t>(index)];
  CHECK(hits[0] == 0);
  CHECK(hits[2] == 0);
  CHECK(hits[1] == Approx(1500).margin(150));
}
