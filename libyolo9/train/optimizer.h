// Optimizers over flat buffers. step() allocates no tensor memory: everything it needs exists from the start.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <torch/types.h>

namespace yolo9 {

struct ParameterGroup {
  torch::Tensor value, gradient;  // flat float32 of equal length, same device; may be empty
  double learning_rate = 0, weight_decay = 0;
};

enum class OptimizerKind {
  SGD,    // with Nesterov momentum; the decay is added to the gradient
  Adam,   // Kingma & Ba 2015, beta2 0.999; the decay is added to the gradient
  AdamW,  // Loshchilov & Hutter 2019, decoupled decay, with amsgrad (Reddi et al. 2018)
  LION,   // Chen et al. 2023, beta2 0.99, decoupled decay
};
// The names above; throws Error(Usage) otherwise.
OptimizerKind parse_optimizer(const std::string& name);

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // Applies the groups' gradients with their present learning rates.
  virtual void step() = 0;
  // Tensors by name for a checkpoint; they are the live ones.
  virtual std::vector<std::pair<std::string, torch::Tensor>> state() const = 0;
  // Copies back what state() gave; throws Error(Weights) if a tensor is missing or of another size.
  void load_state(const std::vector<std::pair<std::string, torch::Tensor>>& saved);

  std::vector<ParameterGroup>& groups() { return groups_; }
  // Whether warm-up moves the momentum: only SGD's; the first beta of the others is fixed.
  virtual bool has_momentum() const { return false; }
  // SGD's momentum, or the first beta.
  void set_momentum(double momentum) { momentum_ = momentum; }
  double momentum() const { return momentum_; }

 protected:
  Optimizer(std::vector<ParameterGroup> groups, double momentum);

  std::vector<ParameterGroup> groups_;
  double momentum_;
};

std::unique_ptr<Optimizer> make_optimizer(OptimizerKind kind, std::vector<ParameterGroup> groups, double momentum);

// Scales all gradients so that their joint L2 norm is at most max_norm: the factor is max_norm / (norm + 1e-6),
// never above 1. Returns the norm before, accumulated in double on the CPU and independent of the number of threads.
// `loss_scale`: what the loss was multiplied with; the gradients are divided by it first, and the norm is of the
// result. If the norm is not finite the gradients are left alone: the step must be given up.
// On the CPU no tensor memory is used. On a GPU the norm takes `scratch`, from make_norm_scratch; without it a few
// kilobytes are allocated.
double clip_gradients(std::vector<ParameterGroup>& groups, double max_norm, const torch::Tensor& scratch = {},
                      double loss_scale = 1);
torch::Tensor make_norm_scratch(const std::vector<ParameterGroup>& groups);

}  // namespace yolo9
