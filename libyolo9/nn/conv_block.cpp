#include <yolo9/nn/conv_block.h>

#include <ATen/autocast_mode.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/variable.h>

#include <yolo9/nn/recipe.h>

namespace yolo9 {

namespace {

using torch::autograd::Edge;
using torch::autograd::SavedVariable;
using torch::autograd::variable_list;

// Operations inside a function: neither recorded nor cast.
struct InsideFunction {
  c10::NoGradGuard no_grad;
  c10::impl::ExcludeDispatchKeyGuard no_autocast{c10::autocast_dispatch_keyset};
};

at::ScalarType compute_type(const torch::Tensor& x) {
  const auto device = x.device().type();
  // As autocast does: double precision is left alone.
  if (x.scalar_type() == at::kDouble || !at::autocast::is_autocast_enabled(device)) return x.scalar_type();
  return at::autocast::get_autocast_dtype(device);
}

// A convolution and what it needs for its backward pass, its input excepted.
class KeptConvolution {
 public:
  explicit KeptConvolution(torch::nn::Conv2dImpl& conv)
      : weight_(conv.weight, false),
        needs_gradient_(conv.weight.requires_grad()),
        stride_(conv.options.stride()->begin(), conv.options.stride()->end()),
        padding_(padding_of(conv)),
        dilation_(conv.options.dilation()->begin(), conv.options.dilation()->end()),
        groups_(conv.options.groups()) {}

  torch::Tensor forward(const torch::Tensor& input) const {
    const auto type = input.scalar_type();
    const auto weight = weight_.unpack().detach().to(type);
    return at::convolution(input, weight, {}, stride_, padding_, dilation_, false, {0, 0}, groups_);
  }

  struct Gradients {
    torch::Tensor x, weight;
  };
  Gradients backward(const torch::Tensor& grad, const torch::Tensor& input, bool need_x, bool need_weight) const {
    const auto weight = weight_.unpack().detach();
    auto [x, w, none] =
        at::convolution_backward(grad, input, weight.to(input.scalar_type()), std::nullopt, stride_, padding_,
                                 dilation_, false, {0, 0}, groups_, {need_x, need_weight, false});
    return {x, need_weight ? w.to(weight.scalar_type()) : w};
  }

  bool needs_gradient() const { return needs_gradient_; }
  void release() { weight_.reset_data(); }

 private:
  static std::vector<int64_t> padding_of(torch::nn::Conv2dImpl& conv) {
    const auto& padding = std::get<torch::ExpandingArray<2>>(conv.options.padding());
    return {padding->begin(), padding->end()};
  }

  SavedVariable weight_;
  bool needs_gradient_;
  std::vector<int64_t> stride_, padding_, dilation_;
  int64_t groups_;
};

// The convolutions' common input: kept if a weight's gradient needs its values, else by its shape.
class KeptInput {
 public:
  KeptInput() = default;
  // `input` is `x` in the type that the convolutions take.
  KeptInput(const torch::Tensor& x, const torch::Tensor& input, bool values)
      : values_(values),
        sizes_(x.sizes().vec()),
        options_(input.options().memory_format(input.suggest_memory_format())),
        type_(x.scalar_type()) {
    if (!values) return;
    auto recipe = RecipeNode::find(x);
    map_ = recipe ? KeptMap(x, std::move(recipe)) : KeptMap(input, nullptr);
  }
  torch::Tensor get() const { return values_ ? map_.get().detach().to(options_) : at::empty(sizes_, options_); }
  at::ScalarType type() const { return type_; }  // of x
  void release() { map_.release(); }

 private:
  bool values_ = false;
  KeptMap map_;
  std::vector<int64_t> sizes_;
  torch::TensorOptions options_;
  at::ScalarType type_ = at::kFloat;
};

// Edges and gradients in the order x, then weight, gamma and beta of each branch.
class ConvBlockNode : public RecipeNode {
 public:
  ConvBlockNode(KeptInput input, std::vector<KeptConvolution> convolutions, std::shared_ptr<const NormRecipe> norm)
      : input_(std::move(input)), convolutions_(std::move(convolutions)), norm_(std::move(norm)) {}

  std::string name() const override { return "ConvBlockBackward"; }

  void release_variables() override {
    RecipeNode::release_variables();
    input_.release();
    for (auto& convolution : convolutions_) convolution.release();
    norm_.reset();
  }

