#include <catch2/catch.hpp>

#include <cmath>

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>

#include <yolo9/core/error.h>
#include <yolo9/train/amp.h>
#include <yolo9/train/optimizer.h>

using namespace yolo9;

TEST_CASE("the loss scale halves on overflow and doubles after a long time without") {
  LossScaler scaler;
  CHECK(scaler.scale() == 65536);
  scaler.update(true);
  scaler.update(true);
  CHECK(scaler.scale() == 16384);
  CHECK(scaler.overflows() == 2);
  for (int64_t i = 0; i < LossScaler::kGrowthInterval - 1; ++i) scaler.update(false);
  CHECK(scaler.scale() == 16384);
  scaler.update(false);
  CHECK(scaler.scale() == 32768);
  for (int i = 0; i < 100; ++i) scaler.update(true);
  CHECK(scaler.scale() == 1);
  LossScaler other;
  other.restore(scaler.scale(), 7, scaler.overflows());
  CHECK(other.good_steps() == 7);
  CHECK(other.overflows() == 102);
}

TEST_CASE("scaled gradients are clipped and unscaled as if they had never been scaled") {
  const auto values = at::rand({1000}, at::kFloat) * 0.1;
  for (const double max_norm : {0.5, 100.0}) {
    std::vector<ParameterGroup> plain{{at::zeros({1000}), values.clone()}};
    std::vector<ParameterGroup> scaled{{at::zeros({1000}), values * 4096}};
    const double norm = clip_gradients(plain, max_norm);
    CHECK(clip_gradients(scaled, max_norm, {}, 4096) == Approx(norm).epsilon(1e-12));
    CHECK(at::allclose(plain[0].gradient, scaled[0].gradient, 1e-6, 0));
  }
  // What is not finite is left alone.
  std::vector<ParameterGroup> broken{{at::zeros({4}), at::full({4}, std::numeric_limits<float>::infinity())}};
  CHECK_FALSE(std::isfinite(clip_gradients(broken, 10, {}, 65536)));
  CHECK(broken[0].gradient.isinf().all().item<bool>());
}

TEST_CASE("names, types and scopes of mixed precision") {
  CHECK(parse_amp("off") == AmpMode::Off);
  CHECK(parse_amp("auto") == AmpMode::Auto);
  CHECK_THROWS_AS(parse_amp("half"), Error);
  CHECK(amp_type(AmpMode::BFloat16, at::kCPU) == at::kBFloat16);
  CHECK(amp_type(AmpMode::Auto, at::kCPU) == at::kBFloat16);
  CHECK_THROWS_AS(amp_type(AmpMode::Float16, at::kCPU), Error);
  CHECK_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
  {
    const AutocastScope scope(at::kCPU, at::kBFloat16, true);
    CHECK(at::autocast::is_autocast_enabled(at::kCPU));
    CHECK(at::matmul(at::ones({2, 2}), at::ones({2, 2})).scalar_type() == at::kBFloat16);
  }
  CHECK_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
  {
    const AutocastScope nothing(at::kCPU, at::kBFloat16, false);
    CHECK_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
  }
}
