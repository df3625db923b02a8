#include <catch2/catch.hpp>

#include <yolo9/core/error.h>
#include <yolo9/memory/governor.h>
#include <yolo9/memory/step_state.h>

using namespace yolo9;

namespace {

// A source whose peak a test sets by hand.
class FakeSource : public MemorySource {
 public:
  std::string name() const override { return "fake"; }
  MemorySample sample() const override { return now; }
  void reset_peak() override {}
  void release_cached() override { ++releases; }
  void set_limit(int64_t bytes) override { now.budget_bytes = bytes; }
  MemorySample now;
  int releases = 0;
};

GovernorOptions options(int64_t budget, GovernorMode mode = GovernorMode::On) {
  GovernorOptions out;
  out.mode = mode;
  out.budget_bytes = budget;
  out.patience_steps = 3;
  return out;
}

}  // namespace

TEST_CASE("the governor halves after an out-of-memory and stays there") {
  auto source = std::make_shared<FakeSource>();
  Governor governor(source, options(1000));
  CHECK(source->now.budget_bytes == 1000);
  const StepShape shape{16, 64, 64, 5};
  CHECK(governor.plan(shape) == 16);
  CHECK(governor.shrink(shape, 16) == 8);
  CHECK(governor.shrink(shape, 8) == 4);
  CHECK(source->releases == 2);
  source->now.peak_allocated_bytes = 950;
  const StepMemory memory = governor.observe(shape, 4);
  CHECK(memory.micro_batch == 4);
  CHECK(memory.ooms == 2);
  CHECK(memory.decision.find("micro-batch 4") != std::string::npos);
  CHECK(governor.plan(shape) == 4);
  // Another image size has its own record.
  CHECK(governor.plan({16, 32, 32, 5}) == 16);
}

TEST_CASE("the governor grows back only into what it foresees to fit") {
  auto source = std::make_shared<FakeSource>();
  Governor governor(source, options(1000));
  const StepShape shape{16, 64, 64, 5};
  governor.plan(shape);
  governor.shrink(shape, 16);
  governor.shrink(shape, 8);
  // 100 + 50 an image: 16 images need 900, exactly what 10 % headroom leaves.
  for (const int64_t slice : {2, 4}) {
    source->now.peak_allocated_bytes = 100 + 50 * slice;
    governor.observe(shape, slice);
  }
  CHECK(governor.plan(shape) == 4);
  governor.observe(shape, 4);
  CHECK(governor.plan(shape) == 16);
}

TEST_CASE("one image that does not fit is refused with the figures") {
  auto source = std::make_shared<FakeSource>();
  Governor governor(source, options(int64_t{3} << 30));
  try {
    governor.shrink({16, 640, 640, 5}, 1);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.exit_status() == 4);
    CHECK(std::string(error.what()).find("3.00 GiB") != std::string::npos);
  }
}

TEST_CASE("watch and off never cut a draw and let an out-of-memory end the run") {
  for (const GovernorMode mode : {GovernorMode::Watch, GovernorMode::Off}) {
    auto source = std::make_shared<FakeSource>();
    Governor governor(source, options(1000, mode));
    CHECK(source->now.budget_bytes == (mode == GovernorMode::Watch ? 1000 : 0));
    CHECK(governor.plan({16, 64, 64, 5}) == 16);
    CHECK_THROWS_AS(governor.shrink({16, 64, 64, 5}, 16), Error);
  }
  CHECK_THROWS_AS(parse_governor_mode("maybe"), Error);
}

TEST_CASE("a step's state comes back bit for bit, generators too") {
  auto values = torch::rand({64});
  auto counters = torch::zeros({3}, torch::kInt64);
  StepState state({values, counters});
  state.save();
  const auto expected = values.clone();
  const auto drawn = torch::rand({4});
  values.mul_(3);
  counters.add_(1);
  state.restore();
  CHECK(torch::equal(values, expected));
  CHECK(counters.sum().item<int64_t>() == 0);
  CHECK(torch::equal(torch::rand({4}), drawn));
}
