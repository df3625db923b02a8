// All of a model's state in a few flat buffers, the model's own tensors being views into them. The optimizer,
// the clip, the EMA, and the roll-back of a step then work on whole buffers, in place, without allocating.
#pragma once

#include <array>
#include <string>
#include <vector>

#include <torch/nn/module.h>
#include <torch/types.h>

namespace yolo9 {

// The three parameter groups, in optimizer order.
enum ParameterKind { kBias = 0, kWeight = 1, kNormWeight = 2 };

class ParameterStore {
 public:
  // Moves parameters and buffers of `model` into the store. Parameters that require a gradient go into the groups
  // (biases; convolution weights; BatchNorm weights), the others into `fixed()`. Four-dimensional weights are kept in
  // `format`: channels-last is what the convolutions read fastest. The model must not be moved to another device or
  // type, nor fused, afterwards. Two models of the same configuration and the same frozen layers have stores of the
  // same layout. An average that is never trained needs no gradients: they stay undefined, and half of its memory is
  // saved.
  explicit ParameterStore(torch::nn::Module& model, torch::MemoryFormat format = torch::MemoryFormat::ChannelsLast,
                          bool with_gradients = true);

  struct Group {
    std::vector<std::string> names;
    torch::Tensor values, gradients;  // flat float32 of equal length; gradients only if there are any
  };
  std::array<Group, 3>& groups() { return groups_; }
  const std::array<Group, 3>& groups() const { return groups_; }
  const torch::Tensor& fixed() const { return fixed_; }            // parameters without gradients
  const torch::Tensor& statistics() const { return statistics_; }  // floating buffers: BatchNorm's mean and variance
  const torch::Tensor& counters() const { return counters_; }      // integer buffers

  // Everything floating: groups, fixed, statistics. What an EMA averages.
  std::vector<torch::Tensor> floating_state() const;
  // What a forward pass in training mode changes.
  std::vector<torch::Tensor> forward_state() const { return {statistics_, counters_}; }

  void zero_gradients();
  // Copies every value from a store of the same layout.
  void copy_from(const ParameterStore& other);
  // Rounds parameters and floating buffers to half precision and back.
  void round_to_half();

 private:
  std::array<Group, 3> groups_;
  torch::Tensor fixed_, statistics_, counters_;
};

// Names of the parameters of `model` by group, frozen ones included, in module order.
std::array<std::vector<std::string>, 3> parameter_groups(const torch::nn::Module& model);

}  // namespace yolo9