 protected:
  variable_list apply(variable_list&& grads) override {
    check_first_order();
    const InsideFunction inside;
    variable_list out(num_outputs());
    if (!grads.at(0).defined()) return out;
    TORCH_CHECK(norm_, "[conv_block] a second backward pass through a graph that was not retained");
    const bool need_x = task_should_compute_output(0);
    bool need_values = false;
    for (size_t k = 0; k < convolutions_.size(); ++k)
      need_values = need_values || task_should_compute_output(1 + 3 * k);
    auto norm = normalize_backward(norm_->branches(), norm_->silu(), grads[0], need_x || need_values);
    grads.clear();
    const auto input = need_x || need_values ? input_.get() : torch::Tensor();
    for (size_t k = 0; k < convolutions_.size(); ++k) {
      const size_t at = 1 + 3 * k;
      const bool need_weight = task_should_compute_output(at);
      if (task_should_compute_output(at + 1)) out[at + 1] = norm.gamma[k];
      if (task_should_compute_output(at + 2)) out[at + 2] = norm.beta[k];
      if (!need_x && !need_weight) continue;
      auto gradients = convolutions_[k].backward(norm.y[k], input, need_x, need_weight);
      norm.y[k].reset();
      out[at] = gradients.weight;
      if (need_x) out[0] = out[0].defined() ? out[0].add_(gradients.x) : gradients.x;
    }
    if (need_x) out[0] = out[0].to(input_.type());
    return out;
  }

 private:
  KeptInput input_;
  std::vector<KeptConvolution> convolutions_;
  std::shared_ptr<const NormRecipe> norm_;
};

bool is_plain(torch::nn::Conv2dImpl& conv) {
  return std::holds_alternative<torch::enumtype::kZeros>(conv.options.padding_mode()) &&
         std::holds_alternative<torch::ExpandingArray<2>>(conv.options.padding());
}

torch::autograd::edge_list edges_of(const std::vector<torch::Tensor>& inputs) {
  torch::autograd::edge_list edges;
  for (const auto& input : inputs) edges.push_back(torch::autograd::impl::gradient_edge(input));
  return edges;
}

bool records(const std::vector<torch::Tensor>& inputs) {
  return at::GradMode::is_enabled() &&
         std::any_of(inputs.begin(), inputs.end(), [](const torch::Tensor& input) { return input.requires_grad(); });
}

}  // namespace

bool conv_block_takes(const torch::Tensor& x, const std::vector<ConvNorm>& branches, const Activation& activation) {
  if (activation.kind != Activation::Kind::SiLU && activation.kind != Activation::Kind::Identity) return false;
  if (x.dim() != 4 || !x.is_floating_point() || branches.empty() || branches.size() > 2) return false;
  return std::all_of(branches.begin(), branches.end(), [](const ConvNorm& branch) {
    const auto& options = branch.bn.options;
    return branch.bn.is_training() && !branch.conv.bias.defined() && is_plain(branch.conv) && options.affine() &&
           options.track_running_stats() && options.momentum().has_value();
  });
}

torch::Tensor conv_block(const torch::Tensor& x, const std::vector<ConvNorm>& branches, const Activation& activation) {
  const bool silu = activation.kind == Activation::Kind::SiLU;
  std::vector<torch::Tensor> inputs{x};
  std::vector<KeptConvolution> convolutions;
  bool values = false;
  for (const auto& [conv, bn] : branches) {
    inputs.insert(inputs.end(), {conv.weight, bn.weight, bn.bias});
    convolutions.emplace_back(conv);
    values = values || conv.weight.requires_grad();
  }
  const bool recorded = records(inputs);
  torch::Tensor z;
  c10::intrusive_ptr<RecipeNode> node;
  std::shared_ptr<const NormRecipe> recipe;
  {
    const auto type = compute_type(x);
    const InsideFunction inside;
    const auto input = x.detach().to(type);
    std::vector<NormBranch> normalised;
    for (size_t k = 0; k < branches.size(); ++k)
      normalised.push_back(take_statistics(convolutions[k].forward(input), branches[k].bn));
    z = normalize(normalised, silu);
    if (!recorded) return z;
    std::vector<SavedNorm> saved(normalised.begin(), normalised.end());
    recipe = std::make_shared<NormRecipe>(std::move(saved), silu);
    const bool same = input.scalar_type() == x.scalar_type();
    node = c10::make_intrusive<ConvBlockNode>(KeptInput(x, same ? x : input, values), std::move(convolutions), recipe);
  }
  node->set_next_edges(edges_of(inputs));
  RecipeNode::attach(node, z, rebuilds_inputs() ? recipe : nullptr);
  return z;
}

}  // namespace yolo9
