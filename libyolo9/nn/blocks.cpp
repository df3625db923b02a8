#include <yolo9/nn/blocks.h>

namespace yolo9 {

namespace {

Conv make_conv(int64_t in, int64_t out, int64_t kernel, const Activation& activation, int64_t stride = 1,
               int64_t groups = 1) {
  return Conv(in, out, ConvOptions{.kernel = kernel, .stride = stride, .groups = groups, .activation = activation});
}

torch::Tensor smooth(const torch::Tensor& x) { return at::avg_pool2d(x, {2, 2}, {1, 1}); }

}  // namespace

AConvImpl::AConvImpl(int64_t in, int64_t out, const Activation& activation) {
  cv1 = register_module("cv1", make_conv(in, out, 3, activation, 2));
}

torch::Tensor AConvImpl::forward(const torch::Tensor& x) { return cv1->forward(smooth(x)); }

ADownImpl::ADownImpl(int64_t in, int64_t out, const Activation& activation) {
  cv1 = register_module("cv1", make_conv(in / 2, out / 2, 3, activation, 2));
  cv2 = register_module("cv2", make_conv(in / 2, out / 2, 1, activation));
}

torch::Tensor ADownImpl::forward(const torch::Tensor& x) {
  const auto halves = smooth(x).chunk(2, 1);
  const auto pooled = at::max_pool2d(halves[1], {3, 3}, {2, 2}, {1, 1});
  return at::cat({cv1->forward(halves[0]), cv2->forward(pooled)}, 1);
}

RepNBottleneckImpl::RepNBottleneckImpl(int64_t in, int64_t out, const BottleneckOptions& options)
    : add_(options.shortcut && in == out), add_in_place_(!keeps_output_for_backward(options.activation)) {
  const auto hidden = static_cast<int64_t>(static_cast<double>(out) * options.expansion);
  cv1 = register_module("cv1", RepConvN(in, hidden, 1, options.activation));
  cv2 = register_module("cv2", make_conv(hidden, out, 3, options.activation, 1, options.groups));
}

torch::Tensor RepNBottleneckImpl::forward(const torch::Tensor& x) {
  auto y = cv2->forward(cv1->forward(x));
  if (!add_) return y;
  return add_in_place_ || !at::GradMode::is_enabled() ? y.add_(x) : y + x;
}

RepNCSPImpl::RepNCSPImpl(int64_t in, int64_t out, int64_t count, bool shortcut, const Activation& activation) {
  const int64_t half = out / 2;
  cv1 = register_module("cv1", make_conv(in, half, 1, activation));
  cv2 = register_module("cv2", make_conv(in, half, 1, activation));
  cv3 = register_module("cv3", make_conv(2 * half, out, 1, activation));
  std::vector<std::shared_ptr<BlockImpl>> blocks;
  const BottleneckOptions options{.shortcut = shortcut, .expansion = 1.0, .activation = activation};
  for (int64_t i = 0; i < count; ++i) blocks.push_back(RepNBottleneck(half, half, options).ptr());
  m = register_module("m", Sequence(blocks));
}

torch::Tensor RepNCSPImpl::forward(const torch::Tensor& x) {
  return cv3->forward(at::cat({m->forward(cv1->forward(x)), cv2->forward(x)}, 1));
}

RepNCSPELAN4Impl::RepNCSPELAN4Impl(int64_t in, int64_t out, int64_t split, int64_t width, int64_t count,
                                   const Activation& activation) {
  const auto stage = [&](int64_t from) {
    return Sequence(std::vector<std::shared_ptr<BlockImpl>>{RepNCSP(from, width, count, true, activation).ptr(),
                                                           make_conv(width, width, 3, activation).ptr()});
  };
  cv1 = register_module("cv1", make_conv(in, split, 1, activation));
  cv2 = register_module("cv2", stage(split / 2));
  cv3 = register_module("cv3", stage(width));
  cv4 = register_module("cv4", make_conv(split + 2 * width, out, 1, activation));
}

torch::Tensor RepNCSPELAN4Impl::forward(const torch::Tensor& x) {
  const auto y01 = cv1->forward(x);
  const auto y2 = cv2->forward(y01.chunk(2, 1)[1]);
  const auto y3 = cv3->forward(y2);
  return cv4->forward(at::cat({y01, y2, y3}, 1));
}

ELAN1Impl::ELAN1Impl(int64_t in, int64_t out, int64_t split, int64_t width, const Activation& activation) {
  cv1 = register_module("cv1", make_conv(in, split, 1, activation));
  cv2 = register_module("cv2", make_conv(split / 2, width, 3, activation));
  cv3 = register_module("cv3", make_conv(width, width, 3, activation));
  cv4 = register_module("cv4", make_conv(split + 2 * width, out, 1, activation));
}

torch::Tensor ELAN1Impl::forward(const torch::Tensor& x) {
  const auto y01 = cv1->forward(x);
  const auto y2 = cv2->forward(y01.chunk(2, 1)[1]);
  const auto y3 = cv3->forward(y2);
  return cv4->forward(at::cat({y01, y2, y3}, 1));
}

SPPELANImpl::SPPELANImpl(int64_t in, int64_t out, int64_t hidden, const Activation& activation) {
  cv1 = register_module("cv1", make_conv(in, hidden, 1, activation));
  cv5 = register_module("cv5", make_conv(4 * hidden, out, 1, activation));
}

torch::Tensor SPPELANImpl::forward(const torch::Tensor& x) {
  std::vector<torch::Tensor> stages{cv1->forward(x)};
  for (int i = 0; i < 3; ++i) stages.push_back(at::max_pool2d(stages.back(), {5, 5}, {1, 1}, {2, 2}));
  return cv5->forward(at::cat(stages, 1));
}

}  // namespace yolo9
