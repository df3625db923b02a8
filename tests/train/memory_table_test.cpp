#include <catch2/catch.hpp>

#include <yolo9/memory/simulated_source.h>
#include <yolo9/train/memory_table.h>

using namespace yolo9;

namespace {

double error_of(int64_t predicted, int64_t measured) {
  return std::abs(static_cast<double>(predicted) / static_cast<double>(measured) - 1);
}

}  // namespace

// Sizes, batches and box counts that no law was learnt from.
TEST_CASE("a step's peak is foreseen at other sizes, batches and boxes") {
  std::vector<double> errors;
  const auto compare = [&](MemoryTable& table, const StepKind& kind, const std::vector<Load>& loads) {
    table.measure(kind);
    for (const Load& load : loads) {
      const StepBytes foreseen = table.step_bytes(load, kind), measured = table.run_step(load, kind);
      CAPTURE(kind.checkpointing, kind.mixed_precision, load.images, load.height, load.width, load.boxes,
              foreseen.peak(), measured.peak());
      errors.push_back(error_of(foreseen.peak(), measured.peak()));
      CHECK(errors.back() <= 0.05);
    }
  };
  const std::vector<Load> loads{{3, 192, 192, 0}, {2, 320, 320, 20}, {1, 448, 448, 60}, {2, 320, 224, 8}};
  {
    MemoryTable table("gelan-t");
    for (const StepKind kind : {StepKind{0, false}, StepKind{2, false}, StepKind{0, true}}) compare(table, kind, loads);
  }
  MemoryTable table("yolov9-t", 3);
  for (const StepKind kind : {StepKind{0, false}, StepKind{3, false}}) compare(table, kind, loads);
  std::sort(errors.begin(), errors.end());
  CHECK(errors[errors.size() / 2] <= 0.02);
}

TEST_CASE("predictions grow with images, sizes and boxes, shrink with checkpointing, and add up") {
  MemoryTable table("gelan-t", 3);
  for (int level = 0; level <= kMaxCheckpointing; ++level) table.measure({level, false});
  const auto sgd = OptimizerKind::SGD;
  for (int level = 0; level <= kMaxCheckpointing; ++level) {
    const StepKind kind{level, false};
    int64_t before = 0;
    for (const int64_t images : {1, 2, 3, 8, 64, 1000}) {
      const int64_t now = table.training({images, 320, 320, 20}, kind, sgd).total();
      CHECK(now > before);
      before = now;
    }
    before = 0;
    for (const int64_t size : {64, 96, 320, 640, 1280}) {
      const int64_t now = table.training({2, size, size, 20}, kind, sgd).total();
      CHECK(now > before);
      before = now;
    }
    before = 0;
    for (const int64_t boxes : {0, 1, 20, 100, 1000, 10000}) {
      const int64_t now = table.training({2, 640, 640, boxes}, kind, sgd).total();
      CHECK(now >= before);
      before = now;
    }
    const Load load{4, 640, 640, 50};
    const MemorySplit split = table.training(load, kind, sgd);
    for (const int64_t bytes : {split.activations_bytes, split.assignment_bytes, split.workspace_bytes})
      CHECK(bytes >= 0);
    // What lives between steps, and the peak of the step.
    const MemorySplit none = table.training({1, 32, 32, 0}, kind, sgd);
    const int64_t rest = none.total() - table.step_bytes({1, 32, 32, 0}, kind).peak();
    CHECK(split.total() == rest + table.step_bytes(load, kind).peak());
    if (level > 0) CHECK(split.total() < table.training(load, {level - 1, false}, sgd).total());
  }
}

