// What the memory governor costs, how well it foresees, and how much of a budget it uses. Ratios of one run; bytes are
// exact.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include <yolo9/yolo9.h>

namespace {

using namespace yolo9;
using Clock = std::chrono::steady_clock;

constexpr int64_t kClasses = 80;

TrainingKit make_kit(const std::string& config, GovernorMode mode, int most_checkpointing) {
  ModelOptions classes;
  classes.classes = kClasses;
  KitOptions options;
  options.governor.mode = mode;
  options.governor.ladder.max_checkpointing = most_checkpointing;
  options.governor.ladder.may_chunk_assignment = true;
  options.optimizer = OptimizerKind::AdamW;
  options.learning_rate = 0.002;
  options.momentum = 0.9;
  TrainingKit kit;
  kit.assemble(DetectionModel(config, classes), DetectionModel(config, classes), make_memory_source(at::kCPU), options);
  return kit;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Alternating, so that a drift of the machine meets both.
void overhead() {
  auto governed = make_kit("yolov9-t", GovernorMode::On, 3), free = make_kit("yolov9-t", GovernorMode::Off, 0);
  const std::vector<Draw> draws{made_up_draw(8, 160, 160, 8, kClasses)};
  const auto seconds = [&](TrainingKit& kit) {
    const auto start = Clock::now();
    kit.step->run(draws);
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  std::vector<double> with, without, ratios;
  for (int i = 0; i < 43; ++i) {
    const double a = seconds(governed), b = seconds(free);
    if (i < 3) continue;  // warm
    with.push_back(a);
    without.push_back(b);
    ratios.push_back(a / b);
  }
  std::printf("overhead: governed %.1f ms, ungoverned %.1f ms a step, median ratio %.4f (40 pairs)\n",
              1e3 * median(with), 1e3 * median(without), median(ratios));
}

// A budget for about `images` of 48: what part of it do the steps use?
void use_of_budget() {
  for (const int64_t images : {5, 9, 13, 20}) {
    auto kit = make_kit("yolov9-t", GovernorMode::On, 0);
    const StepShape shape = kit.step->shape_of({made_up_draw(48, 128, 128, 8, kClasses)});
    Planner planner(*kit.governor, kit.probe());
    planner.measure(shape);
    const int64_t rest = kit.governor->rest_bytes();
    StepSetting setting{images};
    const int64_t needed = rest + *kit.governor->expect(shape, setting);
    kit.governor->set_budget(static_cast<int64_t>(static_cast<double>(needed) / 0.9) + 1);
    StepMemory memory;
    int64_t ooms = 0;
    for (int i = 0; i < 4; ++i) {
      memory = kit.step->run({made_up_draw(48, 128, 128, 8, kClasses)}).memory;
      ooms += memory.ooms;
    }
    std::printf("use: budget %s, less headroom %s: slices of %ld, peak %s, %.1f %% of what plans may use, %ld ooms\n",
                format_bytes(memory.budget_bytes).c_str(), format_bytes(kit.governor->allowed_bytes()).c_str(),
                memory.micro_batch, format_bytes(memory.peak_bytes).c_str(),
                100.0 * static_cast<double>(memory.peak_bytes) / static_cast<double>(kit.governor->allowed_bytes()),
                ooms);
  }
}

void prediction() {
  std::vector<double> errors;
  std::printf("prediction: model size batch boxes-per-image predicted measured error\n");
  for (const std::string config : {"gelan-t", "yolov9-t", "gelan-s", "yolov9-s", "yolov9-c"}) {
    auto kit = make_kit(config, GovernorMode::Watch, 0);
    const auto probe = kit.probe();
    StepShape largest = kit.step->shape_of({made_up_draw(3, 192, 192, 50, kClasses)});
    Planner planner(*kit.governor, probe);
    planner.measure(largest);
    const int64_t rest = kit.governor->rest_bytes();
    for (const int64_t size : {128, 192, 256})
      for (const int64_t batch : {1, 3, 6})
        for (const int64_t boxes : {0, 10, 100}) {
          const Draw draw = made_up_draw(batch, size, size, boxes, kClasses);
          const StepShape shape = kit.step->shape_of({draw});
          const StepSetting setting{batch};
          const auto phases = kit.step->probe(draw, setting);
          const auto measured = rest + *std::max_element(phases->begin(), phases->end());
          const auto predicted = rest + *kit.governor->expect(shape, setting);
          const double error = static_cast<double>(predicted) / static_cast<double>(measured) - 1;
          errors.push_back(std::abs(error));
          std::printf("  %-9s %4ld %2ld %4ld  %12ld %12ld %+6.2f %%\n", config.c_str(), size, batch, boxes, predicted,
                      measured, 100 * error);
        }
  }
  std::sort(errors.begin(), errors.end());
  std::printf("prediction: %zu cases, median error %.2f %%, worst %.2f %%\n", errors.size(),
              100 * errors[errors.size() / 2], 100 * errors.back());
}

// Pictures of noise with bright squares where the boxes are.
Draw squares(int64_t images, int64_t size, uint64_t seed) {
  Random random{seed};
  Draw draw;
  draw.batch.images = at::randint(0, 90, {images, 3, size, size}, at::kByte);
  draw.batch.targets = at::zeros({images * 3, 6});
  float* row = draw.batch.targets.mutable_data_ptr<float>();
  for (int64_t image = 0; image < images; ++image)
    for (int64_t box = 0; box < 3; ++box, row += 6) {
      const int64_t side = size / 6 + random.integer(size / 6), kind = random.integer(3);
      const int64_t x = random.integer(size - side), y = random.integer(size - side);
      draw.batch.images[image][kind].narrow(0, y, side).narrow(1, x, side).fill_(240);
      const auto part = [&](int64_t pixels) { return static_cast<float>(pixels) / static_cast<float>(size); };
      const float values[] = {static_cast<float>(image),
                              static_cast<float>(kind),
                              part(x) + part(side) / 2,
                              part(y) + part(side) / 2,
                              part(side),
                              part(side)};
      std::copy_n(values, 6, row);
    }
  return draw;
}

// How far the gradients of a draw in slices are from the whole draw's, BatchNorm seeing the slice, on a model that has
// learnt something: at random weights they have nothing in common.
void slices() {
  constexpr int64_t kImages = 16, kSize = 96, kSteps = 300;
  auto kit = make_kit("gelan-t", GovernorMode::Off, 0);
  for (int64_t step = 0; step < kSteps; ++step) kit.step->run({squares(kImages, kSize, static_cast<uint64_t>(step))});
  const Draw draw = squares(kImages, kSize, 1 << 20);
  const auto gradients = [&](int64_t slice, double& total) {
    kit.model->train();
    kit.store->zero_gradients();
    SliceContext context;
    context.batch_size = kImages;
    const auto part = [&](int64_t first) { return slice_targets(draw.batch.targets, first, slice); };
    const auto maps = [&](int64_t first) {
      return kit.model->forward(to_network_input(draw.batch.images.narrow(0, first, slice), at::kCPU));
    };
    {
      const at::NoGradGuard no_grad;
      for (int64_t first = 0; first < kImages; first += slice) {
        const auto sums = kit.loss->score_sums(maps(first), part(first));
        context.score_sums = context.score_sums.defined() ? context.score_sums + sums : sums;
      }
    }
    total = 0;
    for (int64_t first = 0; first < kImages; first += slice) {
      const auto loss = (*kit.loss)(maps(first), part(first), context).total;
      loss.backward();
      total += loss.item<double>();
    }
    std::vector<at::Tensor> all;
    for (const auto& group : kit.store->groups()) all.push_back(group.gradients);
    return at::cat(all);
  };
  double loss = 0, cut_loss = 0;
  const auto whole = gradients(kImages, loss);
  for (const int64_t slice : {8, 4, 2, 1}) {
    const auto cut = gradients(slice, cut_loss);
    std::printf(
        "slices of %ld of 16 images, BatchNorm live: loss %+.2f %%, gradients differ by %.1f %% in norm, "
        "cosine %.3f\n",
        slice, 100 * (cut_loss / loss - 1), 100 * ((cut - whole).norm() / whole.norm()).item<double>(),
        (at::dot(cut, whole) / (cut.norm() * whole.norm())).item<double>());
  }
}

}  // namespace

int main(int argc, char** argv) {
  install_host_meter();
  const std::string part = argc > 1 ? argv[1] : "";
  if (part.empty() || part == "overhead") overhead();
  if (part.empty() || part == "use") use_of_budget();
  if (part.empty() || part == "slices") slices();
  if (part.empty() || part == "prediction") prediction();
}
