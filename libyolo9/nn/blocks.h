// The composite blocks of GELAN. Widths: `in` and `out` are the block's; the others are hidden.
#pragma once

#include <yolo9/nn/conv.h>

namespace yolo9 {

// Average pool 2x2 (stride 1), then a 3x3 convolution with stride 2: h -> floor(h / 2).
class AConvImpl : public BlockImpl {
 public:
  AConvImpl(int64_t in, int64_t out, const Activation& activation = {});
  torch::Tensor forward(const torch::Tensor& x) override;
  Conv cv1{nullptr};
};
TORCH_MODULE(AConv);

// The same average pool; one half of the channels through a strided 3x3 convolution, the other through a max pool
// and a 1x1 convolution. `in` and `out` are even.
class ADownImpl : public BlockImpl {
 public:
  ADownImpl(int64_t in, int64_t out, const Activation& activation = {});
  torch::Tensor forward(const torch::Tensor& x) override;
  Conv cv1{nullptr}, cv2{nullptr};
};
TORCH_MODULE(ADown);

struct BottleneckOptions {
  bool shortcut = true;
  int64_t groups = 1;
  double expansion = 0.5;  // hidden width = int(out * expansion)
  Activation activation = {};
};

// cv2(cv1(x)), plus x if shortcut and the widths agree.
class RepNBottleneckImpl : public BlockImpl {
 public:
  RepNBottleneckImpl(int64_t in, int64_t out, const BottleneckOptions& options = {});
  torch::Tensor forward(const torch::Tensor& x) override;
  RepConvN cv1{nullptr};
  Conv cv2{nullptr};

 private:
  bool add_;
  bool add_in_place_;  // the last activation does not need its output in the backward pass
};
TORCH_MODULE(RepNBottleneck);

// cv3 of [m(cv1(x)), cv2(x)] with `count` bottlenecks m of width out / 2; `out` is even.
class RepNCSPImpl : public BlockImpl {
 public:
  RepNCSPImpl(int64_t in, int64_t out, int64_t count = 1, bool shortcut = true, const Activation& activation = {});
  torch::Tensor forward(const torch::Tensor& x) override;
  Conv cv1{nullptr}, cv2{nullptr}, cv3{nullptr};
  Sequence m{nullptr};
};
TORCH_MODULE(RepNCSP);

// cv1 to `split` channels in two halves y0, y1; y2 = cv2(y1), y3 = cv3(y2), each [RepNCSP, 3x3] of `width`
// channels; cv4 of all four. `split` and `width` are even.
class RepNCSPELAN4Impl : public BlockImpl {
 public:
  RepNCSPELAN4Impl(int64_t in, int64_t out, int64_t split, int64_t width, int64_t count,
                   const Activation& activation = {});
  torch::Tensor forward(const torch::Tensor& x) override;
  Conv cv1{nullptr};
  Sequence cv2{nullptr}, cv3{nullptr};
  Conv cv4{nullptr};
};
TORCH_MODULE(RepNCSPELAN4);

// The same with plain 3x3 convolutions as cv2 and cv3.
class ELAN1Impl : public BlockImpl {
 public:
  ELAN1Impl(int64_t in, int64_t out, int64_t split, int64_t width, const Activation& activation = {});
  torch::Tensor forward(const torch::Tensor& x) override;
  Conv cv1{nullptr}, cv2{nullptr}, cv3{nullptr}, cv4{nullptr};
};
TORCH_MODULE(ELAN1);

// cv1, three 5x5 max pools in a row, cv5 of the four stages (the pools have no parameters and no names here).
class SPPELANImpl : public BlockImpl {
 public:
  SPPELANImpl(int64_t in, int64_t out, int64_t hidden, const Activation& activation = {});
  torch::Tensor forward(const torch::Tensor& x) override;
  Conv cv1{nullptr}, cv5{nullptr};
};
TORCH_MODULE(SPPELAN);

}  // namespace yolo9
