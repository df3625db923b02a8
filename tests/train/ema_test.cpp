#include <catch2/catch.hpp>

#include <yolo9/memory/host_source.h>
#include <yolo9/train/ema.h>

#include "support/fixture.h"

namespace {

torch::Tensor values(const nlohmann::json& list) {
  return torch::tensor(list.get<std::vector<double>>(), torch::kFloat64).to(torch::kFloat);
}

}  // namespace

TEST_CASE("the moving average agrees with the fixture", "[golden]") {
  const auto files = fixture::golden_files("train", "ema.json");
  if (files.empty()) WARN("no moving average fixture");
  for (const auto& file : files) {
    CAPTURE(file);
    const auto info = fixture::read_json(file);
    const yolo9::Ema decays({}, {}, info.at("decay"), info.at("tau"));
    for (const auto& row : info.at("decay_at"))
      CHECK(std::abs(decays.decay_at(row[0].get<int64_t>()) - row[1].get<double>()) <= 1e-6);

    std::vector<std::string> names;
    std::vector<torch::Tensor> live, averages;
    for (const auto& [name, initial] : info.at("initial").items()) {
      if (name.ends_with("num_batches_tracked")) continue;
      names.push_back(name);
      averages.push_back(values(initial));
      live.push_back(averages.back().clone());
    }
    yolo9::Ema ema(live, averages, info.at("decay"), info.at("tau"));
    for (size_t step = 0; step < info.at("updates").size(); ++step) {
      for (size_t i = 0; i < names.size(); ++i)
        live[i].copy_(fixture::uniform("ema:v:" + std::to_string(step) + ":" + names[i], live[i].sizes().vec()) - 0.5);
      ema.update();
      for (size_t i = 0; i < names.size(); ++i) {
        CAPTURE(step, names[i]);
        CHECK(fixture::excess(averages[i], values(info.at("updates")[step].at(names[i])), 1e-6, 0) <= 0);
      }
    }
    CHECK(ema.updates() == static_cast<int64_t>(info.at("updates").size()));
  }
}

TEST_CASE("an update allocates nothing and goes on from a restored count") {
  yolo9::install_host_meter();
  const std::vector<torch::Tensor> live{torch::ones({200000}), torch::ones({7})};
  const std::vector<torch::Tensor> averages{torch::zeros({200000}), torch::zeros({7})};
  yolo9::Ema ema(live, averages);
  ema.set_updates(4999);
  {
    const yolo9::HostBudgetScope counted;
    const auto before = yolo9::host_scoped_allocations();
    ema.update();
    CHECK(yolo9::host_scoped_allocations() == before);
  }
  CHECK(ema.updates() == 5000);
  CHECK(averages[0][199999].item<double>() == Approx(1 - 0.9178232098759636).epsilon(1e-5));
  CHECK(averages[1][6].item<double>() == averages[0][0].item<double>());
}
