#include <yolo9/loss/class_loss.h>

#include <ATen/ATen.h>
#include <torch/autograd.h>

namespace yolo9 {
namespace {

torch::Tensor smooth(const torch::Tensor& targets, double smoothing) {
  return smoothing > 0 ? targets * (1 - smoothing) + smoothing / 2 : targets;
}

// Whether the background is softplus(x), whose gradient is sigmoid(x).
bool is_plain(const ClassLossOptions& options) { return options.focal_gamma <= 0 && options.smoothing <= 0; }

class ReadLevel : public torch::autograd::Function<ReadLevel> {
 public:
  using Context = torch::autograd::AutogradContext;
  using Tensors = torch::autograd::variable_list;

  static Tensors forward(Context* context, const torch::Tensor& map, const torch::Tensor& image,
                         const torch::Tensor& cell, const torch::Tensor& label, int64_t box_channels,
                         double positive_weight, double focal_gamma, double smoothing) {
    const ClassLossOptions options{positive_weight, focal_gamma, smoothing};
    context->save_for_backward({map, image, cell, label});
    context->saved_data["box_channels"] = box_channels;
    context->saved_data["positive_weight"] = positive_weight;
    context->saved_data["focal_gamma"] = focal_gamma;
    context->saved_data["smoothing"] = smoothing;
    // A dense copy first: rows of class channels between box channels would leave most kernels unvectorised.
    auto classes =
        map.narrow(1, box_channels, map.size(1) - box_channels).to(at::kFloat, /*non_blocking=*/false, /*copy=*/true);
    auto background = is_plain(options) ? at::softplus_out(classes, classes).sum()
                                        : class_loss(classes, at::zeros_like(classes), options).sum();
    const int64_t width = map.size(3);
    const auto y = at::floor_divide(cell, width), x = at::remainder(cell, width);
    const auto rows = map.permute({0, 2, 3, 1}).narrow(3, 0, box_channels).index({image, y, x}).to(at::kFloat);
    const auto logits = map.index({image, label + box_channels, y, x}).to(at::kFloat);
    return {background, rows, logits};
  }

  static Tensors backward(Context* context, Tensors grads) {
    const auto saved = context->get_saved_variables();
    const auto &map = saved[0], &image = saved[1], &cell = saved[2], &label = saved[3];
    const auto box_channels = context->saved_data["box_channels"].toInt();
    const ClassLossOptions options{context->saved_data["positive_weight"].toDouble(),
                                   context->saved_data["focal_gamma"].toDouble(),
                                   context->saved_data["smoothing"].toDouble()};
    auto grad = background_gradient(map, box_channels, grads[0], options);
    grad.narrow(1, 0, box_channels).zero_();
    const int64_t width = map.size(3);
    const auto y = at::floor_divide(cell, width), x = at::remainder(cell, width);
    grad.permute({0, 2, 3, 1}).narrow(3, 0, box_channels).index_put_({image, y, x}, grads[1].to(map.scalar_type()));
    // The places are distinct, so reading and writing back adds without the sorting that accumulation needs.
    const auto channel = label + box_channels;
    const auto dense = grad.index({image, channel, y, x}).to(at::kFloat);
    grad.index_put_({image, channel, y, x}, (dense + grads[2]).to(map.scalar_type()));
    return {grad, {}, {}, {}, {}, {}, {}, {}};
  }

 private:
  // The gradient of the background over class channels; what it leaves in the box channels has no meaning.
  static torch::Tensor background_gradient(const torch::Tensor& map, int64_t box_channels, const torch::Tensor& scale,
                                           const ClassLossOptions& options) {
    if (is_plain(options) && map.scalar_type() == at::kFloat) return at::sigmoid(map).mul_(scale);
    if (is_plain(options)) return at::sigmoid(map.to(at::kFloat)).mul_(scale).to(map.scalar_type());
    const int64_t classes = map.size(1) - box_channels;
    const at::AutoGradMode enable(true);
    auto leaf = map.narrow(1, box_channels, classes).detach().to(at::kFloat).requires_grad_();
    const auto sum = class_loss(leaf, at::zeros_like(leaf), options).sum();
    const auto gradient = torch::autograd::grad({sum}, {leaf})[0];
    const at::NoGradGuard no_grad;
    auto grad = at::empty_like(map);
    grad.narrow(1, box_channels, classes).copy_(gradient.mul_(scale));
    return grad;
  }
};

}  // namespace

torch::Tensor class_loss(const torch::Tensor& logits, const torch::Tensor& targets, const ClassLossOptions& options) {
  const auto t = smooth(targets, options.smoothing);
  const auto log_weight = options.positive_weight == 1 ? torch::Tensor() : t * (options.positive_weight - 1) + 1;
  const auto negative_log = at::softplus(-logits);  // -log(sigmoid)
  auto loss = (1 - t) * logits + (log_weight.defined() ? log_weight * negative_log : negative_log);
  if (options.focal_gamma <= 0) return loss;
  constexpr double kAlpha = 0.25;
  const auto p = at::sigmoid(logits);
  const auto agreement = t * p + (1 - t) * (1 - p);
  return loss * (t * kAlpha + (1 - t) * (1 - kAlpha)) * (1 - agreement).pow(options.focal_gamma);
}

torch::Tensor positive_correction(const torch::Tensor& logits, const torch::Tensor& targets,
                                  const ClassLossOptions& options) {
  return class_loss(logits, targets, options) - class_loss(logits, at::zeros_like(targets), options);
}

LevelTerms read_level(const torch::Tensor& map, const torch::Tensor& image, const torch::Tensor& cell,
                      const torch::Tensor& label, int64_t box_channels, const ClassLossOptions& options) {
  const auto terms = ReadLevel::apply(map, image, cell, label, box_channels, options.positive_weight,
                                      options.focal_gamma, options.smoothing);
  return {terms[0], terms[1], terms[2]};
}

}  // namespace yolo9
