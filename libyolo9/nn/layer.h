// What the graph runs: a layer maps the outputs of its source layers to its own output.
#pragma once

#include <functional>
#include <vector>

#include <torch/nn/module.h>
#include <torch/types.h>

namespace yolo9 {

// A layer's output: one map [B,C,H,W], or several for CBLinear.
using Maps = std::vector<torch::Tensor>;

// A part of the network as a function of maps, and who calls it: at once, or once more in the backward pass.
using SegmentFunction = std::function<std::vector<torch::Tensor>(const std::vector<torch::Tensor>&)>;
using SegmentRunner = std::function<std::vector<torch::Tensor>(const SegmentFunction&, std::vector<torch::Tensor>)>;

class LayerImpl : public torch::nn::Module {
 public:
  // One entry per source, in the order of the configuration's `from`.
  virtual Maps run(const std::vector<const Maps*>& sources) = 0;
};

// A layer with one map in and one out.
class BlockImpl : public LayerImpl {
 public:
  virtual torch::Tensor forward(const torch::Tensor& x) = 0;
  Maps run(const std::vector<const Maps*>& sources) override { return {forward(sources.at(0)->at(0))}; }
};

// Blocks one after the other, named "0", "1", ...
class SequenceImpl : public BlockImpl {
 public:
  explicit SequenceImpl(const std::vector<std::shared_ptr<BlockImpl>>& blocks) : blocks_(blocks) {
    for (size_t i = 0; i < blocks_.size(); ++i) register_module(std::to_string(i), blocks_[i]);
  }
  torch::Tensor forward(const torch::Tensor& x) override {
    torch::Tensor y = x;
    for (const auto& block : blocks_) y = block->forward(y);
    return y;
  }

 private:
  std::vector<std::shared_ptr<BlockImpl>> blocks_;
};
TORCH_MODULE(Sequence);

}  // namespace yolo9
