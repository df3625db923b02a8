#include <catch2/catch.hpp>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <yolo9/core/error.h>
#include <yolo9/memory/host_source.h>
#include <yolo9/train/optimizer.h>

#include "support/fixture.h"

namespace {

// Named parameters of the fixture as views into the groups' flat buffers.
struct FlatModel {
  std::vector<yolo9::ParameterGroup> groups;
  std::map<std::string, torch::Tensor> value, gradient;
};

FlatModel make_model(const nlohmann::json& run) {
  FlatModel model;
  for (size_t i = 0; i < run.at("groups").size(); ++i) {
    int64_t total = 0;
    for (const auto& name : run.at("groups")[i])
      total += static_cast<int64_t>(run.at("initial").at(name.get<std::string>()).size());
    yolo9::ParameterGroup group;
    group.value = torch::empty({total});
    group.gradient = torch::zeros({total});
    group.weight_decay = fixture::number(run.at("group_weight_decay")[i]);
    int64_t offset = 0;
    for (const auto& name : run.at("groups")[i]) {
      const auto key = name.get<std::string>();
      const auto initial = run.at("initial").at(key).get<std::vector<double>>();
      const auto count = static_cast<int64_t>(initial.size());
      model.value[key] = group.value.narrow(0, offset, count);
      model.gradient[key] = group.gradient.narrow(0, offset, count);
      model.value[key].copy_(torch::tensor(initial, torch::kFloat64));
      CHECK(model.value[key].equal(fixture::uniform("opt:v:" + key, {count}) - 0.5));
      offset += count;
    }
    model.groups.push_back(group);
  }
  return model;
}

std::vector<yolo9::ParameterGroup> large_groups() {
  std::vector<yolo9::ParameterGroup> groups;
  for (const int64_t count : {300001, 0, 70000, 5})
    groups.push_back({fixture::uniform("value:" + std::to_string(count), {count}) - 0.5,
                      fixture::uniform("gradient:" + std::to_string(count), {count}) - 0.5, 0.01, 0.0005});
  return groups;
}

}  // namespace

TEST_CASE("optimizers agree with the fixture", "[golden]") {
  const auto files = fixture::golden_files("train", "optimizers.json");
  if (files.empty()) WARN("no optimizer fixture");
  for (const auto& file : files) {
    const auto info = fixture::read_json(file);
    for (const auto& [name, run] : info.at("runs").items()) {
      CAPTURE(file, name);
      auto model = make_model(run);
      const auto optimizer = yolo9::make_optimizer(yolo9::parse_optimizer(name.substr(0, name.find('.'))), model.groups,
                                                   info.at("momentum"));
      for (size_t step = 0; step < run.at("trace").size(); ++step) {
        CAPTURE(step);
        const auto& row = run.at("trace")[step];
        for (size_t i = 0; i < 3; ++i) optimizer->groups()[i].learning_rate = row.at("lr")[i];
        CHECK(optimizer->has_momentum() == !row.at("momentum").is_null());
        if (optimizer->has_momentum()) optimizer->set_momentum(row.at("momentum"));
        for (auto& [key, gradient] : model.gradient) {
          const auto formula = "optgrad:v:" + std::to_string(step) + ":" + key;
          gradient.copy_(fixture::uniform(formula, gradient.sizes().vec()) - 0.5);
        }
        optimizer->step();
        for (const auto& [key, expected] : row.at("params").items()) {
          CAPTURE(key);
          CHECK(fixture::excess(model.value.at(key),
                                torch::tensor(expected.get<std::vector<double>>(), torch::kFloat64).to(torch::kFloat),
                                1e-6, 0) <= 0);
        }
      }
    }
  }
}

TEST_CASE("step and clip allocate no tensor memory") {
  yolo9::install_host_meter();
  for (const auto* name : {"SGD", "Adam", "AdamW", "LION"}) {
    CAPTURE(name);
    const auto optimizer = yolo9::make_optimizer(yolo9::parse_optimizer(name), large_groups(), 0.9);
    const yolo9::HostBudgetScope counted;
    const auto before = yolo9::host_scoped_allocations();
    for (int step = 0; step < 3; ++step) {
      yolo9::clip_gradients(optimizer->groups(), 0.5);
      optimizer->step();
    }
    CHECK(yolo9::host_scoped_allocations() == before);
    const auto probe = torch::empty({16});
    CHECK(yolo9::host_scoped_allocations() == before + 1);
  }
}

TEST_CASE("a loaded state goes on as if never interrupted") {
  for (const auto* name : {"SGD", "Adam", "AdamW", "LION"}) {
    CAPTURE(name);
    const auto kind = yolo9::parse_optimizer(name);
    const auto original = yolo9::make_optimizer(kind, large_groups(), 0.9);
    for (int step = 0; step < 3; ++step) original->step();
    auto groups = large_groups();
    std::vector<std::pair<std::string, torch::Tensor>> saved;
    for (const auto& [key, tensor] : original->state()) saved.emplace_back(key, tensor.clone());
    for (size_t i = 0; i < groups.size(); ++i) groups[i].value.copy_(original->groups()[i].value);
    const auto resumed = yolo9::make_optimizer(kind, groups, 0.9);
    resumed->load_state(saved);
    original->step();
    resumed->step();
    for (size_t i = 0; i < groups.size(); ++i) CHECK(groups[i].value.equal(original->groups()[i].value));
    saved.pop_back();
    CHECK_THROWS_AS(resumed->load_state(saved), yolo9::Error);
  }
}

TEST_CASE("clipping scales to the largest norm and no further") {
  auto groups = large_groups();
  double squares = 0;
  std::vector<torch::Tensor> before;
  for (const auto& group : groups) {
    before.push_back(group.gradient.clone());
    squares += group.gradient.to(torch::kFloat64).square().sum().item<double>();
  }
  const double norm = std::sqrt(squares);
  CHECK(yolo9::clip_gradients(groups, 2 * norm) == Approx(norm).epsilon(1e-12));
  for (size_t i = 0; i < groups.size(); ++i) CHECK(groups[i].gradient.equal(before[i]));
  CHECK(yolo9::clip_gradients(groups, 10) == Approx(norm).epsilon(1e-12));
  for (size_t i = 0; i < groups.size(); ++i)
    CHECK(fixture::excess(groups[i].gradient, before[i] * (10 / (norm + 1e-6)), 1e-9, 1e-6) <= 0);
  CHECK(yolo9::clip_gradients(groups, 100) == Approx(10).epsilon(1e-5));
}

TEST_CASE("the norm does not depend on the number of threads") {
  auto groups = large_groups();
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const double one = yolo9::clip_gradients(groups, 1e9);
  at::set_num_threads(3);
  const double three = yolo9::clip_gradients(groups, 1e9);
  at::set_num_threads(threads);
  CHECK(one == three);
}

TEST_CASE("gradients that are not finite are reported and left alone") {
  for (const float bad : {NAN, INFINITY}) {
    auto groups = large_groups();
    groups[2].gradient[69999] = bad;
    const auto before = groups[0].gradient.clone();
    CHECK_FALSE(std::isfinite(yolo9::clip_gradients(groups, 10)));
    CHECK(groups[0].gradient.equal(before));
  }
}

TEST_CASE("an unknown optimizer is refused") {
  CHECK_THROWS_WITH(yolo9::parse_optimizer("adam"), Catch::Contains("\"adam\"") && Catch::Contains("LION"));
}
