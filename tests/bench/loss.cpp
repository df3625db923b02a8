// How the loss grows with the boxes of a batch: assignment, regression and classification, with gradients.
#include <benchmark/benchmark.h>

#include <yolo9/yolo9.h>

namespace {

void loss_of_dense_batch(benchmark::State& state) {
  const int64_t batch = 4, classes = 80, boxes = state.range(0);
  yolo9::LossOptions options;
  options.classes = classes;
  options.strides = {8, 16, 32};
  const yolo9::DetectionLoss loss(options);
  yolo9::HeadOutput maps;
  for (const int64_t size : {80, 40, 20})
    maps.main.push_back(at::randn({batch, 4 * options.reg_max + classes, size, size}).requires_grad_());
  auto targets = at::rand({batch * boxes, 6});
  targets.select(1, 0).copy_(at::arange(batch).repeat_interleave(boxes));
  targets.select(1, 1).mul_(classes).floor_();
  targets.narrow(1, 4, 2).mul_(0.2);
  for (auto _ : state) loss(maps, targets).total.backward();
}
BENCHMARK(loss_of_dense_batch)->Arg(10)->Arg(100)->Arg(1000)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