TEST_CASE("what is live between steps is counted as it is in a run") {
  MemoryTable table("gelan-t", 3);
  table.measure({0, false});
  ModelOptions model;
  model.classes = 3;
  for (const auto kind : {OptimizerKind::SGD, OptimizerKind::Adam, OptimizerKind::AdamW, OptimizerKind::LION}) {
    TrainingKit kit;
    KitOptions options;
    options.optimizer = kind;
    const auto source = std::make_shared<HostMemorySource>();
    const int64_t before = source->sample().allocated_bytes;
    kit.assemble(DetectionModel("gelan-t", model), DetectionModel("gelan-t", model), source, options);
    const Baseline real = kit.baseline();
    const MemorySplit split = table.training({1, 64, 64, 0}, {0, false}, kind);
    CHECK(split.weights_bytes == real.weights_bytes);
    CHECK(split.gradients_bytes == real.gradients_bytes);
    // LION keeps a buffer for its update besides its state; Adam a few counters.
    const int64_t more = split.optimizer_bytes - real.optimizer_bytes;
    CHECK(more >= (kind == OptimizerKind::LION ? real.gradients_bytes : 0));
    CHECK(more <= 64 + (kind == OptimizerKind::LION ? real.gradients_bytes : 0));
    CHECK(split.ema_bytes == real.ema_bytes);
    const int64_t rest = split.total() - table.step_bytes({1, 64, 64, 0}, {0, false}).peak();
    CHECK(error_of(rest, source->sample().allocated_bytes - before) <= 0.01);
  }
}

TEST_CASE("a sharded optimizer leaves each rank its part of the state and all of the rest") {
  MemorySplit whole{100, 90, 181, 100, 500, 20, 10};
  CHECK(whole.total() == 1001);
  const MemorySplit part = whole.sharded(4);
  CHECK(part.optimizer_bytes == 46);  // rounded up: the largest share
  CHECK(part.ema_bytes == 100);
  CHECK(part.total() == 1001 - 181 + 46);
  CHECK(whole.sharded(1).total() == whole.total());
}

TEST_CASE("the most images are those that fit, and one more does not") {
  MemoryTable table("gelan-t", 3);
  const StepKind kind{0, false};
  table.measure(kind);
  const auto total = [&](int64_t images) {
    return table.training({images, 320, 320, 20}, kind, OptimizerKind::SGD).total();
  };
  for (const int64_t images : {1, 7, 40})
    CHECK(table.most_images({1, 320, 320, 20}, kind, OptimizerKind::SGD, total(images), 64) == images);
  CHECK(table.most_images({1, 320, 320, 20}, kind, OptimizerKind::SGD, total(7) - 1, 64) == 6);
  CHECK(table.most_images({1, 320, 320, 20}, kind, OptimizerKind::SGD, total(1) - 1, 64) == 0);
  CHECK(table.most_images({1, 320, 320, 20}, kind, OptimizerKind::SGD, total(100), 64) == 64);
}

TEST_CASE("inference is foreseen, takes half in 16 bits, and less than training") {
  MemoryTable table("yolov9-t");
  for (const bool half : {false, true}) {
    table.measure_inference(half);
    for (const Load& load : {Load{1, 448, 448}, Load{3, 256, 320}}) {
      CAPTURE(half, load.images);
      CHECK(error_of(table.inference(load, half).activations_bytes, table.run_inference(load, half)) <= 0.05);
    }
  }
  const Load load{4, 640, 640};
  const MemorySplit full = table.inference(load, false), half = table.inference(load, true);
  CHECK(half.weights_bytes * 2 == full.weights_bytes);
  CHECK(half.total() < full.total() * 6 / 10);
  table.measure({kMaxCheckpointing, true});
  CHECK(full.total() < table.training(load, {kMaxCheckpointing, true}, OptimizerKind::SGD).total());
}

TEST_CASE("a recorded step replays with what was live before it, part by part") {
  MemoryTable table("gelan-t", 3);
  const StepKind kind{0, false};
  table.measure(kind);
  const Load load{2, 128, 128, 4};
  const auto trace = table.record_training_step(load, kind, OptimizerKind::AdamW);
  const MemorySplit split = table.training(load, kind, OptimizerKind::AdamW);
  CHECK(error_of(trace.peak_bytes(), split.total()) <= 0.05);
  SimulatedCachingSource source(SimulatedOptions{});
  const auto replay = source.replay(trace);
  CHECK(replay.peak_allocated_bytes >= trace.peak_bytes());
  CHECK(replay.peak_reserved_bytes >= replay.peak_allocated_bytes);
  REQUIRE(replay.phases.size() == 4);
  CHECK(replay.phases[0].label == "forward");
  CHECK(replay.phases[2].label == "backward");
}
