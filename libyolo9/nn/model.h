// The detection model: a graph of blocks read from a yaml configuration.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <torch/nn/module.h>

#include <yolo9/core/types.h>

namespace yolo9 {

// One row of the layer table, as configured and as resolved.
struct LayerInfo {
  int64_t index = 0;
  std::vector<int64_t> from;   // as configured: -1 or absolute
  int64_t repeats = 1;
  std::string type;            // "Conv", "RepNCSPELAN4", ...
  std::string config_args;     // as in the file, for display
  std::string resolved_args;   // final constructor arguments with the input width, for display
  int64_t parameters = 0;
  std::vector<int64_t> widths; // output channels (several for CBLinear and heads)
};

struct ModelOptions {
  int64_t classes = 0;  // 0: as the configuration says
};

class DetectionModelImpl : public torch::nn::Module {
 public:
  // Reads the configuration; throws Error(Usage) with file and line for an unknown module, a wrong reference,
  // channel mismatch and the like.
  explicit DetectionModelImpl(const std::string& config_path, const ModelOptions& options = {});

  // images: float [B,3,H,W] in 0..1, H and W multiples of 32 (max stride).
  HeadOutput forward(const torch::Tensor& images);

  // Folds BatchNorm into convolutions and RepConvN into one convolution, in place. Only for evaluation.
  void fuse();
  bool is_fused() const;
  bool is_dual() const;
  int64_t classes() const;
  int64_t reg_max() const;
  std::vector<double> strides() const;
  const std::vector<LayerInfo>& layers() const;
  const std::string& config_text() const;  // the yaml the model was built from, for checkpoints
};
TORCH_MODULE(DetectionModel);

}  // namespace yolo9
