#include <yolo9/nn/conv.h>

#include <yolo9/nn/conv_block.h>

namespace yolo9 {

namespace {

struct Folded {
  torch::Tensor weight, bias;
};

// kernel = W * gamma / sqrt(var + eps), bias = beta - mean * gamma / sqrt(var + eps), in double precision so that
// folding adds one rounding only.
Folded fold(const torch::nn::Conv2d& conv, const torch::nn::BatchNorm2d& bn) {
  const auto scale = bn->weight.to(at::kDouble) / (bn->running_var.to(at::kDouble) + bn->options.eps()).sqrt();
  return {conv->weight.to(at::kDouble) * scale.view({-1, 1, 1, 1}),
          bn->bias.to(at::kDouble) - bn->running_mean.to(at::kDouble) * scale};
}

// A convolution like `model`, with a bias, that owns the folded values in the old parameters' type.
torch::nn::Conv2d make_folded(const torch::nn::Conv2d& model, const Folded& folded) {
  const auto& old = model->options;
  torch::nn::Conv2d conv(torch::nn::Conv2dOptions(old.in_channels(), old.out_channels(), old.kernel_size())
                             .stride(old.stride())
                             .padding(old.padding())
                             .groups(old.groups())
                             .dilation(old.dilation()));
  const auto format = model->weight.suggest_memory_format();
  conv->weight.set_data(folded.weight.to(model->weight.scalar_type()).contiguous(format));
  conv->bias.set_data(folded.bias.to(model->weight.scalar_type()));
  conv->weight.set_requires_grad(false);
  conv->bias.set_requires_grad(false);
  conv->train(model->is_training());
  return conv;
}

}  // namespace

ConvImpl::ConvImpl(int64_t in, int64_t out, const ConvOptions& options) : activation_(options.activation) {
  conv = register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, options.kernel)
                                                       .stride(options.stride)
                                                       .padding(options.pad())
                                                       .groups(options.groups)
                                                       .dilation(options.dilation)
                                                       .bias(false)));
  bn = register_module("bn", torch::nn::BatchNorm2d(torch::nn::BatchNorm2dOptions(out)
                                                        .eps(kBatchNormEps)
                                                        .momentum(kBatchNormMomentum)));
}

torch::Tensor ConvImpl::forward(const torch::Tensor& x) {
  if (bn.is_empty()) return activate(activation_, conv->forward(x));
  const std::vector<ConvNorm> block{{*conv, *bn}};
  if (conv_block_takes(x, block, activation_)) return conv_block(x, block, activation_);
  return activate(activation_, bn->forward(conv->forward(x)));
}

void ConvImpl::fuse() {
  if (is_fused()) return;
  torch::NoGradGuard guard;
  conv = replace_module("conv", make_folded(conv, fold(conv, bn)));
  unregister_module("bn");
  bn = nullptr;
}

RepConvNImpl::RepConvNImpl(int64_t in, int64_t out, int64_t stride, const Activation& activation)
    : activation_(activation) {
  const Activation none{Activation::Kind::Identity};
  conv1 = register_module("conv1", Conv(in, out, ConvOptions{.kernel = 3, .stride = stride, .activation = none}));
  conv2 = register_module("conv2", Conv(in, out, ConvOptions{.kernel = 1, .stride = stride, .activation = none}));
}

torch::Tensor RepConvNImpl::forward(const torch::Tensor& x) {
  if (!conv.is_empty()) return activate(activation_, conv->forward(x));
  if (is_training()) {
    const std::vector<ConvNorm> branches{{*conv1->conv, *conv1->bn}, {*conv2->conv, *conv2->bn}};
    if (conv_block_takes(x, branches, activation_)) return conv_block(x, branches, activation_);
  }
  // Neither branch's output is kept for its own backward pass, so the sum may reuse the first one's memory.
  return activate(activation_, conv1->forward(x).add_(conv2->forward(x)));
}

void RepConvNImpl::fuse() {
  if (is_fused()) return;
  torch::NoGradGuard guard;
  Folded sum = fold(conv1->conv, conv1->bn);
  const Folded small = fold(conv2->conv, conv2->bn);
  sum.weight += at::constant_pad_nd(small.weight, {1, 1, 1, 1});
  sum.bias += small.bias;
  conv = register_module("conv", make_folded(conv1->conv, sum));
  for (const char* name : {"conv1", "conv2"}) unregister_module(name);
  conv1 = nullptr;
  conv2 = nullptr;
}

void fuse_convolutions(torch::nn::Module& root) {
  // RepConvN first: its branches have no activation and must not be folded one by one.
  std::vector<RepConvNImpl*> pairs;
  root.apply([&](torch::nn::Module& module) {
    if (auto* pair = module.as<RepConvNImpl>()) pairs.push_back(pair);
  });
  for (auto* pair : pairs) pair->fuse();
  std::vector<ConvImpl*> convs;
  root.apply([&](torch::nn::Module& module) {
    if (auto* conv = module.as<ConvImpl>()) convs.push_back(conv);
  });
  for (auto* conv : convs) conv->fuse();
}

}  // namespace yolo9
