// A model configuration, read and checked: the `[from, repeats, module, args]` lists become layers whose sources,
// widths and constructor arguments are known before anything is built.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <torch/nn/module.h>

#include <yolo9/nn/activation.h>

namespace yolo9 {

struct ModelOptions {
  int64_t classes = 0;  // 0: as the configuration says
};

// Limits that no sensible model meets; beyond them a configuration is refused instead of exhausting memory.
inline constexpr int64_t kMaxLayers = 1000;
inline constexpr int64_t kMaxWidth = 8192;
inline constexpr int64_t kMaxRepeats = 100;
inline constexpr int64_t kMaxClasses = 10000;
inline constexpr double kMaxWeights = 2e9;

// The square picture on which map sizes are followed through the graph, to find strides and sizes that do not meet.
inline constexpr int64_t kProbeSize = 256;

struct GraphLayer {
  int64_t index = 0;
  std::vector<int64_t> from;     // as configured: -1 or absolute
  std::vector<int64_t> sources;  // absolute; -1 is the image
  int64_t configured_repeats = 1;  // as in the file
  int64_t repeats = 1;           // after the depth multiple
  std::string type;
  std::string config_args;       // JSON text of the arguments as in the file: [16, 3, 2]
  std::string resolved_args;     // JSON text of the constructor arguments: [3, 16, 3, 2]
  std::string place;             // file:line
  bool in_head = false;          // listed under `head`, not `backbone`
  std::vector<int64_t> widths;   // output channels (several for CBLinear; of the inputs for a detection head)
  int64_t size = kProbeSize;     // height of the output on the probe picture (of the first input for a head)
  bool several = false;          // the output is a list of maps, for CBFuse only
  double weights = 0;            // convolution weights, for the limit
  std::function<std::shared_ptr<torch::nn::Module>()> make;  // a LayerImpl, or a HeadImpl for the last layer
};

struct Graph {
  std::string name;  // file, for messages
  std::string text;  // the yaml itself
  int64_t classes = 0;
  double depth_multiple = 1, width_multiple = 1;
  int64_t anchors = 0;          // only for the rule that leaves widths equal to anchors * (nc + 5) unscaled; 0: no rule
  std::string activation_name;  // as in the file; empty: SiLU
  Activation activation;
  std::vector<GraphLayer> layers;  // the last one is the detection head
  std::vector<double> strides;     // per level

  // Layers whose output must be kept until a later layer reads it: every source not written as -1, sorted, repeated
  // as often as it is used.
  std::vector<int64_t> saved() const;
};

// Throws Error(Usage) with file:line for anything that cannot become a model.
Graph parse_graph(const std::string& text, const std::string& name, const ModelOptions& options = {});
Graph read_graph(const std::string& path, const ModelOptions& options = {});

// A configuration's file for what a user typed: the path itself, with ".yaml" added, in ./models, or in the models
// folder of the installation. Throws Error(Usage) that suggests the nearest bundled one.
std::string find_config(const std::string& name);

}  // namespace yolo9
