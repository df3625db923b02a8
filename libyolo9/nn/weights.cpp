#include <yolo9/nn/weights.h>

#include <map>

#include <torch/nn/modules/batchnorm.h>

namespace yolo9 {

namespace {

void collect(const torch::nn::Module& module, const std::string& prefix, NamedTensors& out) {
  for (const auto& item : module.named_parameters(/*recurse=*/false))
    out.emplace_back(prefix + item.key(), item.value().detach());
  for (const auto& item : module.named_buffers(/*recurse=*/false))
    out.emplace_back(prefix + item.key(), item.value().detach());
  for (const auto& item : module.named_children()) collect(*item.value(), prefix + item.key() + ".", out);
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t size : shape) text += (text.empty() ? "" : ",") + std::to_string(size);
  return "[" + text + "]";
}

}  // namespace

NamedTensors state_dict(const torch::nn::Module& module) {
  NamedTensors out;
  collect(module, "", out);
  return out;
}

std::string LoadReport::summary() const {
  const size_t wanted = static_cast<size_t>(loaded) + missing.size() + mismatched.size();
  std::string line = "loaded " + std::to_string(loaded) + " of " + std::to_string(wanted) + " tensors";
  if (!mismatched.empty()) {
    const auto& first = mismatched.front();
    line += "; " + std::to_string(mismatched.size()) + " with another shape (" + first.name + " " +
            shape_text(first.file_shape) + ", the model has " + shape_text(first.model_shape) +
            (mismatched.size() > 1 ? ", ..." : "") + ")";
  }
  if (!missing.empty())
    line += "; " + std::to_string(missing.size()) + " missing (" + missing.front() +
            (missing.size() > 1 ? ", ..." : "") + ")";
  if (!unexpected.empty())
    line += "; " + std::to_string(unexpected.size()) + " unknown (" + unexpected.front() +
            (unexpected.size() > 1 ? ", ..." : "") + ")";
  return line;
}

LoadReport load_state_dict(torch::nn::Module& module, const NamedTensors& tensors) {
  torch::NoGradGuard guard;
  std::map<std::string, torch::Tensor> given;
  for (const auto& [name, tensor] : tensors) given.emplace(name, tensor);
  LoadReport report;
  std::map<std::string, bool> known;
  for (auto& [name, target] : state_dict(module)) {
    known[name] = true;
    const auto found = given.find(name);
    if (found == given.end()) {
      report.missing.push_back(name);
    } else if (found->second.sizes() != target.sizes() || found->second.is_complex()) {
      report.mismatched.push_back({name, target.sizes().vec(), found->second.sizes().vec()});
    } else {
      target.copy_(found->second);
      ++report.loaded;
    }
  }
  for (const auto& [name, tensor] : tensors)
    if (!known.count(name)) report.unexpected.push_back(name);
  return report;
}

DetectionModel clone_model(DetectionModelImpl& model) {
  DetectionModel copy(model.graph());
  if (model.is_fused()) copy->fuse();
  const auto source = state_dict(model);
  const auto target = state_dict(*copy);
  TORCH_CHECK(source.size() == target.size(), "[clone_model] the model's tensors are not those of its configuration");
  const auto& first = source.front().second;
  copy->to(first.device());
  if (first.scalar_type() != target.front().second.scalar_type()) copy->to(first.scalar_type());
  const auto report = load_state_dict(*copy, source);
  TORCH_CHECK(report.complete(), "[clone_model] ", report.summary());
  auto originals = model.named_parameters();
  for (auto& item : copy->named_parameters()) item.value().set_requires_grad(originals[item.key()].requires_grad());
  copy->train(model.is_training());
  copy->set_auxiliary(model.auxiliary());
  return copy;
}

void initialize(DetectionModelImpl& model) {
  TORCH_CHECK(!model.is_fused(), "[initialize] the model is fused");
  torch::NoGradGuard guard;
  model.apply([](torch::nn::Module& module) {
    if (auto* conv = module.as<torch::nn::Conv2dImpl>()) conv->reset_parameters();
    else if (auto* bn = module.as<torch::nn::BatchNorm2dImpl>()) bn->reset_parameters();
  });
  model.head().apply([](torch::nn::Module& module) {
    if (auto* dfl = module.as<DFLImpl>()) dfl->freeze();
  });
  model.head().initialize_biases();
}

}  // namespace yolo9
