// A training step of a network that has nothing to do with YOLO, under a memory budget: what does not fit in one
// piece goes through in slices, and the gradients stay those of the whole batch.
#include <iostream>

#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <yolo9/memory/governor.h>
#include <yolo9/memory/host_source.h>
#include <yolo9/memory/oom.h>

int main() {
  yolo9::install_host_meter();  // before the first tensor
  torch::nn::Sequential network(torch::nn::Linear(64, 4096), torch::nn::ReLU(), torch::nn::Linear(4096, 10));
  const auto samples = at::randn({512, 64});
  const auto classes = at::randint(10, {512});

  yolo9::GovernorOptions options;
  options.budget_bytes = yolo9::parse_bytes("16MiB", 0);
  yolo9::Governor governor(std::make_shared<yolo9::HostMemorySource>(), options);

  yolo9::StepShape shape;
  shape.draw_size = samples.size(0);
  int64_t slice = governor.plan(shape);
  for (bool done = false; !done;) {
    governor.source().reset_peak();
    network->zero_grad();
    try {
      const yolo9::HostBudgetScope budgeted;
      for (int64_t first = 0; first < shape.draw_size; first += slice) {
        const int64_t count = std::min(slice, shape.draw_size - first);
        const auto scores = network->forward(samples.narrow(0, first, count));
        const auto loss = torch::nn::functional::cross_entropy(scores, classes.narrow(0, first, count));
        (loss * (static_cast<double>(count) / static_cast<double>(shape.draw_size))).backward();
      }
      done = true;
    } catch (const std::exception& error) {
      if (!yolo9::is_out_of_memory(error)) throw;
    }
    if (!done) slice = governor.shrink(shape, slice);
  }
  const yolo9::StepMemory memory = governor.observe(shape, slice);
  std::cout << "slices of " << memory.micro_batch << ", peak " << yolo9::format_bytes(memory.peak_bytes) << " of "
            << yolo9::format_bytes(memory.budget_bytes) << ", out of memory " << memory.ooms << " times\n";
  return memory.ooms > 0 && memory.peak_bytes <= memory.budget_bytes ? 0 : 1;
}
