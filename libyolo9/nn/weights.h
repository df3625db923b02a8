// Named tensors of a model: the official order of names, loading of what fits, copying, first values.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <yolo9/nn/model.h>

namespace yolo9 {

using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;

// Parameters and buffers, module by module (own parameters, own buffers, then children), as Python's state_dict lists
// them, the frozen DFL weights included. The tensors share memory with the module; they carry no gradient history.
NamedTensors state_dict(const torch::nn::Module& module);

struct LoadReport {
  struct Mismatch {
    std::string name;
    std::vector<int64_t> model_shape, file_shape;
  };
  int64_t loaded = 0;
  std::vector<std::string> missing;     // in the model only: left as they were
  std::vector<std::string> unexpected;  // given only: ignored
  std::vector<Mismatch> mismatched;     // other shapes: left as they were
  bool complete() const { return missing.empty() && unexpected.empty() && mismatched.empty(); }
  // One line: "loaded 100 of 106 tensors; 6 with another shape (model.22.cv3.0.2.weight [3,80,1,1] against ...)".
  std::string summary() const;
};

// Copies every tensor that fits by name and shape, converted to the model's type (half precision is widened) and
// device. Throws nothing for what does not fit: the report says it. Names given twice: the first one counts.
LoadReport load_state_dict(torch::nn::Module& module, const NamedTensors& tensors);

// An independent model with the same values, precision, device, mode and fused state.
DetectionModel clone_model(DetectionModelImpl& model);

// First values: convolution weights and biases uniform in +-1/sqrt(fan_in), BatchNorm 1 and 0 with fresh statistics,
// the head's last biases as HeadImpl::initialize_biases says. Draws from the default generator. Not for fused models.
void initialize(DetectionModelImpl& model);

}  // namespace yolo9
