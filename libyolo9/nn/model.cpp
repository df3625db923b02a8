#include <yolo9/nn/model.h>

#include <set>

#include <yolo9/core/error.h>
#include <yolo9/nn/conv.h>

namespace yolo9 {

DetectionModelImpl::DetectionModelImpl(const std::string& config, const ModelOptions& options)
    : DetectionModelImpl(read_graph(find_config(config), options)) {}

DetectionModelImpl::DetectionModelImpl(Graph graph) : graph_(std::move(graph)) {
  register_module("model", model);
  for (const auto& layer : graph_.layers) {
    auto module = layer.make();
    model->push_back(module);
    if (auto block = std::dynamic_pointer_cast<LayerImpl>(module))
      layers_.push_back(block);
    else
      head_ = std::dynamic_pointer_cast<HeadImpl>(module);
    LayerInfo info;
    info.index = layer.index;
    info.from = layer.from;
    info.repeats = layer.repeats;
    info.type = layer.type;
    info.config_args = layer.config_args;
    info.resolved_args = layer.resolved_args;
    info.widths = layer.widths;
    info.stride = static_cast<double>(kProbeSize) / static_cast<double>(layer.size);
    infos_.push_back(info);
  }
  TORCH_CHECK(head_ && layers_.size() + 1 == graph_.layers.size(), "[model] a graph ends with its only head");
  plan_execution();
  count_parameters();
}

void DetectionModelImpl::plan_execution() {
  const size_t count = graph_.layers.size();
  releases_.assign(count, {});
  std::vector<int64_t> last_reader(count, -1);
  for (const auto& layer : graph_.layers)
    for (const int64_t source : layer.sources)
      if (source >= 0) last_reader[static_cast<size_t>(source)] = layer.index;
  for (size_t i = 0; i + 1 < count; ++i) {
    // A layer that nobody reads is released by itself.
    const int64_t reader = last_reader[i] < 0 ? static_cast<int64_t>(i) : last_reader[i];
    releases_[static_cast<size_t>(reader)].push_back(static_cast<int64_t>(i));
  }
  needed_by_main_.assign(count, false);
  const auto& head = graph_.layers.back();
  const size_t first = head_->is_dual() ? head.sources.size() / 2 : 0;
  for (size_t i = first; i < head.sources.size(); ++i)
    if (head.sources[i] >= 0) needed_by_main_[static_cast<size_t>(head.sources[i])] = true;
  for (size_t i = count - 1; i-- > 0;) {
    if (!needed_by_main_[i]) continue;
    for (const int64_t source : graph_.layers[i].sources)
      if (source >= 0) needed_by_main_[static_cast<size_t>(source)] = true;
  }
}

int64_t DetectionModelImpl::anchors(int64_t height, int64_t width) const {
  const auto cells = [](int64_t side, double stride) {
    return static_cast<int64_t>(static_cast<double>(side) / stride);
  };
  int64_t count = 0;
  for (const double stride : graph_.strides) count += cells(height, stride) * cells(width, stride);
  return count;
}

std::vector<int64_t> DetectionModelImpl::main_layers() const {
  std::vector<int64_t> indices;
  for (size_t i = 0; i < layers_.size(); ++i)
    if (needed_by_main_[i]) indices.push_back(static_cast<int64_t>(i));
  return indices;
}

void DetectionModelImpl::count_parameters() {
  for (auto& info : infos_) {
    info.parameters = 0;
    for (const auto& parameter : layer_module(info.index).parameters()) info.parameters += parameter.numel();
  }
}

HeadOutput DetectionModelImpl::forward(const torch::Tensor& images) {
  TORCH_CHECK(images.dim() == 4 && images.size(1) == 3, "[forward] expected pictures [B,3,H,W], got ", images.sizes());
  TORCH_CHECK(images.is_floating_point(), "[forward] expected floating-point pictures in 0..1, got ", images.dtype());
  int64_t largest = 1;
  for (const double stride : graph_.strides) largest = std::max(largest, static_cast<int64_t>(stride));
  TORCH_CHECK(images.size(2) % largest == 0 && images.size(3) % largest == 0, "[forward] height and width must be ",
              "multiples of ", largest, ", got ", images.size(2), " x ", images.size(3));
  const bool auxiliary = auxiliary_ || is_training();
  const Maps picture{images};
  Outputs outputs(layers_.size());
  HeadOutput head;
  auto segment = is_training() ? segments_.begin() : segments_.end();
  for (size_t i = 0; i <= layers_.size(); ++i) {
    if (segment != segments_.end() && static_cast<int64_t>(i) == segment->first) {
      run_segment(*segment, picture, outputs);
      i = static_cast<size_t>(segment->last);
      ++segment;
    } else if (i < layers_.size()) {
      if (auxiliary || needed_by_main_[i]) run_layer(i, picture, outputs);
      for (const int64_t index : releases_[i]) outputs[static_cast<size_t>(index)].clear();
    } else {
      head = run_head(picture, outputs, auxiliary);
    }
  }
  return head;
}

void DetectionModelImpl::run_layer(size_t index, const Maps& picture, Outputs& outputs) {
  std::vector<const Maps*> sources;
  for (const int64_t source : graph_.layers[index].sources) sources.push_back(&output_of(outputs, picture, source));
  outputs[index] = layers_[index]->run(sources);
  if (observer_) observer_(static_cast<int64_t>(index), outputs[index]);
}

HeadOutput DetectionModelImpl::run_head(const Maps& picture, Outputs& outputs, bool auxiliary) {
  std::vector<torch::Tensor> maps;
  for (const int64_t source : graph_.layers.back().sources) {
    const auto& output = output_of(outputs, picture, source);
    maps.push_back(output.empty() ? torch::Tensor() : output[0]);
  }
  outputs.clear();
  return head_->forward(maps, auxiliary);
}

// The segment as a function of the maps that it reads from outside, giving those that are read behind it.
void DetectionModelImpl::run_segment(const Segment& segment, const Maps& picture, Outputs& outputs) {
  const auto first = static_cast<size_t>(segment.first), last = static_cast<size_t>(segment.last);
  std::set<int64_t> sources, results;
  for (size_t i = first; i <= last; ++i)
    for (const int64_t source : graph_.layers[i].sources)
      if (source < segment.first) sources.insert(source);
  for (size_t i = last + 1; i < graph_.layers.size(); ++i)
    for (const int64_t source : graph_.layers[i].sources)
      if (source >= segment.first && source <= segment.last) results.insert(source);

  std::vector<torch::Tensor> inputs;
  std::vector<std::pair<int64_t, size_t>> input_counts;  // layer, number of its maps
  for (const int64_t source : sources) {
    const Maps& maps = output_of(outputs, picture, source);
    input_counts.emplace_back(source, maps.size());
    inputs.insert(inputs.end(), maps.begin(), maps.end());
  }
  // Written by the first call only; the number of maps does not change between calls.
  const auto result_counts = std::make_shared<std::vector<size_t>>();
  const auto run = [this, first, last, input_counts, results, result_counts](const std::vector<torch::Tensor>& maps) {
    Maps outer_picture;
    Outputs inner(layers_.size());
    auto next = maps.begin();
    for (const auto& [layer, count] : input_counts) {
      (layer < 0 ? outer_picture : inner[static_cast<size_t>(layer)]).assign(next, next + static_cast<int64_t>(count));
      next += static_cast<int64_t>(count);
    }
    for (size_t i = first; i <= last; ++i) {
      run_layer(i, outer_picture, inner);
      for (const int64_t index : releases_[i]) inner[static_cast<size_t>(index)].clear();
    }
    std::vector<torch::Tensor> flat;
    result_counts->clear();
    for (const int64_t layer : results) {
      const Maps& given = inner[static_cast<size_t>(layer)];
      result_counts->push_back(given.size());
      flat.insert(flat.end(), given.begin(), given.end());
    }
    return flat;
  };
  for (size_t i = first; i <= last; ++i)
    for (const int64_t index : releases_[i])
      if (index < segment.first) outputs[static_cast<size_t>(index)].clear();

  const auto flat = segment_runner_(run, std::move(inputs));
  auto next = flat.begin();
  size_t position = 0;
  for (const int64_t layer : results) {
    const auto count = static_cast<int64_t>(result_counts->at(position++));
    outputs[static_cast<size_t>(layer)].assign(next, next + count);
    next += count;
  }
}

void DetectionModelImpl::set_segments(std::vector<Segment> segments, SegmentRunner runner) {
  const auto head = static_cast<int64_t>(layers_.size());
  int64_t behind = -1;
  for (const auto& segment : segments) {
    TORCH_CHECK(segment.first > behind && segment.last >= segment.first && segment.last <= head,
                "[set_segments] segments must be ascending, apart and inside the model");
    TORCH_CHECK(segment.last < head || segment.first == head, "[set_segments] the head is a segment by itself");
    behind = segment.last;
  }
  TORCH_CHECK(segments.empty() || runner, "[set_segments] no runner");
  const bool with_head = !segments.empty() && segments.back().last == head;
  head_->set_runner(with_head ? runner : nullptr);
  if (with_head) segments.pop_back();
  segments_ = std::move(segments);
  segment_runner_ = std::move(runner);
}

void DetectionModelImpl::fuse() {
  if (fused_) return;
  eval();
  fuse_convolutions(*this);
  fused_ = true;
  count_parameters();
}

DetectionModel make_model(const std::string& config_text, const std::string& name, const ModelOptions& options) {
  return DetectionModel(parse_graph(config_text, name, options));
}

}  // namespace yolo9
