#include <yolo9/nn/graph.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <yolo9/core/error.h>
#include <yolo9/core/resources.h>
#include <yolo9/core/yaml.h>
#include <yolo9/nn/catalog.h>

namespace yolo9 {

namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kKeys = {"nc",         "ch",       "depth_multiple", "width_multiple", "anchors",
                                        "activation", "backbone", "head"};

double read_multiple(const Yaml& root, const std::string& key) {
  const Yaml value = root.at(key);
  const double multiple = value.as_double();
  if (multiple <= 0 || multiple > 10) value.fail(key + " must lie above 0 and not above 10, found " + value.text());
  return multiple;
}

// The number of anchors per cell, or a list of anchor sizes (two numbers each) per level.
int64_t read_anchors(const Yaml& value) {
  if (value.is_int() && value.as_int() >= 1 && value.as_int() <= 100) return value.as_int();
  if (value.is_list() && value.size() > 0 && value.at(0).is_list() && value.at(0).size() >= 2)
    return static_cast<int64_t>(value.at(0).size() / 2);
  value.fail("anchors must be a whole number from 1 to 100 or a list of lists, found " + value.text());
}

void read_header(const Yaml& root, const ModelOptions& options, Graph& graph) {
  const Yaml nc = root.at("nc");
  graph.classes = nc.as_int();
  if (graph.classes < 1 || graph.classes > kMaxClasses)
    nc.fail("nc must be from 1 to " + std::to_string(kMaxClasses) + ", found " + nc.text());
  if (options.classes > 0) graph.classes = options.classes;
  graph.depth_multiple = read_multiple(root, "depth_multiple");
  graph.width_multiple = read_multiple(root, "width_multiple");
  if (root.has("anchors")) graph.anchors = read_anchors(root.at("anchors"));
  if (root.has("ch") && root.at("ch").as_int() != 3)
    root.at("ch").fail("pictures have 3 channels, found ch: " + root.at("ch").text(), "remove the key");
  if (root.has("activation")) {
    const Yaml value = root.at("activation");
    graph.activation_name = value.as_string();
    try {
      graph.activation = parse_activation(graph.activation_name);
    } catch (const std::invalid_argument& error) {
      value.fail(error.what());
    }
  }
}

std::vector<int64_t> read_from(const Yaml& from, int64_t index) {
  std::vector<Yaml> items;
  if (from.is_list()) items = from.items();
  else items.push_back(from);
  if (items.empty()) from.fail("layer " + std::to_string(index) + " has no source", "give -1 or a layer number");
  if (items.size() > 64) from.fail("layer " + std::to_string(index) + " has more than 64 sources");
  const std::string expected =
      index == 0 ? "expected -1, the picture"
                 : "expected -1 (the previous layer) or a layer number from 0 to " + std::to_string(index - 1);
  std::vector<int64_t> out;
  for (const auto& item : items) {
    if (!item.is_int()) item.fail("\"" + item.text() + "\" is no layer", expected);
    const int64_t value = item.as_int();
    if (value == index) item.fail("layer " + std::to_string(index) + " reads its own output", expected);
    if (value > index)
      item.fail("layer " + std::to_string(index) + " reads layer " + item.text() + ", which comes later", expected);
    if (value < -1) item.fail("\"" + item.text() + "\" is no layer", expected);
    out.push_back(value);
  }
  return out;
}

// Counts above 1 are scaled and rounded half to even, and stay at least 1.
int64_t read_repeats(const Yaml& value, double depth_multiple) {
  if (!value.is_int() || value.as_int() < 1 || value.as_int() > kMaxRepeats)
    value.fail("repeats must be a whole number from 1 to " + std::to_string(kMaxRepeats) + ", found " + value.text());
  if (value.as_int() == 1) return 1;
  const auto scaled = static_cast<int64_t>(std::nearbyint(static_cast<double>(value.as_int()) * depth_multiple));
  return std::max<int64_t>(scaled, 1);
}

void add_layer(const Yaml& row, bool in_head, int64_t file_classes, Graph& graph) {
  if (!row.is_list() || row.size() != 4)
    row.fail("a layer is a list [from, repeats, module, args], found " + row.text());
  if (!graph.layers.empty() && is_head(graph.layers.back().type))
    row.fail("a layer after the detection head " + graph.layers.back().type, "the detection head must be the last");
  GraphLayer layer;
  layer.index = static_cast<int64_t>(graph.layers.size());
  layer.place = row.place();
  layer.in_head = in_head;
  layer.from = read_from(row.at(0), layer.index);
  layer.repeats = read_repeats(row.at(1), graph.depth_multiple);
  layer.configured_repeats = row.at(1).as_int();
  layer.type = canonical_type(row.at(2).as_string());
  ResolveContext context{graph, row, row.at(3), {}};
  if (!context.args.is_list())
    row.fail("the arguments of " + layer.type + " must be a list, found " + context.args.text());
  for (const int64_t from : layer.from) {
    const int64_t source = from == -1 ? layer.index - 1 : from;
    layer.sources.push_back(source);
    SourceInfo info;
    if (source >= 0) {
      const auto& origin = graph.layers[static_cast<size_t>(source)];
      info = {source, origin.type, origin.widths, origin.size, origin.several};
    }
    context.sources.push_back(info);
  }
  resolve_layer(layer, context);
  if (is_head(layer.type)) {
    const Yaml nc = context.args.at(0);
    if (nc.is_int() && nc.as_int() != file_classes)
      nc.fail(layer.type + " has " + nc.text() + " classes, but nc is " + std::to_string(file_classes), "write nc");
  }
  graph.layers.push_back(std::move(layer));
}

void check_total(const Yaml& root, const Graph& graph) {
  double weights = 0;
  for (const auto& layer : graph.layers) weights += layer.weights;
  if (weights > kMaxWeights)
    root.fail("the model would have about " + std::to_string(static_cast<int64_t>(weights / 1e6)) +
                  " million weights, more than " + std::to_string(static_cast<int64_t>(kMaxWeights / 1e6)) + " million",
              "lower widths or repeats");
}

}  // namespace

