// The modules that a configuration may name: which arguments each takes, and what comes out.
#pragma once

#include <string>
#include <vector>

#include <yolo9/core/yaml.h>
#include <yolo9/nn/graph.h>

namespace yolo9 {

// A source of the layer being resolved.
struct SourceInfo {
  int64_t index = -1;
  std::string type = "image";
  std::vector<int64_t> widths{3};
  int64_t size = kProbeSize;
  bool several = false;
};

// What resolving a layer may look at. `layer` comes with index, from, sources, repeats, type and place filled in.
struct ResolveContext {
  const Graph& graph;
  Yaml row;   // the whole [from, repeats, module, args]
  Yaml args;  // its last item
  std::vector<SourceInfo> sources;
};

// Fills in the rest of `layer`. Throws Error(Usage) with file:line: unknown module, wrong arguments, widths that do
// not fit.
void resolve_layer(GraphLayer& layer, const ResolveContext& context);

bool is_head(const std::string& type);
// Canonical name: "nn.Upsample" is "Upsample".
std::string canonical_type(const std::string& name);
std::vector<std::string> known_types();

}  // namespace yolo9
