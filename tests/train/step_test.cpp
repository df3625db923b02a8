#include <catch2/catch.hpp>

#include <yolo9/core/error.h>
#include <yolo9/memory/host_source.h>
#include <yolo9/train/step.h>

#include "support/fixture.h"

using namespace yolo9;

namespace {

// gelan-t with three classes at 64 px, ready to step.
struct Bench {
  DetectionModel model{nullptr}, average{nullptr};
  std::unique_ptr<ParameterStore> store, average_store;
  std::unique_ptr<DetectionLoss> loss;
  std::unique_ptr<Optimizer> optimizer;
  std::unique_ptr<Ema> ema;
  std::shared_ptr<HostMemorySource> source = std::make_shared<HostMemorySource>();
  std::unique_ptr<Governor> governor;
  LocalCommunicator communicator;
  std::unique_ptr<TrainStep> step;

  explicit Bench(SplitMode split = SplitMode::Exact, const std::string& config = "gelan-t") {
    torch::manual_seed(1);
    ModelOptions options;
    options.classes = 3;
    model = DetectionModel(config, options);
    average = DetectionModel(config, options);
    store = std::make_unique<ParameterStore>(*model);
    average_store = std::make_unique<ParameterStore>(*average);
    average_store->copy_from(*store);
    LossOptions loss_options;
    loss_options.classes = 3;
    loss_options.strides = model->strides();
    loss = std::make_unique<DetectionLoss>(loss_options);
    std::vector<ParameterGroup> groups(3);
    for (size_t i = 0; i < 3; ++i)
      groups[i] = {store->groups()[i].values, store->groups()[i].gradients, 0.01, i == kWeight ? 5e-4 : 0};
    optimizer = make_optimizer(OptimizerKind::SGD, groups, 0.9);
    ema = std::make_unique<Ema>(store->floating_state(), average_store->floating_state());
    governor = std::make_unique<Governor>(source, GovernorOptions{});
    StepOptions step_options;
    step_options.split = split;
    step =
        std::make_unique<TrainStep>(model, *loss, *store, *optimizer, ema.get(), *governor, communicator, step_options);
  }

  std::vector<torch::Tensor> everything() const {
    auto all = store->floating_state();
    all.push_back(store->counters());
    for (const auto& tensor : average_store->floating_state()) all.push_back(tensor);
    for (const auto& [name, tensor] : optimizer->state()) all.push_back(tensor);
    std::vector<torch::Tensor> copies;
    for (const auto& tensor : all) copies.push_back(tensor.clone());
    return copies;
  }
};

Draw draw_of(int64_t images, int64_t size = 64) {
  Draw draw;
  draw.batch.images = (fixture::uniform("step images", {images, 3, size, size}) * 255).to(torch::kUInt8);
  std::vector<float> rows;
  for (int64_t i = 0; i < images; ++i)
    for (int64_t k = 0; k <= i % 3; ++k)
      for (const double v :
           {double(i), double((i + k) % 3), 0.3 + 0.1 * double(k), 0.5, 0.3, 0.2 + 0.05 * double(i % 4)})
        rows.push_back(static_cast<float>(v));
  draw.batch.targets = torch::tensor(rows).reshape({-1, 6});
  return draw;
}

bool equal(const std::vector<torch::Tensor>& a, const std::vector<torch::Tensor>& b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (!torch::equal(a[i], b[i])) return false;
  return a.size() == b.size();
}

// The step that the sweep disturbs, with the micro-batch it would take anyhow.
int64_t count_allocations(Bench& bench, const std::vector<Draw>& draws) {
  const int64_t before = host_scoped_allocations();
  bench.step->run(draws);
  return host_scoped_allocations() - before;
}

// With two images per draw the retry uses slices of one; the disturbed step must equal an undisturbed one at that
// slice.
void sweep(int64_t stride) {
  const std::vector<Draw> draws{draw_of(2)};
  int64_t total = 0;
  {
    Bench bench;
    total = count_allocations(bench, draws);
  }
  CAPTURE(total);
  REQUIRE(total > 100);
  // An undisturbed step at slices of one image: the first allocation of the attempt is refused, nothing has happened.
  std::vector<torch::Tensor> expected;
  {
    Bench bench;
    refuse_host_allocation(1);
    const StepReport report = bench.step->run(draws);
    REQUIRE(report.memory.ooms == 1);
    expected = bench.everything();
  }
  int64_t refused = 0;
  for (int64_t k = 1; k <= total; k += stride) {
    Bench bench;
    refuse_host_allocation(k);
    const StepReport report = bench.step->run(draws);
    refuse_host_allocation(0);
    CAPTURE(k);
    CHECK(report.committed);
    CHECK(report.memory.micro_batch == 1);
    CHECK(equal(bench.everything(), expected));
    refused += report.memory.ooms;
  }
  CHECK(refused >= total / stride);
}

}  // namespace

