// A small residual classifier that has nothing to do with YOLO learns under a memory budget. The governor foresees what
// fits, one block is recomputed where that saves enough, and what still does not fit goes through in slices. When the
// memory runs out nevertheless, the step is undone and run again with less: the effective batch stays what it is.
#include <iostream>

#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <yolo9/memory/governor.h>
#include <yolo9/memory/host_source.h>
#include <yolo9/memory/oom.h>
#include <yolo9/memory/recompute.h>

struct Block : torch::nn::Module {
  explicit Block(int64_t width)
      : conv1(register_module("conv1", torch::nn::Conv2d(torch::nn::Conv2dOptions(width, width, 3).padding(1)))),
        conv2(register_module("conv2", torch::nn::Conv2d(torch::nn::Conv2dOptions(width, width, 3).padding(1)))),
        norm1(register_module("norm1", torch::nn::BatchNorm2d(width))),
        norm2(register_module("norm2", torch::nn::BatchNorm2d(width))) {}
  at::Tensor forward(const at::Tensor& x) { return (x + norm2(conv2(norm1(conv1(x)).relu()))).relu(); }
  torch::nn::Conv2d conv1, conv2;
  torch::nn::BatchNorm2d norm1, norm2;
};

struct Network : torch::nn::Module {
  at::Tensor forward(const at::Tensor& pictures, bool checkpointed) {
    auto x = block1->forward(stem(pictures));
    const auto second = [this](const std::vector<at::Tensor>& in) { return std::vector{block2->forward(in[0])}; };
    x = checkpointed ? yolo9::recompute(second, {x}, block2_state)[0] : second({x})[0];
    return classify(x.mean({2, 3}));
  }
  torch::nn::Conv2d stem = register_module("stem", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 16, 3).padding(1)));
  std::shared_ptr<Block> block1 = register_module("block1", std::make_shared<Block>(16));
  std::shared_ptr<Block> block2 = register_module("block2", std::make_shared<Block>(16));
  torch::nn::Linear classify = register_module("classify", torch::nn::Linear(16, 3));
  std::shared_ptr<yolo9::StepState> block2_state = std::make_shared<yolo9::StepState>(block2->buffers());
};

int main() {
  yolo9::install_host_meter();  // before the first tensor
  torch::manual_seed(0);
  Network network;
  // Three classes: level stripes, upright stripes, both.
  const auto classes = at::arange(96).remainder(3), stripes = at::arange(32).remainder(4).ge(2).to(at::kFloat);
  const auto level = stripes.view({32, 1}).expand({32, 32}), upright = level.t();
  const auto pictures = at::stack({level, upright, level * upright}).index_select(0, classes).unsqueeze(1) +
                        at::randn({96, 1, 32, 32}) * 0.3;
  torch::optim::SGD optimizer(network.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));

  yolo9::GovernorOptions options;
  options.budget_bytes = yolo9::parse_bytes("24MiB", 0);
  options.ladder.max_checkpointing = 1;  // what Network::forward knows to do
  options.ladder.stride = 1;             // it makes no map smaller than the picture
  yolo9::Governor governor(std::make_shared<yolo9::HostMemorySource>(), options);
  yolo9::StepState statistics(network.buffers());  // what an attempt changes, gradients apart
  yolo9::StepShape shape;
  shape.draw_size = pictures.size(0);
  shape.height = shape.width = 32;

  const auto attempt = [&](const yolo9::StepSetting& setting, double& loss_sum) {
    const yolo9::HostBudgetScope budgeted;
    try {
      for (int64_t first = 0; first < shape.draw_size; first += setting.micro_batch) {
        const int64_t count = std::min(setting.micro_batch, shape.draw_size - first);
        const auto scores = network.forward(pictures.narrow(0, first, count), setting.checkpointing > 0);
        const auto loss = torch::nn::functional::cross_entropy(scores, classes.narrow(0, first, count)) *
                          (static_cast<double>(count) / static_cast<double>(shape.draw_size));
        loss.backward();
        loss_sum += loss.item<double>();
      }
      return true;
    } catch (const std::exception& error) {
      if (!yolo9::is_out_of_memory(error)) throw;
    }
    return false;  // outside the handler, so that everything of the attempt is gone
  };

  double first_loss = 0, loss = 0;
  int64_t ooms = 0, peak = 0;
  for (int step = 0; step < 20; ++step) {
    yolo9::StepSetting setting = governor.plan(shape);
    statistics.save();
    for (;; setting = governor.shrink(shape, setting)) {
      optimizer.zero_grad();
      governor.source().reset_peak();
      loss = 0;
      if (attempt(setting, loss)) break;
      statistics.restore();
    }
    const yolo9::StepMemory memory = governor.observe(shape, setting);
    optimizer.step();
    if (step == 0) first_loss = loss;
    ooms += memory.ooms;
    peak = std::max(peak, memory.peak_bytes);
    if (step % 5 == 0 || memory.ooms > 0)
      std::cout << "step " << step << ": loss " << loss << ", " << yolo9::describe(setting) << ", peak "
                << yolo9::format_bytes(memory.peak_bytes) << " of " << yolo9::format_bytes(memory.budget_bytes)
                << ", out of memory " << memory.ooms << " times\n";
  }
  std::cout << "loss " << first_loss << " -> " << loss << ", peak " << yolo9::format_bytes(peak) << "\n";
  return ooms > 0 && peak <= options.budget_bytes && loss < first_loss / 2 ? 0 : 1;
}