std::vector<int64_t> Graph::saved() const {
  std::vector<int64_t> saved;
  for (const auto& layer : layers)
    for (const int64_t from : layer.from)
      if (from != -1) saved.push_back(from);
  std::sort(saved.begin(), saved.end());
  return saved;
}

Graph parse_graph(const std::string& text, const std::string& name, const ModelOptions& options) {
  if (options.classes < 0 || options.classes > kMaxClasses)
    throw Error(ErrorKind::Usage, "the number of classes must be from 1 to " + std::to_string(kMaxClasses) +
                                      ", found " + std::to_string(options.classes));
  const Yaml root = Yaml::parse(text, name);
  if (!root.is_map()) root.fail("a model configuration is a map with the keys nc, depth_multiple, width_multiple, "
                                "backbone and head");
  Graph graph;
  graph.name = name;
  graph.text = text;
  read_header(root, options, graph);
  const int64_t file_classes = root.at("nc").as_int();
  for (const std::string section : {"backbone", "head"}) {
    const Yaml rows = root.at(section);
    if (!rows.is_list()) rows.fail(section + " must be a list of layers, found " + rows.text());
    for (const auto& row : rows.items()) {
      if (static_cast<int64_t>(graph.layers.size()) >= kMaxLayers)
        row.fail("more than " + std::to_string(kMaxLayers) + " layers");
      add_layer(row, section == "head", file_classes, graph);
    }
  }
  root.refuse_unread(kKeys);
  if (graph.layers.empty() || !is_head(graph.layers.back().type)) {
    const auto& rows = root.at("head");
    (rows.size() > 0 ? rows.at(rows.size() - 1) : rows)
        .fail("the last layer must be a detection head", "add DDetect or DualDDetect");
  }
  check_total(root, graph);
  const auto& head = graph.layers.back();
  const size_t levels = head.type == "DualDDetect" ? head.sources.size() / 2 : head.sources.size();
  for (size_t i = 0; i < levels; ++i) {
    const auto source = head.sources[i];
    const int64_t size = source < 0 ? kProbeSize : graph.layers[static_cast<size_t>(source)].size;
    graph.strides.push_back(static_cast<double>(kProbeSize) / static_cast<double>(size));
  }
  return graph;
}

Graph read_graph(const std::string& path, const ModelOptions& options) {
  std::ifstream file(path, std::ios::binary);
  if (!file || fs::is_directory(path))
    throw Error(ErrorKind::Usage, "the file cannot be opened", path, "check the path");
  constexpr size_t kMaxBytes = 1u << 20;
  std::string text(kMaxBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > kMaxBytes)
    throw Error(ErrorKind::Usage, "larger than 1 MiB", path, "this does not look like a model configuration");
  return parse_graph(text, path, options);
}

std::string find_config(const std::string& name) {
  std::vector<std::string> candidates{name, name + ".yaml"};
  for (const auto& folder : resource_folders("models")) {
    if (fs::path(name).is_absolute()) break;
    candidates.push_back(folder + "/" + name);
    candidates.push_back(folder + "/" + name + ".yaml");
  }
  std::error_code ignored;
  for (const auto& candidate : candidates)
    if (fs::is_regular_file(candidate, ignored)) return candidate;
  std::vector<std::string> known;
  for (const auto& folder : resource_folders("models")) {
    if (!fs::is_directory(folder, ignored)) continue;
    for (const auto& entry : fs::directory_iterator(folder, ignored))
      if (entry.path().extension() == ".yaml") known.push_back(entry.path().stem().string());
  }
  std::sort(known.begin(), known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  std::string list;
  for (const auto& one : known) list += (list.empty() ? "" : ", ") + one;
  const std::string near = nearest_word(fs::path(name).stem().string(), known);
  throw Error(ErrorKind::Usage, "no such model configuration", name,
              !near.empty() ? "did you mean \"" + near + "\"?"
                            : list.empty() ? "give the path of a yaml file" : "give a yaml file, or one of " + list);
}

}  // namespace yolo9
