// A training in bad weather: the budget is cut and given back, another process takes and leaves memory at random, the
// batches have anything from no box to three thousand, the pictures change their size, mosaics end, and validation
// comes in between. Nothing of it may end the run, or change the number of images a step or the schedule.
#include <catch2/catch.hpp>

#include <fstream>

#include <yolo9/core/random.h>
#include <yolo9/eval/evaluator.h>
#include <yolo9/memory/host_source.h>
#include <yolo9/train/schedule.h>
#include <yolo9/train/training_kit.h>

#include "support/fixture.h"

using namespace yolo9;

namespace {

constexpr int64_t kBatch = 8, kClasses = 3;

// Host memory on a device of a size of its own, which another process shares.
class SharedDevice : public HostMemorySource {
 public:
  MemorySample sample() const override {
    MemorySample out = HostMemorySource::sample();
    out.device_total_bytes = total_bytes;
    out.held_bytes = out.allocated_bytes;
    out.device_free_bytes = std::max<int64_t>(0, total_bytes - others_bytes - out.allocated_bytes);
    return out;
  }
  int64_t total_bytes = int64_t{1} << 40;
  int64_t others_bytes = 0;
};

struct Weather {
  int64_t size = 64;
  int64_t boxes = 0;  // in the whole batch
  double budget = 1;  // share of what the largest step takes
  double others = 0;  // the same, held by another process
  bool validate = false;
};

Weather weather_of(int64_t step, int64_t steps) {
  Random random{17, static_cast<uint64_t>(step)};
  Weather out;
  const int64_t sizes[] = {64, 96, 128};
  out.size = sizes[random.integer(3)];
  const double dice = random.uniform(0, 1);
  out.boxes = dice < 0.1 ? 0 : dice < 0.15 ? 3000 : 1 + random.integer(60);
  // Mosaics end before the last fifth: far fewer boxes.
  if (step > steps * 4 / 5) out.boxes = std::min<int64_t>(out.boxes, kBatch);
  const double budgets[] = {1.3, 0.6, 0.4, 0.3, 1.3};
  out.budget = budgets[std::min<int64_t>(4, step * 5 / steps)];
  if (random.uniform(0, 1) < 0.3) out.others = random.uniform(0, 0.12);
  out.validate = step % 20 == 10;
  return out;
}

Draw draw_of(const Weather& weather, int64_t step) {
  Draw draw = made_up_draw(kBatch, 64, 64, 0, kClasses);
  draw.height = draw.width = weather.size;
  draw.batch.images =
      (fixture::uniform("storm" + std::to_string(step % 16), {kBatch, 3, 64, 64}) * 255).to(torch::kUInt8);
  Random random{23, static_cast<uint64_t>(step)};
  draw.batch.targets = at::zeros({weather.boxes, 6});
  float* row = draw.batch.targets.mutable_data_ptr<float>();
  for (int64_t i = 0; i < weather.boxes; ++i, row += 6) {
    row[0] = static_cast<float>(i % kBatch);
    row[1] = static_cast<float>(random.integer(kClasses));
    for (int k = 2; k < 4; ++k) row[k] = static_cast<float>(random.uniform(0.2, 0.8));
    for (int k = 4; k < 6; ++k) row[k] = static_cast<float>(random.uniform(0.1, 0.4));
  }
  return draw;
}

struct Trace {
  std::vector<double> losses, rates, momenta;
  std::vector<int64_t> images, updates;
  int64_t ooms = 0, deepest = 0, validations = 0;
};

Trace train(int64_t steps, bool stormy) {
  torch::manual_seed(3);
  ModelOptions classes;
  classes.classes = kClasses;
  KitOptions options;
  options.governor.mode = stormy ? GovernorMode::On : GovernorMode::Off;
  options.governor.patience_steps = 5;
  options.governor.ladder.max_checkpointing = stormy ? kMaxCheckpointing : 0;
  options.governor.ladder.may_chunk_assignment = true;
  const auto device = std::make_shared<SharedDevice>();
  TrainingKit kit;
  kit.assemble(DetectionModel("gelan-t", classes), DetectionModel("gelan-t", classes), device, options);
  // What the largest usual step takes in one piece.
  const int64_t rest = device->sample().allocated_bytes;
  const auto largest = kit.step->probe(made_up_draw(kBatch, 128, 128, 8, kClasses), {.micro_batch = kBatch});
  const auto needed = static_cast<double>(*std::max_element(largest->begin(), largest->end()));

  ScheduleOptions schedule_options;
  schedule_options.epochs = 10;
  schedule_options.batches_per_epoch = steps / 10;
  schedule_options.batch = schedule_options.nominal_batch = kBatch;
  schedule_options.lr0 = 0.01;
  Schedule schedule(schedule_options);
  Trace trace;
  for (int64_t step = 0; step < steps; ++step) {
    const Weather weather = weather_of(step, steps);
    if (stormy) {
      device->total_bytes = rest + static_cast<int64_t>(weather.budget * needed);
      device->others_bytes = static_cast<int64_t>(weather.others * needed);
    }
    const StepPlan plan = schedule.plan(step, step * 10 / steps);
    for (size_t i = 0; i < 3; ++i) kit.optimizer->groups()[i].learning_rate = plan.learning_rates[i];
    kit.optimizer->set_momentum(plan.momentum);
    const StepReport report = kit.step->run({draw_of(weather, step)});
    CAPTURE(step);
    REQUIRE(report.committed);
    trace.losses.push_back(report.draws[0].total);
    trace.rates.push_back(kit.optimizer->groups()[1].learning_rate);
    trace.momenta.push_back(plan.momentum);
    trace.images.push_back(report.images);
    trace.updates.push_back(kit.ema->updates());
    trace.ooms += report.memory.ooms;
    trace.deepest = std::max(trace.deepest, static_cast<int64_t>(report.memory.rung));
    if (stormy) CHECK(report.memory.peak_bytes <= report.memory.budget_bytes);
    if ((step + 1) % (steps / 10) == 0) schedule.end_epoch(step * 10 / steps);
    if (!weather.validate) continue;
    // Twice the batch, at the largest size.
    const HostBudgetScope budgeted;
    int64_t left = 2;
    EvalOptions eval;
    eval.names = {"a", "b", "c"};
    const auto result =
        evaluate([&](const torch::Tensor& images) { return kit.ema_model->forward(images).decoded_main; },
                 [&]() -> std::optional<Batch> {
                   if (left-- == 0) return std::nullopt;
                   Draw draw = made_up_draw(2 * kBatch, 128, 128, 2, kClasses);
                   for (int64_t i = 0; i < draw.batch.size(); ++i) {
                     draw.batch.paths.push_back(std::to_string(i));
                     draw.batch.letterboxes.push_back({128, 128, 1, 1, 0, 0});
                   }
                   return draw.batch;
                 },
                 kClasses, eval);
    CHECK(result.images == 4 * kBatch);
    ++trace.validations;
  }
  device->set_limit(0);
  return trace;
}

double mean_of_last(const std::vector<double>& values, size_t count) {
  double sum = 0;
  for (size_t i = values.size() - count; i < values.size(); ++i) sum += values[i];
  return sum / static_cast<double>(count);
}

void storm(int64_t steps) {
  const Trace calm = train(steps, false), stormy = train(steps, true);
  CHECK(calm.images == stormy.images);
  CHECK(calm.updates == stormy.updates);
  CHECK(calm.rates == stormy.rates);
  CHECK(calm.momenta == stormy.momenta);
  CHECK(calm.validations == stormy.validations);
  CHECK(stormy.deepest >= static_cast<int64_t>(Rung::Checkpointing));
  // To look at: the curves side by side, in the folder the test runs in.
  std::ofstream csv("storm_losses.csv");
  csv << "step,calm,stormy\n";
  for (size_t i = 0; i < calm.losses.size(); ++i) csv << i << ',' << calm.losses[i] << ',' << stormy.losses[i] << '\n';
  const auto tail = static_cast<size_t>(steps / 4);
  const double calm_end = mean_of_last(calm.losses, tail), stormy_end = mean_of_last(stormy.losses, tail);
  WARN(steps << " steps: " << stormy.ooms << " out-of-memories recovered, deepest rung " << stormy.deepest
             << ", mean loss of the last quarter " << stormy_end << " against " << calm_end);
  // BatchNorm saw slices: near, not equal.
  CHECK(std::abs(stormy_end - calm_end) <= 0.1 * calm_end);
}

}  // namespace

TEST_CASE("no weather ends a training, or changes its effective batch and schedule") { storm(40); }
TEST_CASE("two hundred steps of bad weather", "[slow]") { storm(200); }
