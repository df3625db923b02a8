#include <yolo9/train/optimizer.h>

#include <map>

#include <ATen/ATen.h>

#include <yolo9/core/error.h>

namespace yolo9 {
namespace {

using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;
using TensorList = std::vector<torch::Tensor>;

// Each group's tensors as the one-element lists that the fused kernels take, made once.
struct FusedGroup {
  TensorList value, gradient;
};

std::string key_of(const char* name, size_t group) { return std::string(name) + "." + std::to_string(group); }

class Sgd : public Optimizer {
 public:
  Sgd(std::vector<ParameterGroup> groups, double momentum) : Optimizer(std::move(groups), momentum) {
    for (const auto& group : groups_) {
      lists_.push_back({{group.value}, {group.gradient}});
      // A velocity of zero makes the first step like any other: dampening is zero.
      velocity_.push_back({at::zeros_like(group.value)});
    }
  }

  void step() override {
    const at::NoGradGuard no_grad;
    for (size_t i = 0; i < groups_.size(); ++i) {
      if (groups_[i].value.numel() == 0) continue;
      // The kernel wants no velocity where there is no momentum.
      at::_fused_sgd_(lists_[i].value, lists_[i].gradient, momentum_ == 0 ? none_ : velocity_[i],
                      groups_[i].weight_decay, momentum_, groups_[i].learning_rate, /*dampening=*/0.0,
                      /*nesterov=*/momentum_ != 0, /*maximize=*/false, /*is_first_step=*/false);
    }
  }

  NamedTensors state() const override {
    NamedTensors all;
    for (size_t i = 0; i < velocity_.size(); ++i) all.emplace_back(key_of("velocity", i), velocity_[i][0]);
    return all;
  }

  bool has_momentum() const override { return true; }

 private:
  std::vector<FusedGroup> lists_;
  std::vector<TensorList> velocity_;
  const TensorList none_;
};

class Adam : public Optimizer {
 public:
  Adam(std::vector<ParameterGroup> groups, double momentum, bool decoupled)
      : Optimizer(std::move(groups), momentum), decoupled_(decoupled) {
    for (const auto& group : groups_) {
      lists_.push_back({{group.value}, {group.gradient}});
      mean_.push_back({at::zeros_like(group.value)});
      square_.push_back({at::zeros_like(group.value)});
      largest_square_.push_back(decoupled ? TensorList{at::zeros_like(group.value)} : TensorList{});
      steps_.push_back({at::zeros({}, group.value.options())});
      one_.push_back(at::ones({}, group.value.options()));
    }
  }

  void step() override {
    const at::NoGradGuard no_grad;
    constexpr double kBeta2 = 0.999, kEps = 1e-8;
    const auto fused = decoupled_ ? fused_adamw : fused_adam;
    for (size_t i = 0; i < groups_.size(); ++i) {
      if (groups_[i].value.numel() == 0) continue;
      steps_[i][0].add_(one_[i]);
      fused(lists_[i].value, lists_[i].gradient, mean_[i], square_[i], largest_square_[i], steps_[i],
            groups_[i].learning_rate, momentum_, kBeta2, groups_[i].weight_decay, kEps);
    }
  }

  NamedTensors state() const override {
    NamedTensors all;
    for (size_t i = 0; i < groups_.size(); ++i) {
      all.emplace_back(key_of("mean", i), mean_[i][0]);
      all.emplace_back(key_of("square", i), square_[i][0]);
      if (decoupled_) all.emplace_back(key_of("largest_square", i), largest_square_[i][0]);
      all.emplace_back(key_of("steps", i), steps_[i][0]);
    }
    return all;
  }

 private:
  static void fused_adam(at::TensorList value, at::TensorList gradient, at::TensorList mean, at::TensorList square,
                         at::TensorList largest, at::TensorList steps, double rate, double beta1, double beta2,
                         double decay, double eps) {
    at::_fused_adam_(value, gradient, mean, square, largest, steps, rate, beta1, beta2, decay, eps,
                     /*amsgrad=*/false, /*maximize=*/false);
  }
  static void fused_adamw(at::TensorList value, at::TensorList gradient, at::TensorList mean, at::TensorList square,
                          at::TensorList largest, at::TensorList steps, double rate, double beta1, double beta2,
                          double decay, double eps) {
    at::_fused_adamw_(value, gradient, mean, square, largest, steps, rate, beta1, beta2, decay, eps,
                      /*amsgrad=*/true, /*maximize=*/false);
  }

