#include <yolo9/nn/catalog.h>

#include <yolo9/nn/resolver.h>

namespace yolo9 {

namespace {

struct Entry {
  const char* type;
  void (*resolve)(Resolver);
  bool many_sources;  // takes a list of sources, not exactly one
};

constexpr Entry kEntries[] = {
    {"Conv", resolve_conv, false},           {"AConv", resolve_down, false},
    {"ADown", resolve_down, false},          {"ELAN1", resolve_elan, false},
    {"RepNCSPELAN4", resolve_elan, false},   {"SPPELAN", resolve_spp, false},
    {"RepConvN", resolve_rep_conv, false},   {"RepNBottleneck", resolve_bottleneck, false},
    {"RepNCSP", resolve_csp, false},         {"Silence", resolve_silence, false},
    {"Upsample", resolve_upsample, false},   {"Concat", resolve_concat, true},
    {"CBLinear", resolve_cb_linear, false},  {"CBFuse", resolve_cb_fuse, true},
    {"DDetect", resolve_head, true},         {"DualDDetect", resolve_head, true}};

}  // namespace

bool is_head(const std::string& type) { return type == "DDetect" || type == "DualDDetect"; }

std::string canonical_type(const std::string& name) { return name == "nn.Upsample" ? "Upsample" : name; }

std::vector<std::string> known_types() {
  std::vector<std::string> names;
  for (const auto& entry : kEntries) names.push_back(entry.type);
  return names;
}

void resolve_layer(GraphLayer& layer, const ResolveContext& context) {
  for (const auto& entry : kEntries) {
    if (layer.type != entry.type) continue;
    if (!entry.many_sources && context.sources.size() != 1)
      context.row.fail(layer.type + " takes one source, found " + std::to_string(context.sources.size()));
    for (size_t i = 0; i < context.sources.size(); ++i) {
      const bool part = layer.type == "CBFuse" && i + 1 < context.sources.size();
      if (context.sources[i].several && !part)
        context.row.fail("layer " + std::to_string(context.sources[i].index) + " is a CBLinear, whose parts only " +
                         "CBFuse can take (before its last source)");
    }
    layer.config_args = json_text(context.args);
    entry.resolve(Resolver{layer, context});
    return;
  }
  const std::string near = nearest_word(layer.type, known_types());
  std::string all;
  for (const auto& name : known_types()) all += (all.empty() ? "" : ", ") + name;
  context.row.fail("unknown module \"" + layer.type + "\"",
                   near.empty() ? "known are " + all : "did you mean \"" + near + "\"?");
}

}  // namespace yolo9
