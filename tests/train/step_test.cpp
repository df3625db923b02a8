#include <catch2/catch.hpp>

#include <yolo9/core/error.h>
#include <yolo9/memory/host_source.h>
#include <yolo9/train/training_kit.h>

#include "support/fixture.h"

using namespace yolo9;

namespace {

// gelan-t with three classes at 64 px, ready to step.
struct Bench : TrainingKit {
  std::shared_ptr<HostMemorySource> source = std::make_shared<HostMemorySource>();

  explicit Bench(KitOptions options = {}, const std::string& config = "gelan-t") {
    torch::manual_seed(1);
    ModelOptions classes;
    classes.classes = 3;
    const DetectionModel trained(config, classes), averaged(config, classes);
    options.weight_decay = 5e-4;
    options.momentum = 0.9;
    assemble(trained, averaged, source, options);
  }

  std::vector<torch::Tensor> live() const {
    auto all = store->floating_state();
    all.push_back(store->counters());
    for (const auto& tensor : ema_store->floating_state()) all.push_back(tensor);
    for (const auto& [name, tensor] : optimizer->state()) all.push_back(tensor);
    return all;
  }
  std::vector<torch::Tensor> everything() const {
    std::vector<torch::Tensor> copies;
    for (const auto& tensor : live()) copies.push_back(tensor.clone());
    return copies;
  }
  // As if newly made, with a governor that has seen nothing.
  void restore(const std::vector<torch::Tensor>& state, const KitOptions& options) {
    const auto to = live();
    for (size_t i = 0; i < to.size(); ++i) to[i].copy_(state[i]);
    ema->set_updates(0);
    *governor = Governor(source, options.governor);
  }
};

KitOptions with_split(SplitMode split) {
  KitOptions options;
  options.step.split = split;
  return options;
}

KitOptions with_checkpointing(int least, int most = kMaxCheckpointing) {
  KitOptions options;
  options.governor.ladder.min_checkpointing = least;
  options.governor.ladder.max_checkpointing = most;
  return options;
}

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

// The model whose step is disturbed.
const char* const kSwept = "yolov9-t";

// An out-of-memory at each allocation of a step in turn: what comes out must be what an undisturbed step gives, run
// as the retry runs it.
void sweep(int64_t stride, const KitOptions& options, const StepSetting& retry) {
  const std::vector<Draw> draws{draw_of(2)};
  int64_t total = 0;
  {
    Bench bench(options, kSwept);
    total = count_allocations(bench, draws);
  }
  CAPTURE(total);
  REQUIRE(total > 100);
  // The reference: the first allocation of the attempt is refused, nothing has happened yet.
  std::vector<torch::Tensor> expected;
  {
    Bench bench(options, kSwept);
    refuse_host_allocation(1);
    const StepReport report = bench.step->run(draws);
    REQUIRE(report.memory.ooms == 1);
    REQUIRE(report.memory.setting == retry);
    expected = bench.everything();
  }
  // Where the retry does not slice, that is the plain step, bit for bit.
  if (retry.micro_batch == 2) {
    Bench plain({}, kSwept);
    plain.step->run(draws);
    REQUIRE(equal(plain.everything(), expected));
  }
  int64_t refused = 0;
  Bench bench(options, kSwept);
  const auto fresh = bench.everything();
  for (int64_t k = 1; k <= total; k += stride) {
    bench.restore(fresh, options);
    refuse_host_allocation(k);
    const StepReport report = bench.step->run(draws);
    refuse_host_allocation(0);
    CAPTURE(k);
    CHECK(report.committed);
    CHECK(report.memory.setting == retry);
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

TEST_CASE("a quad draw weighs as much as the samples it stands for") {
  Bench bench;
  const auto before = bench.everything();
  Draw draw = draw_of(4);
  const StepReport plain = bench.step->run({draw});
  bench.restore(before, {});
  draw.batch.samples = 16;
  const StepReport quad = bench.step->run({draw});
  CHECK(draw.loss_factor() == 4);
  CHECK(quad.gradient_norm == Approx(4 * plain.gradient_norm).epsilon(1e-5));
  CHECK(quad.draws[0].items == plain.draws[0].items);
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
TEST_CASE("an out-of-memory at any allocation leaves no trace in the step, retried in slices") {
  sweep(37, {}, {.micro_batch = 1});
}
TEST_CASE("an out-of-memory at any allocation leaves no trace in the step, retried with checkpointing") {
  sweep(37 * 4, with_checkpointing(0), {.micro_batch = 2, .checkpointing = 1});
}
TEST_CASE("an out-of-memory in a recomputation leaves no trace in the step") {
  sweep(37 * 4, with_checkpointing(2), {.micro_batch = 2, .checkpointing = 3});
}
TEST_CASE("an out-of-memory at every single allocation leaves no trace in the step", "[slow]") {
  SECTION("retried in slices") { sweep(1, {}, {.micro_batch = 1}); }
  SECTION("retried with checkpointing") { sweep(1, with_checkpointing(0), {.micro_batch = 2, .checkpointing = 1}); }
}

TEST_CASE("a checkpointed step equals the plain one bit for bit, and keeps less") {
  for (const std::string config : {"gelan-t", "yolov9-t"}) {
    const std::vector<Draw> draws{draw_of(3)};
    Bench plain({}, config);
    const StepReport reference = plain.step->run(draws);
    const auto expected = plain.everything();
    int64_t before = reference.memory.peak_bytes;
    for (int level = 1; level <= kMaxCheckpointing; ++level) {
      CAPTURE(config, level);
      Bench bench(with_checkpointing(level, level), config);
      const StepReport report = bench.step->run(draws);
      CHECK(report.memory.setting.checkpointing == level);
      CHECK(report.draws[0].total == reference.draws[0].total);
      CHECK(equal(bench.everything(), expected));
      CHECK(report.memory.peak_bytes - report.memory.allocated_bytes < before - reference.memory.allocated_bytes);
      before = report.memory.peak_bytes;
    }
  }
}

TEST_CASE("segments are disjoint, cover more at deeper levels, and free what they promise") {
  Bench bench(with_checkpointing(0), "yolov9-t");
  const RecomputePlan& plan = bench.step->recompute_plan();
  CHECK(plan[0].empty());
  const auto layers_in = [](const std::vector<DetectionModelImpl::Segment>& segments) {
    int64_t count = 0;
    for (const auto& segment : segments) count += segment.last - segment.first + 1;
    return count;
  };
  CHECK(layers_in(plan[1]) >= 1);
  CHECK(layers_in(plan[1]) < layers_in(plan[2]));
  CHECK(layers_in(plan[2]) < layers_in(plan[3]));
}

TEST_CASE("a probe changes nothing") {
  Bench bench(with_checkpointing(0));
  const auto before = bench.everything();
  const auto probe = bench.probe();
  torch::manual_seed(5);
  const auto drawn = torch::rand({2});
  torch::manual_seed(5);
  const StepShape shape{2, 64, 64, 6, {}};
  for (int level = 0; level <= kMaxCheckpointing; ++level)
    REQUIRE(probe(shape, {.micro_batch = 2, .checkpointing = level}));
  CHECK(torch::equal(torch::rand({2}), drawn));
  CHECK(equal(bench.everything(), before));
  CHECK_FALSE(bench.model->is_training() == false);
  for (const auto& group : bench.store->groups()) CHECK(group.gradients.abs().max().item<double>() == 0.0);
}

TEST_CASE("a smaller image is a rung, and lighter augmentation asks for other draws") {
  KitOptions options;
  options.governor.ladder.may_shrink_image = true;
  options.governor.ladder.may_lighten_augment = true;
  Bench bench(options);
  Draw draw = draw_of(1, 128);
  refuse_host_allocation(1);
  const StepReport asks = bench.step->run({draw});
  CHECK(asks.redraw);
  CHECK_FALSE(asks.committed);
  draw.light = true;
  refuse_host_allocation(1);
  const StepReport report = bench.step->run({draw});
  CHECK_FALSE(report.redraw);
  CHECK(report.committed);
  CHECK(report.memory.setting.image_shrink == 1);
  CHECK(report.memory.rung == Rung::SmallerImage);
}

TEST_CASE("mixed precision steps train, and the average stays finite") {
  KitOptions options;
  options.governor.ladder.mixed_precision = true;
  options.step.amp = AmpMode::BFloat16;
  Bench half(options), full;
  const std::vector<Draw> draws{draw_of(4)};
  double first = 0, last = 0;
  for (int i = 0; i < 6; ++i) {
    const StepReport report = half.step->run(draws);
    CHECK(report.committed);
    CHECK(report.memory.setting.mixed_precision);
    (i == 0 ? first : last) = report.draws[0].total;
  }
  CHECK(last < first);
  const StepReport reference = full.step->run(draws);
  CHECK(first == Approx(reference.draws[0].total).epsilon(0.05));
  for (const auto& tensor : half.ema_store->floating_state()) CHECK(tensor.isfinite().all().item<bool>());
  // The convolutions' activations take half the bytes.
  const auto probe = half.probe();
  const StepShape shape{4, 64, 64, 8, {}};
  const auto narrow = probe(shape, {.micro_batch = 4, .mixed_precision = true}),
             wide = probe(shape, {.micro_batch = 4});
  CHECK(static_cast<double>(narrow->at(0)) < 0.75 * static_cast<double>(wide->at(0)));
  // Recomputation sees the same precision.
  KitOptions both = options;
  both.governor.ladder.min_checkpointing = both.governor.ladder.max_checkpointing = 3;
  Bench once(options), twice(both);
  once.step->run(draws);
  twice.step->run(draws);
  CHECK(equal(once.everything(), twice.everything()));
}

TEST_CASE("a budget that the whole draw passes is kept by slices") {
  KitOptions options;
  options.governor.headroom = 0;
  Bench bench(options);
  bench.governor->set_budget(int64_t{1} << 40);
  const std::vector<Draw> draws{draw_of(8)};
  const StepReport whole = bench.step->run(draws, false);
  const int64_t rest = whole.memory.allocated_bytes;
  REQUIRE(whole.memory.micro_batch == 8);
  const int64_t budget = rest + (whole.memory.peak_bytes - rest) * 7 / 10;
  bench.governor->set_budget(budget);
  const StepReport sliced = bench.step->run(draws, false);
  CHECK(sliced.memory.micro_batch == 4);
  CHECK(sliced.memory.ooms == 0);  // foreseen
  CHECK(sliced.memory.peak_bytes <= budget);
  CHECK(sliced.images == 8);
  // Not foreseen: the same budget, and a governor that knows nothing.
  Bench ignorant(options);
  ignorant.governor->set_budget(ignorant.source->sample().allocated_bytes + (whole.memory.peak_bytes - rest) * 7 / 10);
  const StepReport recovered = ignorant.step->run(draws, false);
  CHECK(recovered.memory.micro_batch == 4);
  CHECK(recovered.memory.ooms == 1);
  CHECK(recovered.images == 8);
  ignorant.source->set_limit(0);
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
      const auto part = bench.loss->score_sums(forward(first), slice_targets(draw.batch.targets, first, slice));
      context.score_sums = context.score_sums.defined() ? context.score_sums + part : part;
    }
  }
  for (int64_t first = 0; first < draw.batch.size(); first += slice)
    (*bench.loss)(forward(first), slice_targets(draw.batch.targets, first, slice), context).total.backward();
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
  Bench exact(with_split(SplitMode::Exact)), official(with_split(SplitMode::Official));
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
