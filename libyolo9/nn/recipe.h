// How to have a convolution's input again in the backward pass without keeping it: most inputs are cheap element-wise
// functions of convolution outputs, which batch normalisation keeps anyway.
#pragma once

#include <memory>
#include <vector>

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/types.h>

#include <yolo9/nn/norm.h>

namespace yolo9 {

// While one lives on this thread, forward passes keep recipes instead of tensors where that saves memory. Backward
// passes do as their forward passes did; the results are the same, bit for bit.
class RebuildInputsScope {
 public:
  explicit RebuildInputsScope(bool enabled = true);
  ~RebuildInputsScope();
  RebuildInputsScope(const RebuildInputsScope&) = delete;
  RebuildInputsScope& operator=(const RebuildInputsScope&) = delete;

 private:
  bool before_;
};
bool rebuilds_inputs();

// What is needed to write a map [B,C,H,W], or a range of its channels, a second time with the same bits.
class Recipe {
 public:
  virtual ~Recipe() = default;
  // Channels [first, first + out.size(1)) of the map.
  virtual void write(torch::Tensor out, int64_t first) const = 0;
};
using RecipePtr = std::shared_ptr<const Recipe>;

// A map that a backward pass needs: the tensor itself, or its recipe. Without gradients (GradMode) `get` may be
// called any number of times until `release`.
class KeptMap {
 public:
  KeptMap() = default;
  // Keeps the recipe if rebuild is on and `x` is the untouched output of a function that has one.
  explicit KeptMap(const torch::Tensor& x);
  // Keeps this recipe.
  KeptMap(const torch::Tensor& x, RecipePtr recipe);
  torch::Tensor get() const;
  void release();
  bool is_rebuilt() const { return recipe_ != nullptr; }

 private:
  torch::autograd::SavedVariable saved_;
  RecipePtr recipe_;
  std::vector<int64_t> sizes_;
  torch::TensorOptions options_;
};

// A function with one output, whose recipe the output's readers can find.
class RecipeNode : public torch::autograd::Node {
 public:
  // The recipe of `x` if it is known and `x` has not been changed since; null otherwise.
  static RecipePtr find(const torch::Tensor& x);
  // Makes `node` the origin of `out`; the recipe may be null.
  static void attach(const c10::intrusive_ptr<RecipeNode>& node, const torch::Tensor& out, RecipePtr recipe);
  void release_variables() override { recipe_.reset(); }

 protected:
  // Gradients of gradients are not supported: throws if they are asked for.
  void check_first_order() const;

 private:
  RecipePtr recipe_;
  uint32_t version_ = 0;
};

// The output of normalisation and activation.
class NormRecipe : public Recipe {
 public:
  NormRecipe(std::vector<SavedNorm> branches, bool silu) : branches_(std::move(branches)), silu_(silu) {}
  void write(torch::Tensor out, int64_t first) const override;
  std::vector<NormBranch> branches() const;
  bool silu() const { return silu_; }

 private:
  std::vector<SavedNorm> branches_;
  bool silu_;
};

}  // namespace yolo9
