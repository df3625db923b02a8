#include <catch2/catch.hpp>

#include <ATen/autocast_mode.h>
#include <torch/nn/functional/dropout.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>

#include <yolo9/memory/host_source.h>
#include <yolo9/memory/oom.h>
#include <yolo9/memory/recompute.h>

using namespace yolo9;

namespace {

// A foreign module: convolution, BatchNorm, dropout, and two results of which one is a view.
struct BlockImpl : torch::nn::Module {
  BlockImpl() {
    conv = register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 8, 3).padding(1)));
    bn = register_module("bn", torch::nn::BatchNorm2d(8));
    last = register_module("last", torch::nn::Conv2d(torch::nn::Conv2dOptions(8, 4, 1)));
  }
  std::vector<torch::Tensor> forward(const torch::Tensor& x) {
    auto y = torch::nn::functional::dropout(at::relu(bn->forward(conv->forward(x))),
                                            torch::nn::functional::DropoutFuncOptions().p(0.5));
    return {last->forward(y), y.chunk(2, 1)[1]};
  }
  torch::nn::Conv2d conv{nullptr}, last{nullptr};
  torch::nn::BatchNorm2d bn{nullptr};
};
TORCH_MODULE(Block);

struct Outcome {
  std::vector<torch::Tensor> values;
  int64_t kept_bytes = 0;
};

// Gradients, buffers, input gradient and loss of two blocks in a row.
Outcome run(bool checkpointed, bool input_gradient, bool cast = false) {
  at::manual_seed(7);
  Block first, second(nullptr);
  second = Block();
  first->to(torch::kFloat);
  auto x = at::rand({2, 3, 16, 16}).set_requires_grad(input_gradient);
  std::vector<torch::Tensor> buffers;
  for (auto& block : {first, second})
    for (const auto& buffer : block->buffers()) buffers.push_back(buffer);
  const auto state = std::make_shared<StepState>(buffers);
  const auto apply = [&](Block& block, const torch::Tensor& input) {
    if (!checkpointed) return block->forward(input);
    return recompute([block](const std::vector<torch::Tensor>& in) mutable { return block->forward(in.at(0)); },
                     {input}, state);
  };
  HostMemorySource source;
  const int64_t before = source.sample().allocated_bytes;
  at::autocast::set_autocast_enabled(at::kCPU, cast);
  const auto middle = apply(first, x);
  const auto end = apply(second, middle[0].narrow(1, 0, 3));
  at::autocast::set_autocast_enabled(at::kCPU, false);
  auto loss = end[0].to(at::kFloat).square().sum() + end[1].to(at::kFloat).sum() + middle[1].to(at::kFloat).sum();
  Outcome out;
  out.kept_bytes = source.sample().allocated_bytes - before;
  loss.backward();
  out.values.push_back(loss.detach());
  for (auto& block : {first, second})
    for (const auto& parameter : block->parameters()) out.values.push_back(parameter.grad());
  for (const auto& buffer : buffers) out.values.push_back(buffer);
  if (input_gradient) out.values.push_back(x.grad());
  // The generator goes on from the same place.
  out.values.push_back(at::rand({4}));
  return out;
}

}  // namespace

TEST_CASE("recomputation changes no bit, with dropout and BatchNorm, in any combination") {
  for (const bool input_gradient : {false, true})
    for (const bool cast : {false, true}) {
      CAPTURE(input_gradient, cast);
      const Outcome plain = run(false, input_gradient, cast), again = run(true, input_gradient, cast);
      REQUIRE(plain.values.size() == again.values.size());
      for (size_t i = 0; i < plain.values.size(); ++i) {
        CAPTURE(i);
        CHECK(torch::equal(plain.values[i], again.values[i]));
      }
      CHECK(again.kept_bytes < plain.kept_bytes);
    }
}

TEST_CASE("without gradients a recomputed function just runs") {
  const at::NoGradGuard guard;
  int calls = 0;
  const auto out = recompute(
      [&](const std::vector<torch::Tensor>& in) {
        ++calls;
        return in;
      },
      {at::ones({2})});
  CHECK(calls == 1);
  CHECK_FALSE(out[0].requires_grad());
}

TEST_CASE("an out-of-memory in the second run comes out by type and leaves the buffers as they were") {
  Block block;
  const auto state = std::make_shared<StepState>(block->buffers());
  install_host_meter();
  const auto x = at::rand({2, 3, 16, 16});
  const auto result =
      recompute([block](const std::vector<torch::Tensor>& in) mutable { return block->forward(in.at(0)); }, {x}, state);
  std::vector<torch::Tensor> before;
  for (const auto& buffer : block->buffers()) before.push_back(buffer.clone());
  bool caught = false;
  {
    const HostBudgetScope budgeted;
    const auto loss = result[0].sum();
    refuse_host_allocation(8);
    try {
      loss.backward();
    } catch (const std::exception& error) {
      caught = is_out_of_memory(error);
    }
    refuse_host_allocation(0);
  }
  CHECK(caught);
  const auto after = block->buffers();
  for (size_t i = 0; i < before.size(); ++i) CHECK(torch::equal(before[i], after[i]));
}