  const bool decoupled_;
  std::vector<FusedGroup> lists_;
  std::vector<TensorList> mean_, square_, largest_square_, steps_;  // steps: float scalars, as the kernels count
  std::vector<torch::Tensor> one_;
};

class Lion : public Optimizer {
 public:
  Lion(std::vector<ParameterGroup> groups, double momentum) : Optimizer(std::move(groups), momentum) {
    for (const auto& group : groups_) {
      mean_.push_back(at::zeros_like(group.value));
      update_.push_back(at::empty_like(group.value));
    }
  }

  void step() override {
    const at::NoGradGuard no_grad;
    constexpr double kBeta2 = 0.99;
    for (size_t i = 0; i < groups_.size(); ++i) {
      auto& group = groups_[i];
      if (group.value.numel() == 0) continue;
      at::lerp_out(update_[i], mean_[i], group.gradient, 1 - momentum_).sign_();
      if (group.weight_decay != 0) group.value.add_(group.value, -group.learning_rate * group.weight_decay);
      group.value.add_(update_[i], -group.learning_rate);
      mean_[i].lerp_(group.gradient, 1 - kBeta2);
    }
  }

  NamedTensors state() const override {
    NamedTensors all;
    for (size_t i = 0; i < mean_.size(); ++i) all.emplace_back(key_of("mean", i), mean_[i]);
    return all;
  }

 private:
  std::vector<torch::Tensor> mean_, update_;
};

}  // namespace

OptimizerKind parse_optimizer(const std::string& name) {
  static const std::map<std::string, OptimizerKind> kinds = {{"SGD", OptimizerKind::SGD},
                                                             {"Adam", OptimizerKind::Adam},
                                                             {"AdamW", OptimizerKind::AdamW},
                                                             {"LION", OptimizerKind::LION}};
  if (const auto found = kinds.find(name); found != kinds.end()) return found->second;
  throw Error(ErrorKind::Usage, "unknown optimizer \"" + name + "\"", "", "use SGD, Adam, AdamW or LION");
}

Optimizer::Optimizer(std::vector<ParameterGroup> groups, double momentum)
    : groups_(std::move(groups)), momentum_(momentum) {
  for (const auto& group : groups_)
    TORCH_CHECK(group.value.dim() == 1 && group.value.sizes() == group.gradient.sizes() &&
                    group.value.scalar_type() == at::kFloat && group.gradient.scalar_type() == at::kFloat,
                "[Optimizer] values and gradients must be flat float buffers of equal length");
}

void Optimizer::load_state(const NamedTensors& saved) {
  const at::NoGradGuard no_grad;
  const std::map<std::string, torch::Tensor> by_name(saved.begin(), saved.end());
  const auto live = state();
  for (const auto& [name, tensor] : live) {
    const auto found = by_name.find(name);
    if (found == by_name.end() || found->second.sizes() != tensor.sizes())
      throw Error(ErrorKind::Weights, "the optimizer state \"" + name + "\" is missing or of another size", "",
                  "resume with the same model, optimizer and frozen layers, or start again from the weights");
  }
  for (const auto& [name, tensor] : live) tensor.copy_(by_name.at(name));
}

std::unique_ptr<Optimizer> make_optimizer(OptimizerKind kind, std::vector<ParameterGroup> groups, double momentum) {
  switch (kind) {
    case OptimizerKind::SGD: return std::make_unique<Sgd>(std::move(groups), momentum);
    case OptimizerKind::Adam: return std::make_unique<Adam>(std::move(groups), momentum, false);
    case OptimizerKind::AdamW: return std::make_unique<Adam>(std::move(groups), momentum, true);
    case OptimizerKind::LION: return std::make_unique<Lion>(std::move(groups), momentum);
  }
  TORCH_CHECK(false, "[make_optimizer] unknown kind");
}

}  // namespace yolo9
