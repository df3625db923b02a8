// Batch normalisation in training and the activation after it, in the form the fused convolution block needs: what
// is computed element by element can be had again from the convolution's output.
#pragma once

#include <memory>
#include <vector>

#include <torch/csrc/autograd/saved_variable.h>
#include <torch/nn/modules/batchnorm.h>

#include <yolo9/nn/norm_kernels.h>

namespace yolo9 {

// A branch as the backward pass finds it: gamma and beta are parameters, checked for changes in between.
struct SavedNorm {
  SavedNorm(const NormBranch& branch)
      : y(branch.y),
        mean(branch.mean),
        deviation(branch.deviation),
        gamma(branch.gamma, false),
        beta(branch.beta, false) {}
  NormBranch unpack() const { return {y, mean, deviation, gamma.unpack().detach(), beta.unpack().detach()}; }

  torch::Tensor y, mean, deviation;
  torch::autograd::SavedVariable gamma, beta;
};

// Statistics of y over batch and space; updates the module's running statistics and counter as its own forward does.
// Nothing is changed if an allocation fails.
NormBranch take_statistics(const torch::Tensor& y, torch::nn::BatchNorm2dImpl& bn);

// activation(sum of the normalised branches), of the type and layout of the first y. Kernels of our own where they
// take the tensors, else LibTorch operations.
torch::Tensor normalize(const std::vector<NormBranch>& branches, bool silu);
// The same, channels [first, first + out.size(1)), into `out`: bit for bit what `normalize` returned.
void normalize_again(const std::vector<NormBranch>& branches, bool silu, int64_t first, torch::Tensor& out);

struct NormBackward {
  std::vector<torch::Tensor> y, gamma, beta;  // gradients, per branch
};
// Which y need a gradient is said by `need_y`; others come out undefined.
NormBackward normalize_backward(const std::vector<NormBranch>& branches, bool silu, const torch::Tensor& grad,
                                bool need_y);

// For tests: LibTorch operations only, as on devices for which there are no kernels.
class CompositeNormScope {
 public:
  CompositeNormScope();
  ~CompositeNormScope();
  CompositeNormScope(const CompositeNormScope&) = delete;
  CompositeNormScope& operator=(const CompositeNormScope&) = delete;

 private:
  bool before_;
};

}  // namespace yolo9
