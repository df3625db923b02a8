#include <catch2/catch.hpp>

#include <yolo9/core/error.h>
#include <yolo9/train/optimizer.h>
#include <yolo9/train/schedule.h>

#include "support/fixture.h"

namespace {

yolo9::ScheduleShape shape_of(const std::string& mode) {
  if (mode == "linear") return yolo9::ScheduleShape::Linear;
  if (mode == "cosine") return yolo9::ScheduleShape::Cosine;
  if (mode == "flat_cosine") return yolo9::ScheduleShape::FlatCosine;
  REQUIRE(mode == "fixed");
  return yolo9::ScheduleShape::Fixed;
}

bool has_warm_momentum(const std::string& optimizer) {
  yolo9::ParameterGroup group{torch::zeros({1}), torch::zeros({1}), 0, 0};
  return yolo9::make_optimizer(yolo9::parse_optimizer(optimizer), {group}, 0.9)->has_momentum();
}

yolo9::ScheduleOptions options_of(const nlohmann::json& hyp, const nlohmann::json& entry) {
  yolo9::ScheduleOptions options;
  options.shape = shape_of(entry.at("mode"));
  options.epochs = entry.at("epochs");
  options.batches_per_epoch = entry.at("batches_per_epoch");
  options.batch = entry.at("batch");
  options.lr0 = hyp.at("lr0");
  options.lrf = hyp.at("lrf");
  options.momentum = hyp.at("momentum");
  options.warmup_epochs = hyp.at("warmup_epochs");
  options.warmup_momentum = hyp.at("warmup_momentum");
  options.warmup_bias_lr = hyp.at("warmup_bias_lr");
  return options;
}

// Warm-up (150 iterations) ends as epoch 3 begins.
yolo9::ScheduleOptions small_run() {
  yolo9::ScheduleOptions options;
  options.epochs = 8;
  options.batches_per_epoch = 50;
  options.warmup_epochs = 3;
  return options;
}

}  // namespace

TEST_CASE("schedules agree with the fixture", "[golden]") {
  const auto files = fixture::golden_files("train", "schedules.json");
  if (files.empty()) WARN("no schedule fixture");
  for (const auto& file : files) {
    const auto info = fixture::read_json(file);
    REQUIRE(info.at("columns").size() == 9);
    for (size_t index = 0; index < info.at("cases").size(); ++index) {
      const auto& entry = info.at("cases")[index];
      CAPTURE(file, index, entry.at("mode").get<std::string>());
      const auto options = options_of(info.at("hyp"), entry);
      yolo9::Schedule schedule(options);
      CHECK(schedule.warmup_iterations() == entry.at("warmup_iterations").get<int64_t>());
      for (size_t epoch = 0; epoch < entry.at("lf").size(); ++epoch)
        CHECK(std::abs(schedule.factor(static_cast<int64_t>(epoch)) - entry.at("lf")[epoch].get<double>()) <= 1e-12);
      const auto decay = yolo9::scaled_weight_decay(info.at("hyp").at("weight_decay"), options.batch, 64);
      CHECK(std::abs(decay - entry.at("weight_decay")[1].get<double>()) <= 1e-12);
      const bool warm_momentum = has_warm_momentum(entry.at("optimizer"));
      int64_t last_step = -1;
      for (const auto& row : entry.at("rows")) {
        const int64_t iteration = row[0], epoch = row[1], batch = row[2];
        if (batch == 0 && epoch > 0) schedule.end_epoch(epoch - 1);
        CAPTURE(iteration, epoch);
        const auto plan = schedule.plan(iteration, epoch);
        REQUIRE(static_cast<double>(plan.accumulate) == row[3].get<double>());
        const bool steps = iteration - last_step >= plan.accumulate;
        if (steps) last_step = iteration;
        REQUIRE(steps == (row[4].get<int64_t>() == 1));
        for (size_t group = 0; group < 3; ++group)
          REQUIRE(std::abs(plan.learning_rates[group] - row[5 + group].get<double>()) <= 1e-12);
        REQUIRE(std::abs((warm_momentum ? plan.momentum : options.momentum) - row[8].get<double>()) <= 1e-12);
      }
    }
  }
}

TEST_CASE("the modern schedule does not lag") {
  auto options = small_run();
  yolo9::Schedule lagging(options);
  options.modern = true;
  yolo9::Schedule modern(options);
  for (int64_t epoch = 0; epoch < options.epochs; ++epoch) {
    double modern_rate = 0, lagging_rate = 0;
    for (int64_t i = 0; i < 50; ++i) {
      modern_rate = modern.plan(epoch * 50 + i, epoch).learning_rates[1];
      lagging_rate = lagging.plan(epoch * 50 + i, epoch).learning_rates[1];
    }
    if (epoch >= 4) {
      CHECK(modern_rate == Approx(options.lr0 * modern.factor(epoch)).epsilon(1e-12));
      CHECK(lagging_rate == Approx(options.lr0 * modern.factor(epoch - 1)).epsilon(1e-12));
    } else {
      CHECK(modern_rate == lagging_rate);
    }
    modern.end_epoch(epoch);
    lagging.end_epoch(epoch);
  }
}

TEST_CASE("a restored schedule goes on with the same rates") {
  yolo9::Schedule original(small_run()), resumed(small_run());
  for (int64_t epoch = 0; epoch < 5; ++epoch) {
    for (int64_t i = 0; i < 50; ++i) original.plan(epoch * 50 + i, epoch);
    original.end_epoch(epoch);
  }
  resumed.load_state(original.state());
  const auto expected = original.plan(260, 5), actual = resumed.plan(260, 5);
  CHECK_FALSE(actual.warming_up);
  CHECK(actual.learning_rates == expected.learning_rates);
  CHECK(actual.accumulate == 4);
  CHECK(expected.accumulate == 4);
  CHECK_THROWS_AS(resumed.load_state({}), yolo9::Error);
}

TEST_CASE("accumulation rounds half to even") {
  CHECK(yolo9::nominal_accumulation(16, 64) == 4);
  CHECK(yolo9::nominal_accumulation(2, 5) == 2);
  CHECK(yolo9::nominal_accumulation(2, 7) == 4);
  CHECK(yolo9::nominal_accumulation(128, 64) == 1);
  CHECK(yolo9::nominal_accumulation(200, 64) == 1);
  CHECK(yolo9::scaled_weight_decay(0.0005, 128, 64) == Approx(0.001));
  CHECK(yolo9::scaled_weight_decay(0.0005, 24, 64) == Approx(0.0005 * 72 / 64));
}
