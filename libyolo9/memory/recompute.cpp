#include <yolo9/memory/recompute.h>

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

namespace yolo9 {

namespace {

// Autocast as it was during the forward pass.
struct CastState {
  c10::DeviceType device = c10::DeviceType::CPU;
  bool enabled = false, cached = false;
  at::ScalarType type = at::kFloat;

  // The same without the cache of cast weights: a copy made without gradients must not serve a pass with them.
  CastState uncached() const { return {device, enabled, false, type}; }
  static CastState of(c10::DeviceType device) {
    return {device, at::autocast::is_autocast_enabled(device), at::autocast::is_autocast_cache_enabled(),
            at::autocast::get_autocast_dtype(device)};
  }
  void apply() const {
    at::autocast::set_autocast_enabled(device, enabled);
    at::autocast::set_autocast_dtype(device, type);
    at::autocast::set_autocast_cache_enabled(cached);
  }
};

class CastScope {
 public:
  explicit CastScope(const CastState& wanted) : before_(CastState::of(wanted.device)) { wanted.apply(); }
  ~CastScope() { before_.apply(); }
  CastScope(const CastScope&) = delete;
  CastScope& operator=(const CastScope&) = delete;

 private:
  CastState before_;
};

// The second call's changes of buffers and generators are undone when it ends, also by an exception.
class StateScope {
 public:
  StateScope(StepState* state, const at::Tensor& generator_state) : state_(state) {
    if (!state_) return;
    state_->save();
    state_->set_generator_state(generator_state);
  }
  ~StateScope() {
    if (state_) state_->restore();
  }
  StateScope(const StateScope&) = delete;
  StateScope& operator=(const StateScope&) = delete;

 private:
  StepState* state_;
};

struct Call final : torch::CustomClassHolder {
  TensorFunction run;
  std::shared_ptr<StepState> state;
  at::Tensor generator_state;
  CastState cast;
  std::vector<bool> needs_gradient;
};

class Recompute : public torch::autograd::Function<Recompute> {
 public:
  // `anchor` requires a gradient, so that the results do.
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* context, const at::Tensor& anchor,
                                                const c10::intrusive_ptr<Call>& call, at::TensorList inputs) {
    static_cast<void>(anchor);
    context->saved_data["call"] = c10::IValue::make_capsule(call);
    context->save_for_backward(inputs.vec());
    // Below autograd, views among the results are plain tensors to the node.
    const at::AutoDispatchBelowADInplaceOrView plain;
    const CastScope cast(call->cast.uncached());
    return call->run(inputs.vec());
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto call = c10::static_intrusive_pointer_cast<Call>(context->saved_data["call"].toCapsule());
    auto inputs = context->get_saved_variables();
    torch::autograd::variable_list results, wanted, given;
    // To the end: the pass below still checks that the buffers are those that this run has seen.
    const StateScope guarded(call->state.get(), call->generator_state);
    {
      const at::AutoGradMode enabled(true);
      for (size_t i = 0; i < inputs.size(); ++i)
        inputs[i] = inputs[i].detach().set_requires_grad(call->needs_gradient[i]);
      const CastScope cast(call->cast.uncached());
      results = call->run(inputs);
    }
    for (size_t i = 0; i < results.size(); ++i) {
      if (!gradients[i].defined() || !results[i].requires_grad()) continue;
      wanted.push_back(std::move(results[i]));
      given.push_back(std::move(gradients[i]));
    }
    results.clear();
    gradients.clear();
    torch::autograd::backward(wanted, given);
    torch::autograd::variable_list out(2);  // neither the anchor nor the call has use for one
    for (size_t i = 0; i < inputs.size(); ++i) out.push_back(inputs[i].grad());
    return out;
  }
};

}  // namespace

std::vector<torch::Tensor> recompute(TensorFunction run, const std::vector<torch::Tensor>& inputs,
                                     std::shared_ptr<StepState> state) {
  if (!at::GradMode::is_enabled()) return run(inputs);
  const auto call = c10::make_intrusive<Call>();
  call->run = std::move(run);
  if (state) call->generator_state = state->generator_state();
  call->state = std::move(state);
  call->cast = CastState::of(inputs.empty() ? c10::DeviceType::CPU : inputs.front().device().type());
  for (const auto& input : inputs) call->needs_gradient.push_back(input.requires_grad());
  static thread_local const at::Tensor anchor = at::zeros({}).set_requires_grad(true);
  return Recompute::apply(anchor, call, at::TensorList(inputs));  // a vector would count as no tensors
}

}  // namespace yolo9
