#include <catch2/catch.hpp>

#include <yolo9/train/early_stop.h>

#include "support/fixture.h"

TEST_CASE("early stopping follows the fixture's traces", "[golden]") {
  const auto files = fixture::golden_files("train", "ema.json");
  if (files.empty()) WARN("no early stopping fixture");
  for (const auto& file : files) {
    const auto info = fixture::read_json(file);
    for (const auto& [name, trace] : info.at("early_stopping").items()) {
      yolo9::EarlyStop stop(std::stoll(name.substr(name.rfind(".p") + 2)));
      for (size_t epoch = 0; epoch < trace.size(); ++epoch) {
        CAPTURE(file, name, epoch);
        const auto number = static_cast<int64_t>(epoch);
        CHECK(stop.should_stop(number, fixture::number(trace[epoch][0])) == trace[epoch][1].get<bool>());
        CHECK(stop.may_stop_next(number) == trace[epoch][2].get<bool>());
        CHECK(stop.best_epoch() == trace[epoch][3].get<int64_t>());
      }
    }
  }
}

TEST_CASE("a restored early stop remembers the best epoch") {
  yolo9::EarlyStop stop(2);
  stop.restore(0.5, 10);
  CHECK_FALSE(stop.should_stop(11, 0.4));
  CHECK(stop.may_stop_next(11));
  CHECK(stop.should_stop(12, 0.49));
  CHECK_FALSE(stop.should_stop(13, 0.5));
  CHECK(stop.best_fitness() == 0.5);
}
