#include <catch2/catch.hpp>

#include <yolo9/core/error.h>
#include <yolo9/memory/planner.h>

#include "support/fake_source.h"

using namespace yolo9;

namespace {

// Bytes per pixel fall with the checkpointing level and halve with mixed precision.
int64_t law(const StepShape& shape, const StepSetting& setting) {
  const auto [height, width] = shrunk_size(shape.height, shape.width, setting.image_shrink, 32);
  const int64_t per_pixel = std::vector<int64_t>{80, 60, 40, 20}.at(static_cast<size_t>(setting.checkpointing));
  return 5000 + setting.micro_batch * height * width * per_pixel / (setting.mixed_precision ? 2 : 1) + 10 * shape.boxes;
}

struct Trial {
  std::shared_ptr<FakeSource> source = std::make_shared<FakeSource>();
  std::unique_ptr<Governor> governor;
  std::vector<StepSetting> probed;

  explicit Trial(int64_t budget, LadderOptions ladder = {0, 3, false}) {
    GovernorOptions options;
    options.budget_bytes = budget;
    options.ladder = ladder;
    source->now.allocated_bytes = 10000;
    governor = std::make_unique<Governor>(source, options);
  }
  Planner planner() {
    return {*governor, [this](const StepShape& shape, const StepSetting& setting) {
              probed.push_back(setting);
              const int64_t bytes = law(shape, setting);
              return source->attempt(bytes) ? std::optional(std::vector<int64_t>{bytes}) : std::nullopt;
            }};
  }
};

const StepShape kShape{16, 64, 64, 32, {}};
const int64_t kImage = 64 * 64 * 80;  // bytes of one image without checkpointing

}  // namespace

TEST_CASE("a roomy budget is seen from three images with labels and two without, and nothing else is tried") {
  Trial trial(100 * kImage);
  Planner planner = trial.planner();
  planner.measure(kShape);
  CHECK(trial.probed.size() == 5);  // and two without labels
  const MemoryPlan plan = planner.plan(kShape, {}, 4);
  CHECK(plan.rung == Rung::None);
  CHECK(plan.setting == StepSetting{16});
  CHECK(plan.accumulation == 4);
  CHECK(plan.effective_batch == 64);
  CHECK(plan.predicted_bytes == Approx(10000 + law(kShape, StepSetting{16})).epsilon(1e-3));
  // 90 images less what is there before the first one: 89.
  CHECK(plan.safe_batch == 89);
  CHECK(plan.largest_size >= 64);
  CHECK(plan.baseline.total() == 10000);
}

TEST_CASE("a tight budget takes the first rung that fits") {
  // Level 2 needs 16 * 40 / 80 = 8 images' worth.
  Trial trial(10 * kImage);
  Planner planner = trial.planner();
  planner.measure(kShape);
  const MemoryPlan plan = planner.plan(kShape, {}, 1);
  CHECK(plan.setting.checkpointing == 2);
  CHECK(plan.setting.micro_batch == 16);
  CHECK(plan.rung == Rung::Checkpointing);
  CHECK(plan.safe_batch == 8);
  REQUIRE(plan.levels.size() == 3);
  CHECK(plan.levels[2].bytes_per_image == Approx(64 * 64 * 40 + 20).epsilon(1e-3));
  // The governor then runs the first step like that, without an out-of-memory.
  const auto step = run_governed(*trial.governor, *trial.source, kShape,
                                 [](const StepSetting& setting) { return law(kShape, setting); });
  CHECK(step.ooms == 0);
  CHECK(step.setting.checkpointing == 2);
  const std::string text = describe(plan);
  for (const char* part : {"1 baseline", "2 safe batch", "3 accumulation", "4 augmentation", "5 resolution"})
    CHECK(text.find(part) != std::string::npos);
}

TEST_CASE("slices come when checkpointing does not do") {
  Trial trial(kImage * 2);
  Planner planner = trial.planner();
  planner.measure(kShape);
  const MemoryPlan plan = planner.plan(kShape, {}, 1);
  CHECK(plan.setting.checkpointing == 3);
  CHECK(plan.setting.micro_batch == 6);  // three slices of 16 images: 6 * 20 / 80 = 1.5 images' worth
  CHECK(plan.accumulation == 3);
}

TEST_CASE("what does not fit is refused with the figure that is needed") {
  // One image at level 3 needs 20 bytes a pixel; there is room for 12.
  const StepShape shape{16, 256, 256, 32, {}};
  const int64_t budget = 10000 + 256 * 256 * 12;
  Trial trial(budget);
  Planner planner = trial.planner();
  try {
    planner.measure(shape);
    FAIL("not refused");
  } catch (const Error& error) {
    CHECK(error.exit_status() == 4);
    const int64_t needed = 10000 + law({1, 256, 256, 2, {}}, StepSetting{1, 3});
    CAPTURE(error.what());
    CHECK(std::string(error.what()).find(format_bytes(needed)) != std::string::npos);
  }
  // With leave to make images smaller, the same budget serves.
  LadderOptions ladder{0, 3, false};
  ladder.may_shrink_image = true;
  ladder.smallest_image = 32;
  Trial allowed(budget, ladder);
  Planner smaller = allowed.planner();
  smaller.measure(shape);
  CHECK(smaller.plan(shape, {}, 1).rung == Rung::SmallerImage);
}

TEST_CASE("where the device has more than the budget, the need is measured") {
  Trial trial(10000 + 100);
  trial.source->now.device_total_bytes = 1 << 30;
  Planner planner = trial.planner();
  try {
    planner.measure(kShape);
    FAIL("not refused");
  } catch (const Error& error) {
    CAPTURE(error.what());
    CHECK(std::string(error.what()).find(format_bytes(10000 + law({1, 64, 64, 2, {}}, StepSetting{1, 3}))) !=
          std::string::npos);
  }
  CHECK(trial.source->now.budget_bytes == 10100);
}

TEST_CASE("measurements that make no sense are refused, not guessed around") {
  Trial trial(100 * kImage);
  Planner planner(*trial.governor, [](const StepShape&, const StepSetting& setting) {
    return std::optional(std::vector<int64_t>{100000 / setting.micro_batch});
  });
  CHECK_THROWS_AS(planner.measure(kShape), Error);
}

TEST_CASE("mixed precision is measured only when nothing else serves") {
  LadderOptions ladder{0, 3, false};
  ladder.may_use_mixed_precision = true;
  // One image at level 3 needs 81920 + 5020 bytes, in mixed precision 45980.
  Trial trial(10000 + 70000, ladder);
  Planner planner = trial.planner();
  planner.measure(kShape);
  const MemoryPlan plan = planner.plan(kShape, {}, 1);
  CHECK(plan.setting.mixed_precision);
  CHECK(plan.rung == Rung::MixedPrecision);
}
