#include <yolo9/nn/deploy.h>

#include <sstream>

#include <yolo9/core/yaml.h>
#include <yolo9/nn/weights.h>

namespace yolo9 {

namespace {

// A plain number that yaml reads back exactly.
std::string number_text(double value) {
  std::ostringstream out;
  out.precision(17);
  out << value;
  return out.str();
}

// Whether layer 0 is a Silence that the kept layers need only as the picture of layer 1.
bool drops_silence(const Graph& graph, const std::vector<int64_t>& kept) {
  if (kept.empty() || kept.front() != 0 || graph.layers[0].type != "Silence") return false;
  if (kept.size() < 2 || kept[1] != 1) return false;
  for (const int64_t index : kept) {
    if (index <= 1) continue;
    for (const int64_t source : graph.layers[static_cast<size_t>(index)].sources)
      if (source == 0) return false;
  }
  return true;
}

// The main branch's names in the single head.
const std::map<std::string, std::string> kHeadNames = {{"cv2", "cv4"}, {"cv3", "cv5"}, {"dfl", "dfl2"}};

std::string from_text(const GraphLayer& layer, const std::vector<int64_t>& sources,
                      const std::map<int64_t, int64_t>& number_of, int64_t index) {
  std::string text;
  for (const int64_t source : sources) {
    const int64_t number = source < 0 ? -1 : number_of.at(source);
    TORCH_CHECK(number >= 0 || index == 0, "[single head] layer ", layer.index, " reads the picture");
    text += (text.empty() ? "" : ", ") + std::to_string(number == index - 1 ? -1 : number);
  }
  return sources.size() == 1 ? text : "[" + text + "]";
}

}  // namespace

SingleHeadPlan plan_single_head(const DetectionModelImpl& model) {
  const Graph& graph = model.graph();
  auto kept = model.main_layers();
  std::map<int64_t, int64_t> number_of;
  if (drops_silence(graph, kept)) {
    kept.erase(kept.begin());
    number_of[0] = -1;
  }
  for (size_t i = 0; i < kept.size(); ++i) number_of[kept[i]] = static_cast<int64_t>(i);
  const auto& head = graph.layers.back();
  kept.push_back(head.index);
  SingleHeadPlan plan;
  std::string text = "nc: " + std::to_string(graph.classes) + "\ndepth_multiple: " + number_text(graph.depth_multiple) +
                     "\nwidth_multiple: " + number_text(graph.width_multiple) + "\n";
  if (graph.anchors > 0) text += "anchors: " + std::to_string(graph.anchors) + "\n";
  if (!graph.activation_name.empty()) text += "activation: " + yaml_quote(graph.activation_name) + "\n";
  text += "backbone:\n";
  bool in_head = false;
  for (size_t i = 0; i < kept.size(); ++i) {
    const auto& layer = graph.layers[static_cast<size_t>(kept[i])];
    const bool last = i + 1 == kept.size();
    if ((layer.in_head || last) && !in_head) {
      text += i == 0 ? "  []\nhead:\n" : "head:\n";
      in_head = true;
    }
    auto sources = layer.sources;
    if (last && model.is_dual())
      sources.erase(sources.begin(), sources.begin() + static_cast<int64_t>(sources.size() / 2));
    text += "  - [" + from_text(layer, sources, number_of, static_cast<int64_t>(i)) + ", " +
            std::to_string(layer.configured_repeats) + ", " + (last ? "DDetect" : layer.type) + ", " +
            (last ? "[nc]" : layer.config_args) + "]\n";
    plan.source_of[static_cast<int64_t>(i)] = layer.index;
  }
  plan.config_text = text;
  return plan;
}

DetectionModel to_single_head(DetectionModelImpl& model) {
  if (!model.is_dual()) return clone_model(model);
  const auto plan = plan_single_head(model);
  auto single = make_model(plan.config_text, model.graph().name + " (single head)");
  if (model.is_fused()) single->fuse();
  std::map<std::string, torch::Tensor> given;
  for (const auto& [name, tensor] : state_dict(model)) given[name] = tensor;
  const auto first = given.begin()->second;
  single->to(first.device());
  for (const auto& [name, tensor] : given) {
    if (!tensor.is_floating_point()) continue;
    single->to(tensor.scalar_type());
    break;
  }
  const int64_t head = static_cast<int64_t>(plan.source_of.size()) - 1;
  NamedTensors renamed;
  for (const auto& [name, tensor] : state_dict(*single)) {
    const size_t dot = name.find('.', 6);
    const int64_t layer = std::stoll(name.substr(6, dot - 6));
    std::string rest = name.substr(dot + 1);
    if (layer == head) {
      const size_t end = rest.find('.');
      rest = kHeadNames.at(rest.substr(0, end)) + rest.substr(end);
    }
    const std::string source = "model." + std::to_string(plan.source_of.at(layer)) + "." + rest;
    renamed.emplace_back(name, given.at(source));
  }
  const auto report = load_state_dict(*single, renamed);
  TORCH_CHECK(report.complete(), "[single head] ", report.summary());
  single->train(model.is_training());
  return single;
}

}  // namespace yolo9
