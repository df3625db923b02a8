#include <yolo9/nn/flops.h>

#include <cmath>

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>

namespace yolo9 {

namespace {

// Multiply-adds of everything below `module`, all of whose convolutions give `cells` output cells.
double count_module(torch::nn::Module& module, double cells) {
  double sum = 0;
  module.apply([&](torch::nn::Module& part) {
    if (auto* conv = part.as<torch::nn::Conv2dImpl>()) sum += static_cast<double>(conv->weight.numel()) * cells;
    else if (auto* bn = part.as<torch::nn::BatchNorm2dImpl>())
      sum += 4.0 * static_cast<double>(bn->options.num_features()) * cells;
  });
  return sum;
}

double square(double value) { return value * value; }

// Branches run on their level's map; DFL on 4 sides of every anchor.
double count_head(HeadImpl& head, const std::vector<double>& strides, int64_t size) {
  double sum = 0, anchors = 0;
  for (const double stride : strides) anchors += square(static_cast<double>(size) / stride);
  for (const auto& child : head.named_children()) {
    if (child.value()->as<DFLImpl>()) {
      sum += count_module(*child.value(), 4 * anchors);
      continue;
    }
    for (const auto& level : child.value()->named_children()) {
      const double stride = strides.at(std::stoul(level.key()));
      sum += count_module(*level.value(), square(static_cast<double>(size) / stride));
    }
  }
  return sum;
}

}  // namespace

double count_gflops(DetectionModelImpl& model, int64_t size) {
  double sum = count_head(model.head(), model.strides(), size);
  const auto& layers = model.layers();
  for (size_t i = 0; i + 1 < layers.size(); ++i) {
    const auto& layer = layers[i];
    auto& module = model.layer_module(layer.index);
    const int64_t source = model.graph().layers[i].sources[0];
    const double before = source < 0 ? 1.0 : layers[static_cast<size_t>(source)].stride;
    // Repeats change the size in equal steps.
    const auto blocks = module.as<SequenceImpl>() && layer.repeats > 1 ? module.children()
                                                                      : std::vector{model.model->ptr(i)};
    const double step = std::pow(layer.stride / before, 1.0 / static_cast<double>(blocks.size()));
    for (size_t b = 0; b < blocks.size(); ++b) {
      const double stride = before * std::pow(step, static_cast<double>(b + 1));
      const double cells = square(static_cast<double>(size) / stride);
      sum += count_module(*blocks[b], cells);
      if (layer.type == "Upsample") sum += static_cast<double>(layer.widths[0]) * cells;
    }
  }
  return 2 * sum / 1e9;
}

ParameterCount count_parameters(const torch::nn::Module& module) {
  ParameterCount count;
  for (const auto& parameter : module.parameters()) {
    count.total += parameter.numel();
    if (parameter.requires_grad()) count.trainable += parameter.numel();
  }
  return count;
}

}  // namespace yolo9
