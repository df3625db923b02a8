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
  yolo9::ModelOptions options;
  options.classes = kClasses;
  yolo9::DetectionModel model("yolov9-t", options);
  yolo9::LossOptions loss_options;
  loss_options.classes = kClasses;
  loss_options.reg_max = model->reg_max();
  loss_options.strides = model->strides();
  const yolo9::DetectionLoss loss(loss_options);
  yolo9::ParameterStore store(*model);
  std::vector<yolo9::ParameterGroup> groups;
  for (const auto& group : store.groups()) groups.push_back({group.values, group.gradients, 0.001, 0});
  const auto optimizer = yolo9::make_optimizer(yolo9::OptimizerKind::AdamW, groups, 0.9);
  yolo9::Governor governor(std::make_shared<yolo9::HostMemorySource>(), {});
  yolo9::LocalCommunicator alone;
  yolo9::TrainStep step(model, loss, store, *optimizer, nullptr, governor, alone);

  yolo9::Draw draw;
  draw.batch.images = at::randint(0, 256, {batch, 3, state.range(0), state.range(0)}, at::kByte);
  draw.batch.targets = at::zeros({batch, 6});
  draw.batch.targets.select(1, 0).copy_(at::arange(batch));
  draw.batch.targets.narrow(1, 2, 4).fill_(0.5);
  for (auto _ : state) step.run({draw});
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
