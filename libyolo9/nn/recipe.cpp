#include <yolo9/nn/recipe.h>

#include <torch/csrc/autograd/functions/utils.h>

namespace yolo9 {

namespace {

thread_local bool rebuild = false;

}  // namespace

RebuildInputsScope::RebuildInputsScope(bool enabled) : before_(rebuild) { rebuild = enabled; }
RebuildInputsScope::~RebuildInputsScope() { rebuild = before_; }
bool rebuilds_inputs() { return rebuild; }

KeptMap::KeptMap(const torch::Tensor& x) : KeptMap(x, RecipeNode::find(x)) {}

KeptMap::KeptMap(const torch::Tensor& x, RecipePtr recipe)
    : recipe_(std::move(recipe)), sizes_(x.sizes().vec()), options_(x.options()) {
  options_ = options_.memory_format(x.suggest_memory_format());
  if (!recipe_) saved_ = torch::autograd::SavedVariable(x, /*is_output=*/false);
}

torch::Tensor KeptMap::get() const {
  if (!recipe_) return saved_.unpack();
  const auto out = at::empty(sizes_, options_);
  recipe_->write(out, 0);
  return out;
}

void KeptMap::release() {
  recipe_.reset();
  saved_.reset_data();
}

RecipePtr RecipeNode::find(const torch::Tensor& x) {
  if (!rebuild || !x.requires_grad()) return nullptr;
  const auto origin = x.grad_fn();
  const auto* node = dynamic_cast<const RecipeNode*>(origin.get());
  return node && node->version_ == x._version() ? node->recipe_ : nullptr;
}

void RecipeNode::attach(const c10::intrusive_ptr<RecipeNode>& node, const torch::Tensor& out, RecipePtr recipe) {
  torch::autograd::set_history(out, node);
  node->recipe_ = std::move(recipe);
  node->version_ = out._version();
}

void RecipeNode::check_first_order() const {
  TORCH_CHECK(!at::GradMode::is_enabled(), "[", name(), "] gradients of gradients are not supported");
}

std::vector<NormBranch> NormRecipe::branches() const {
  std::vector<NormBranch> unpacked;
  for (const auto& branch : branches_) unpacked.push_back(branch.unpack());
  return unpacked;
}

void NormRecipe::write(torch::Tensor out, int64_t first) const { normalize_again(branches(), silu_, first, out); }

}  // namespace yolo9
