// The detection model: a graph of blocks read from a yaml configuration.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <torch/nn/module.h>
#include <torch/nn/modules/container/modulelist.h>

#include <yolo9/core/types.h>
#include <yolo9/nn/graph.h>
#include <yolo9/nn/heads.h>
#include <yolo9/nn/layer.h>

namespace yolo9 {

// One row of the layer table, as configured and as resolved.
struct LayerInfo {
  int64_t index = 0;
  std::vector<int64_t> from;  // as configured: -1 or absolute
  int64_t repeats = 1;
  std::string type;             // "Conv", "RepNCSPELAN4", ...
  std::string config_args;      // JSON text of the arguments as in the file
  std::string resolved_args;    // JSON text of the final constructor arguments with the input width
  int64_t parameters = 0;       // of the layer as it is now (fewer once fused)
  std::vector<int64_t> widths;  // output channels (several for CBLinear; of the inputs for a head)
  double stride = 1;            // picture pixels per output cell (of the first level for a head)
};

class DetectionModelImpl : public torch::nn::Module {
 public:
  // Reads a configuration, by path or by a bundled name such as "yolov9-t"; throws Error(Usage) with file and line
  // for an unknown module, a wrong reference, channel mismatch and the like.
  explicit DetectionModelImpl(const std::string& config, const ModelOptions& options = {});
  explicit DetectionModelImpl(Graph graph);

  // images: float [B,3,H,W] in 0..1, H and W multiples of the largest stride.
  HeadOutput forward(const torch::Tensor& images);

  // Folds BatchNorm into convolutions and RepConvN into one convolution, in place. Only for evaluation.
  void fuse();
  bool is_fused() const { return fused_; }
  bool is_dual() const { return head_->is_dual(); }
  int64_t classes() const { return graph_.classes; }
  int64_t reg_max() const { return kRegMax; }
  std::vector<double> strides() const { return graph_.strides; }
  // Predictions of one branch for a picture of this size.
  int64_t anchors(int64_t height, int64_t width) const;
  const std::vector<LayerInfo>& layers() const { return infos_; }
  const std::string& config_text() const { return graph_.text; }  // the yaml the model was built from, for checkpoints
  const Graph& graph() const { return graph_; }

  // Whether evaluation mode computes the auxiliary branch of a dual head (default yes). Without it, the layers that
  // only the auxiliary branch needs are skipped, and `aux` and `decoded_aux` stay empty. Training always computes it.
  void set_auxiliary(bool enabled) { auxiliary_ = enabled; }
  bool auxiliary() const { return auxiliary_; }

  // Called with each layer's output, the detection head excepted, as soon as it is there.
  using Observer = std::function<void(int64_t layer, const Maps& output)>;
  void set_observer(Observer observer) { observer_ = std::move(observer); }

  // Layers `first` to `last` (layers().size() - 1 is the head) that run as one function of maps.
  struct Segment {
    int64_t first = 0, last = 0;
  };
  // In training mode these segments (ascending, apart; the head by itself, branch by branch) go through `runner`, which
  // may call the function again later, to recompute what it did not keep. The model must outlive such calls. No
  // segments: everything runs directly.
  void set_segments(std::vector<Segment> segments, SegmentRunner runner);

  // Module of layer `index`, the head included.
  torch::nn::Module& layer_module(int64_t index) { return *model[static_cast<size_t>(index)]; }
  HeadImpl& head() { return *head_; }
  // Indices of the layers that the main branch depends on, ascending, without the head.
  std::vector<int64_t> main_layers() const;

  torch::nn::ModuleList model;

 private:
  using Outputs = std::vector<Maps>;
  const Maps& output_of(const Outputs& outputs, const Maps& picture, int64_t index) const {
    return index < 0 ? picture : outputs[static_cast<size_t>(index)];
  }
  void run_layer(size_t index, const Maps& picture, Outputs& outputs);
  HeadOutput run_head(const Maps& picture, Outputs& outputs, bool auxiliary);
  void run_segment(const Segment& segment, const Maps& picture, Outputs& outputs);

  void plan_execution();
  void count_parameters();

  Graph graph_;
  std::vector<LayerInfo> infos_;
  std::vector<std::shared_ptr<LayerImpl>> layers_;
  std::shared_ptr<HeadImpl> head_;
  // releases_[i]: outputs that nobody needs once layer i has run (layers_.size() for the head).
  std::vector<std::vector<int64_t>> releases_;
  std::vector<bool> needed_by_main_;
  bool fused_ = false;
  bool auxiliary_ = true;
  Observer observer_;
  std::vector<Segment> segments_;
  SegmentRunner segment_runner_;
};
TORCH_MODULE(DetectionModel);

// The model of a configuration given as text; `name` stands for the file in messages.
DetectionModel make_model(const std::string& config_text, const std::string& name, const ModelOptions& options = {});

}  // namespace yolo9
