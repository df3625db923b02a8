// Gradient checkpointing (Chen et al. 2016): a function's intermediate results are dropped after the forward pass and
// made again in the backward pass. Bit-exact: state that a forward pass changes (BatchNorm's running statistics) is
// changed once, random numbers and autocast are as they were, and gradients reach parameters as they would have.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <torch/types.h>

#include <yolo9/memory/step_state.h>

namespace yolo9 {

using TensorFunction = std::function<std::vector<torch::Tensor>(const std::vector<torch::Tensor>&)>;

// `run` maps floating tensors to floating tensors, and is called again with equal ones while gradients are computed;
// what it uses must live until then. It must not change its inputs. The results require gradients whether or not the
// inputs do (parameters inside `run` count). `state`: the buffers that `run` changes, guarded in the second call; its
// device's generator is replayed. May be null for functions without buffers and random numbers.
std::vector<torch::Tensor> recompute(TensorFunction run, const std::vector<torch::Tensor>& inputs,
                                     std::shared_ptr<StepState> state = nullptr);

}  // namespace yolo9
