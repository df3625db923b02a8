#include <yolo9/train/parameter_store.h>

#include <c10/core/GradMode.h>
#include <torch/nn/modules/batchnorm.h>

namespace yolo9 {

namespace {

struct Named {
  std::string name;
  torch::Tensor tensor;
};

// Views of `flat` at `offset` with the tensor's shape; 4-D weights get the strides of `format`.
torch::Tensor view_into(const torch::Tensor& flat, int64_t offset, const torch::Tensor& like,
                        torch::MemoryFormat format) {
  const auto piece = flat.narrow(0, offset, like.numel());
  if (like.dim() != 4 || format != torch::MemoryFormat::ChannelsLast) return piece.view(like.sizes());
  return piece.view({like.size(0), like.size(2), like.size(3), like.size(1)}).permute({0, 3, 1, 2});
}

torch::Tensor pack(const std::vector<Named>& items, torch::ScalarType type, torch::Device device,
                   torch::MemoryFormat format) {
  int64_t total = 0;
  for (const auto& item : items) total += item.tensor.numel();
  auto flat = torch::empty({total}, torch::TensorOptions().dtype(type).device(device));
  int64_t offset = 0;
  for (const auto& item : items) {
    auto view = view_into(flat, offset, item.tensor, format);
    view.copy_(item.tensor.detach());
    torch::Tensor live = item.tensor;
    live.set_data(view);
    offset += view.numel();
  }
  return flat;
}

void attach_gradients(const std::vector<Named>& items, const torch::Tensor& flat, torch::MemoryFormat format) {
  int64_t offset = 0;
  for (const auto& item : items) {
    torch::Tensor live = item.tensor;
    live.mutable_grad() = view_into(flat, offset, live, format);
    offset += live.numel();
  }
}

template <typename Visitor>
void visit_parameters(const torch::nn::Module& model, Visitor&& visit) {
  for (const auto& module : model.named_modules("", /*include_self=*/true)) {
    const bool norm = dynamic_cast<const torch::nn::BatchNorm2dImpl*>(module.value().get()) != nullptr;
    for (const auto& parameter : module.value()->named_parameters(/*recurse=*/false)) {
      const std::string name = module.key().empty() ? parameter.key() : module.key() + "." + parameter.key();
      const int kind = parameter.key() == "bias" ? kBias : norm ? kNormWeight : kWeight;
      visit(kind, name, parameter.value());
    }
  }
}

}  // namespace

std::array<std::vector<std::string>, 3> parameter_groups(const torch::nn::Module& model) {
  std::array<std::vector<std::string>, 3> names;
  visit_parameters(model, [&](int kind, const std::string& name, const torch::Tensor&) {
    names[static_cast<size_t>(kind)].push_back(name);
  });
  return names;
}

ParameterStore::ParameterStore(torch::nn::Module& model, torch::MemoryFormat format, bool with_gradients) {
  c10::NoGradGuard no_grad;
  std::array<std::vector<Named>, 3> trained;
  std::vector<Named> fixed, statistics, counters;
  visit_parameters(model, [&](int kind, const std::string& name, const torch::Tensor& tensor) {
    TORCH_CHECK(tensor.scalar_type() == torch::kFloat32, "[ParameterStore] ", name, " is not float32");
    if (tensor.requires_grad())
      trained[static_cast<size_t>(kind)].push_back({name, tensor});
    else
      fixed.push_back({name, tensor});
  });
  for (const auto& buffer : model.named_buffers())
    (buffer.value().is_floating_point() ? statistics : counters).push_back({buffer.key(), buffer.value()});

  torch::Device device(torch::kCPU);
  for (const auto& parameter : model.parameters()) device = parameter.device();
  for (size_t kind = 0; kind < 3; ++kind) {
    Group& group = groups_[kind];
    for (const auto& item : trained[kind]) group.names.push_back(item.name);
    group.values = pack(trained[kind], torch::kFloat32, device, format);
    if (!with_gradients) continue;
    group.gradients = torch::zeros_like(group.values);
    attach_gradients(trained[kind], group.gradients, format);
  }
  fixed_ = pack(fixed, torch::kFloat32, device, format);
  statistics_ = pack(statistics, torch::kFloat32, device, format);
  counters_ = pack(counters, torch::kInt64, device, format);
}

std::vector<torch::Tensor> ParameterStore::floating_state() const {
  return {groups_[0].values, groups_[1].values, groups_[2].values, fixed_, statistics_};
}

void ParameterStore::zero_gradients() {
  for (auto& group : groups_)
    if (group.gradients.defined()) group.gradients.zero_();
}

void ParameterStore::copy_from(const ParameterStore& other) {
  c10::NoGradGuard no_grad;
  const auto from = other.floating_state();
  auto to = floating_state();
  for (size_t i = 0; i < to.size(); ++i) to[i].copy_(from[i]);
  counters_.copy_(other.counters_);
}

void ParameterStore::round_to_half() {
  c10::NoGradGuard no_grad;
  for (auto& tensor : floating_state()) tensor.copy_(tensor.to(torch::kHalf));
}

}  // namespace yolo9
