// Layers that connect others: joining, resizing, and the reversible-branch pair CBLinear / CBFuse.
#pragma once

#include <vector>

#include <torch/nn/modules/conv.h>

#include <yolo9/nn/layer.h>

namespace yolo9 {

// The image under a layer index.
class SilenceImpl : public BlockImpl {
 public:
  torch::Tensor forward(const torch::Tensor& x) override { return x; }
};
TORCH_MODULE(Silence);

// Nearest-neighbour enlargement by a whole factor.
class UpsampleImpl : public BlockImpl {
 public:
  explicit UpsampleImpl(int64_t factor = 2) : factor_(factor) {}
  torch::Tensor forward(const torch::Tensor& x) override;

 private:
  int64_t factor_;
};
TORCH_MODULE(Upsample);

// Joins maps of one size along the channels.
class ConcatImpl : public LayerImpl {
 public:
  torch::Tensor forward(const std::vector<torch::Tensor>& maps) { return at::cat(maps, 1); }
  Maps run(const std::vector<const Maps*>& sources) override;
};
TORCH_MODULE(Concat);

// One 1x1 convolution with bias, cut into parts of the given widths.
class CBLinearImpl : public LayerImpl {
 public:
  CBLinearImpl(int64_t in, const std::vector<int64_t>& widths);
  Maps forward(const torch::Tensor& x) { return conv->forward(x).split_with_sizes(widths_, 1); }
  Maps run(const std::vector<const Maps*>& sources) override { return forward(sources.at(0)->at(0)); }
  torch::nn::Conv2d conv{nullptr};

 private:
  std::vector<int64_t> widths_;
};
TORCH_MODULE(CBLinear);

// From the k-th CBLinear part parts[k], resized to the last source's size (nearest), all added to that last source.
class CBFuseImpl : public LayerImpl {
 public:
  explicit CBFuseImpl(const std::vector<int64_t>& parts) : parts_(parts) {}
  Maps run(const std::vector<const Maps*>& sources) override;

 private:
  std::vector<int64_t> parts_;
};
TORCH_MODULE(CBFuse);

}  // namespace yolo9