TEST_CASE("a step allocates nothing between the vote and the end of the commit") {
  Bench bench;
  for (int i = 0; i < 3; ++i) CHECK(bench.step->run({draw_of(2)}).commit_allocations == 0);
}

TEST_CASE("a step without commit moves BatchNorm and nothing else") {
  Bench bench;
  const auto weights = bench.store->groups()[kWeight].values.clone();
  const auto statistics = bench.store->statistics().clone();
  const StepReport report = bench.step->run({draw_of(2)}, false);
  CHECK_FALSE(report.committed);
  CHECK(torch::equal(weights, bench.store->groups()[kWeight].values));
  CHECK_FALSE(torch::equal(statistics, bench.store->statistics()));
  for (const auto& group : bench.store->groups()) CHECK(group.gradients.abs().max().item<double>() == 0.0);
  CHECK(bench.ema->updates() == 0);
}

TEST_CASE("gradients that are not finite skip the step") {
  Bench bench;
  const auto before = bench.everything();
  bench.store->groups()[kWeight].gradients[0] = std::numeric_limits<float>::quiet_NaN();
  const StepReport report = bench.step->run({draw_of(2)});
  CHECK_FALSE(report.finite);
  CHECK_FALSE(report.committed);
  CHECK(torch::equal(before[1], bench.store->groups()[kWeight].values));
  // The next step is sound again.
  CHECK(bench.step->run({draw_of(2)}).committed);
}

// Every 37th allocation here; all of them in the slow group.
TEST_CASE("an out-of-memory at any allocation leaves no trace in the step") { sweep(37); }
TEST_CASE("an out-of-memory at every single allocation leaves no trace in the step", "[slow]") { sweep(1); }

TEST_CASE("a budget that the whole draw passes is kept by slices") {
  Bench bench;
  const std::vector<Draw> draws{draw_of(8)};
  const StepReport whole = bench.step->run(draws, false);
  const int64_t rest = whole.memory.allocated_bytes;
  REQUIRE(whole.memory.micro_batch == 8);
  bench.source->set_limit(rest + (whole.memory.peak_bytes - rest) * 6 / 10);
  const StepReport sliced = bench.step->run(draws, false);
  bench.source->set_limit(0);
  CHECK(sliced.memory.micro_batch == 4);
  CHECK(sliced.memory.ooms == 1);
  CHECK(sliced.images == 8);
}

torch::Tensor rows_of(const torch::Tensor& targets, int64_t first, int64_t count) {
  const auto image = targets.select(1, 0);
  auto rows = targets.index({(image >= first).logical_and(image < first + count)}).clone();
  rows.select(1, 0).sub_(first);
  return rows;
}

// The gradients of a draw cut into slices, in evaluation mode: normalisation then does not depend on the slice.
torch::Tensor sliced_gradients(Bench& bench, const Draw& draw, int64_t slice) {
  bench.model->eval();
  bench.store->zero_gradients();
  const auto forward = [&](int64_t first) {
    return bench.model->forward(to_network_input(draw.batch.images.narrow(0, first, slice), torch::kCPU));
  };
  SliceContext context;
  context.batch_size = draw.batch.size();
  {
    c10::NoGradGuard no_grad;
    for (int64_t first = 0; first < draw.batch.size(); first += slice) {
      const auto part = bench.loss->score_sums(forward(first), rows_of(draw.batch.targets, first, slice));
      context.score_sums = context.score_sums.defined() ? context.score_sums + part : part;
    }
  }
  for (int64_t first = 0; first < draw.batch.size(); first += slice)
    (*bench.loss)(forward(first), rows_of(draw.batch.targets, first, slice), context).total.backward();
  std::vector<torch::Tensor> all;
  for (const auto& group : bench.store->groups()) all.push_back(group.gradients);
  return torch::cat(all);
}

TEST_CASE("exact slices add up to the whole draw, to rounding") {
  Bench bench;
  const Draw draw = draw_of(4);
  const auto whole = sliced_gradients(bench, draw, 4).clone();
  REQUIRE(whole.norm().item<double>() > 0);
  for (const int64_t slice : {1, 2}) {
    const auto cut = sliced_gradients(bench, draw, slice);
    CHECK((cut - whole).norm().item<double>() <= 1e-4 * whole.norm().item<double>());
  }
}

TEST_CASE("official slices have their own sums and cost no extra pass") {
  Bench exact(SplitMode::Exact), official(SplitMode::Official);
  const std::vector<Draw> draws{draw_of(4)};
  refuse_host_allocation(1);
  const int64_t before_exact = host_scoped_allocations();
  const StepReport a = exact.step->run(draws);
  const int64_t exact_allocations = host_scoped_allocations() - before_exact;
  refuse_host_allocation(1);
  const int64_t before_official = host_scoped_allocations();
  const StepReport b = official.step->run(draws);
  const int64_t official_allocations = host_scoped_allocations() - before_official;
  CHECK(a.memory.micro_batch == 2);
  CHECK(b.memory.micro_batch == 2);
  CHECK(official_allocations < exact_allocations);
  CHECK(b.committed);
}
