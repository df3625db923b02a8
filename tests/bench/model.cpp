// How long the network takes: forward as it is deployed, and a whole governed training step.
#include <benchmark/benchmark.h>

#include <c10/core/GradMode.h>
#include <yolo9/yolo9.h>

namespace {

constexpr int64_t kClasses = 3;

void forward(benchmark::State& state) {
  c10::NoGradGuard no_grad;
  yolo9::ModelOptions options;
  options.classes = kClasses;
  yolo9::DetectionModel model("yolov9-t", options);
  model->eval();
  model->set_auxiliary(false);
  model->fuse();
  const auto images = at::rand({1, 3, state.range(0), state.range(0)}).contiguous(at::MemoryFormat::ChannelsLast);
  for (auto _ : state) benchmark::DoNotOptimize(model->forward(images).decoded_main.data_ptr());
}
BENCHMARK(forward)->Arg(320)->Arg(640)->Unit(benchmark::kMillisecond)->UseRealTime();

void train_step(benchmark::State& state) {
  const int64_t batch = 16;
  yolo9::ModelOptions classes;
  classes.classes = kClasses;
  yolo9::KitOptions options;
  options.optimizer = yolo9::OptimizerKind::AdamW;
  options.learning_rate = 0.001;
  options.momentum = 0.9;
  yolo9::TrainingKit kit;
  kit.assemble(yolo9::DetectionModel("yolov9-t", classes), nullptr, yolo9::make_memory_source(at::kCPU), options);

  yolo9::Draw draw = yolo9::made_up_draw(batch, state.range(0), state.range(0), /*boxes=*/1, kClasses);
  draw.batch.images.random_(0, 256);
  for (auto _ : state) kit.step->run({draw});
  state.counters["images/s"] =
      benchmark::Counter(static_cast<double>(batch * state.iterations()), benchmark::Counter::kIsRate);
}
BENCHMARK(train_step)->Arg(128)->Arg(256)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace

int main(int argc, char** argv) {
  yolo9::install_host_meter();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
