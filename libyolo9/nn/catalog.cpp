#include <yolo9/nn/catalog.h>

#include <cmath>

#include <yolo9/nn/arguments.h>
#include <yolo9/nn/blocks.h>
#include <yolo9/nn/heads.h>
#include <yolo9/nn/links.h>

namespace yolo9 {

namespace {

using ModulePtr = std::shared_ptr<torch::nn::Module>;

// A layer under resolution with the helpers that the modules share.
struct Resolver {
  GraphLayer& layer;
  const ResolveContext& context;

  const Activation& activation() const { return context.graph.activation; }
  const SourceInfo& source() const { return context.sources.at(0); }
  int64_t in() const { return source().widths.at(0); }

  // The output width: scaled by the width multiple and rounded up to a multiple of 8, unless it is the width of an
  // anchor-based output.
  int64_t scaled(int64_t width) const {
    const Graph& graph = context.graph;
    if (graph.anchors > 0 && width == graph.anchors * (graph.classes + 5)) return width;
    const auto scaled = static_cast<int64_t>(
        std::ceil(static_cast<double>(width) * graph.width_multiple / 8.0) * 8.0);
    if (scaled > kMaxWidth)
      context.row.fail(std::to_string(width) + " channels times the width multiple are " + std::to_string(scaled) +
                           ", more than " + std::to_string(kMaxWidth),
                       "lower width_multiple");
    return scaled;
  }

  void require_even(int64_t width, const std::string& what) const {
    if (width % 2 != 0)
      context.row.fail(layer.type + " cuts its " + what + " into halves, and " + std::to_string(width) + " is odd",
                       "use an even number");
  }

  // A block of one map in and one out. `build` makes one instance; repeats make a sequence of equal ones.
  void finish_block(const std::vector<int64_t>& resolved, int64_t out, int64_t size, double weights,
                    std::function<std::shared_ptr<BlockImpl>()> build) {
    if (layer.repeats > 1 && in() != out)
      context.row.fail("repeated " + std::to_string(layer.repeats) + " times, " + layer.type + " must give as many "
                       "channels as it takes; it takes " + std::to_string(in()) + " and gives " + std::to_string(out));
    if (size < 1)
      context.row.fail(layer.type + " leaves nothing of a " + std::to_string(kProbeSize) + "-pixel picture",
                       "use fewer strided layers or a smaller kernel");
    layer.resolved_args = json_text(resolved);
    layer.widths = {out};
    layer.size = size;
    layer.weights = weights * static_cast<double>(layer.repeats);
    layer.make = [repeats = layer.repeats, build = std::move(build)]() -> ModulePtr {
      if (repeats == 1) return build();
      std::vector<std::shared_ptr<BlockImpl>> blocks;
      for (int64_t i = 0; i < repeats; ++i) blocks.push_back(build());
      return Sequence(blocks).ptr();
    };
  }

  // Size after `repeats` applications of a layer that maps size h to step(h).
  template <class Step>
  int64_t repeat_size(Step step) const {
    int64_t size = source().size;
    for (int64_t i = 0; i < layer.repeats && size >= 1; ++i) size = step(size);
    return size;
  }

  void refuse_repeats() const {
    if (layer.repeats != 1) context.row.fail(layer.type + " cannot be repeated", "set its repeats to 1");
  }
};

double product(std::initializer_list<int64_t> factors) {
  double value = 1;
  for (const int64_t factor : factors) value *= static_cast<double>(factor);
  return value;
}

int64_t halved(int64_t size) { return size < 2 ? 0 : (size - 2) / 2 + 1; }

void resolve_conv(Resolver r) {
  const Arguments args(r.context.args, "Conv",
                       "channels, kernel=1, stride=1, padding=None, groups=1, dilation=1, activation=True", 1, 7);
  const int64_t in = r.in(), out = r.scaled(args.integer(0, "channels", 1, kMaxWidth));
  ConvOptions options;
  options.kernel = args.integer_or(1, "kernel", 1, 31, 1);
  options.stride = args.integer_or(2, "stride", 1, 16, 1);
  if (args.has(3)) options.padding = args.integer(3, "padding", 0, 31);
  options.groups = args.integer_or(4, "groups", 1, kMaxWidth, 1);
  options.dilation = args.integer_or(5, "dilation", 1, 31, 1);
  options.activation = args.boolean_or(6, "activation", true) ? r.activation() : Activation{Activation::Kind::Identity};
  if (in % options.groups != 0 || out % options.groups != 0)
    r.context.row.fail("the " + std::to_string(in) + " input and " + std::to_string(out) +
                           " output channels of Conv are not both divisible by its " + std::to_string(options.groups) +
                           " groups",
                       "choose a common divisor");
  std::vector<int64_t> resolved{in, out, options.kernel, options.stride};
  if (args.size() > 3) resolved.insert(resolved.end(), {options.pad(), options.groups, options.dilation});
  const int64_t reach = options.dilation * (options.kernel - 1) + 1;
  const int64_t size = r.repeat_size([&](int64_t h) {
    const int64_t room = h + 2 * options.pad() - reach;
    return room < 0 ? 0 : room / options.stride + 1;
  });
  r.finish_block(args.size() > 1 ? resolved : std::vector<int64_t>{in, out}, out, size,
                 product({in / options.groups, out, options.kernel, options.kernel}),
                 [=] { return Conv(in, out, options).ptr(); });
}

void resolve_down(Resolver r) {
  const std::string type = r.layer.type;
  const Arguments args(r.context.args, type, "channels", 1, 1);
  const int64_t in = r.in(), out = r.scaled(args.integer(0, "channels", 1, kMaxWidth));
  if (type == "ADown") {
    r.require_even(in, "input channels");
    r.require_even(out, "output channels");
  }
  r.finish_block({in, out}, out, r.repeat_size(halved), product({in, out, 9}),
                 [type, in, out, act = r.activation()]() -> std::shared_ptr<BlockImpl> {
                   if (type == "ADown") return ADown(in, out, act).ptr();
                   return AConv(in, out, act).ptr();
                 });
}

void resolve_elan(Resolver r) {
  const bool plain = r.layer.type == "ELAN1";
  const Arguments args(r.context.args, r.layer.type,
                       plain ? "channels, split channels, branch channels"
                             : "channels, split channels, branch channels, bottlenecks=1",
                       3, plain ? 3 : 4);
  const int64_t in = r.in(), out = r.scaled(args.integer(0, "channels", 1, kMaxWidth));
  const int64_t split = args.integer(1, "split channels", 1, kMaxWidth);
  const int64_t width = args.integer(2, "branch channels", 1, kMaxWidth);
  const int64_t count = args.integer_or(3, "bottlenecks", 0, kMaxRepeats, 1);
  r.require_even(split, "split channels");
  if (!plain) r.require_even(width, "branch channels");
  const double ends = product({in, split}) + product({split + 2 * width, out});
  const double inside = product({width, width, 9, 2}) * (plain ? 1.0 : 1.0 + 0.5 * static_cast<double>(count));
  std::vector<int64_t> resolved{in, out, split, width};
  if (args.size() > 3) resolved.push_back(count);
  r.finish_block(resolved, out, r.source().size, ends + inside + product({split, width, 5}),
                 [=, act = r.activation()]() -> std::shared_ptr<BlockImpl> {
                   if (plain) return ELAN1(in, out, split, width, act).ptr();
                   return RepNCSPELAN4(in, out, split, width, count, act).ptr();
                 });
}

void resolve_spp(Resolver r) {
  const Arguments args(r.context.args, "SPPELAN", "channels, hidden channels", 2, 2);
  const int64_t in = r.in(), out = r.scaled(args.integer(0, "channels", 1, kMaxWidth));
  const int64_t hidden = args.integer(1, "hidden channels", 1, kMaxWidth);
  r.finish_block({in, out, hidden}, out, r.source().size, product({in, hidden}) + product({4, hidden, out}),
                 [=, act = r.activation()] { return SPPELAN(in, out, hidden, act).ptr(); });
}

void resolve_rep_conv(Resolver r) {
  const Arguments args(r.context.args, "RepConvN", "channels, kernel=3, stride=1", 1, 3);
  const int64_t in = r.in(), out = r.scaled(args.integer(0, "channels", 1, kMaxWidth));
  args.integer_or(1, "kernel", 3, 3, 3);
  const int64_t stride = args.integer_or(2, "stride", 1, 16, 1);
  r.finish_block({in, out, 3, stride}, out, r.repeat_size([&](int64_t h) { return (h - 1) / stride + 1; }),
                 product({in, out, 10}),
                 [=, act = r.activation()] { return RepConvN(in, out, stride, act).ptr(); });
}

void resolve_bottleneck(Resolver r) {
  const Arguments args(r.context.args, "RepNBottleneck", "channels, shortcut=True, groups=1, expansion=0.5", 1, 4);
  const int64_t in = r.in(), out = r.scaled(args.integer(0, "channels", 1, kMaxWidth));
  BottleneckOptions options;
  options.shortcut = args.boolean_or(1, "shortcut", true);
  options.groups = args.integer_or(2, "groups", 1, kMaxWidth, 1);
  options.expansion = args.number_or(3, "expansion", 0.01, 8, 0.5);
  options.activation = r.activation();
  const auto hidden = static_cast<int64_t>(static_cast<double>(out) * options.expansion);
  if (hidden < 1 || hidden % options.groups != 0 || out % options.groups != 0)
    r.context.row.fail("the " + std::to_string(hidden) + " hidden and " + std::to_string(out) +
                           " output channels of RepNBottleneck are not both divisible by its " +
                           std::to_string(options.groups) + " groups",
                       "choose a common divisor");
  r.finish_block({in, out}, out, r.source().size, product({in, hidden, 10}) + product({hidden, out, 9}),
                 [=] { return RepNBottleneck(in, out, options).ptr(); });
}

void resolve_csp(Resolver r) {
  const Arguments args(r.context.args, "RepNCSP", "channels, bottlenecks=1, shortcut=True", 1, 3);
  const int64_t in = r.in(), out = r.scaled(args.integer(0, "channels", 1, kMaxWidth));
  const int64_t count = args.integer_or(1, "bottlenecks", 0, kMaxRepeats, 1);
  const bool shortcut = args.boolean_or(2, "shortcut", true);
  r.require_even(out, "channels");
  r.finish_block({in, out, count}, out, r.source().size,
                 product({in, out}) + product({out, out}) + product({out, out, 5, count}),
                 [=, act = r.activation()] { return RepNCSP(in, out, count, shortcut, act).ptr(); });
}

void resolve_silence(Resolver r) {
  const Arguments args(r.context.args, "Silence", "", 0, 0);
  r.finish_block({}, r.in(), r.source().size, 0, [] { return Silence().ptr(); });
}

void resolve_upsample(Resolver r) {
  const Arguments args(r.context.args, "Upsample", "size=None, factor, mode", 2, 3);
  if (args.has(0)) args.refuse(0, "size", "None");
  double factor = args.number_or(1, "factor", 1, 16, 2);
  if (factor != std::floor(factor)) args.refuse(1, "factor", "a whole number");
  if (args.has(2) && args.item(2).text() != "nearest") args.refuse(2, "mode", "nearest");
  const auto whole = static_cast<int64_t>(factor);
  r.finish_block({}, r.in(), r.repeat_size([&](int64_t h) { return h * whole; }), 0,
                 [whole] { return Upsample(whole).ptr(); });
  if (r.layer.size > 64 * kProbeSize) r.context.row.fail("the map would be 64 times as high as the picture");
  r.layer.resolved_args = "[null, " + std::to_string(whole) + ".0, \"nearest\"]";
}

void resolve_concat(Resolver r) {
  const Arguments args(r.context.args, "Concat", "dimension", 0, 1);
  r.refuse_repeats();
  args.integer_or(0, "dimension", 1, 1, 1);
  int64_t width = 0;
  const auto& first = r.source();
  for (const auto& source : r.context.sources) {
    width += source.widths.at(0);
    if (source.size != first.size)
      r.context.row.fail("Concat joins maps of different sizes: layer " + std::to_string(first.index) + " gives " +
                             std::to_string(first.size) + " rows and layer " + std::to_string(source.index) + " gives " +
                             std::to_string(source.size) + " on a " + std::to_string(kProbeSize) + "-pixel picture",
                         "join maps of one stride");
  }
  if (width > 16 * kMaxWidth) r.context.row.fail("Concat would give " + std::to_string(width) + " channels");
  r.layer.resolved_args = "[1]";
  r.layer.widths = {width};
  r.layer.size = first.size;
  r.layer.make = []() -> ModulePtr { return Concat().ptr(); };
}

void resolve_cb_linear(Resolver r) {
  const Arguments args(r.context.args, "CBLinear", "list of channels", 1, 1);
  r.refuse_repeats();
  const int64_t in = r.in();
  const auto widths = args.integers(0, "list of channels", 1, kMaxWidth);
  r.layer.resolved_args = "[" + std::to_string(in) + ", " + json_text(widths) + "]";
  r.layer.widths = widths;
  r.layer.size = r.source().size;
  r.layer.several = true;
  for (const int64_t width : widths) r.layer.weights += product({in, width});
  r.layer.make = [=]() -> ModulePtr { return CBLinear(in, widths).ptr(); };
}

void resolve_cb_fuse(Resolver r) {
  const Arguments args(r.context.args, "CBFuse", "list of part numbers", 1, 1);
  r.refuse_repeats();
  const auto parts = args.integers(0, "list of part numbers", 0, kMaxWidth);
  const auto& sources = r.context.sources;
  if (parts.size() + 1 != sources.size())
    r.context.row.fail("CBFuse needs one part number for each source but the last; it has " +
                       std::to_string(sources.size()) + " sources and " + std::to_string(parts.size()) + " numbers");
  const auto& target = sources.back();
  for (size_t k = 0; k < parts.size(); ++k) {
    const std::string name = "layer " + std::to_string(sources[k].index);
    if (!sources[k].several)
      r.context.row.fail("every source of CBFuse but the last must be a CBLinear; " + name + " is a " +
                         sources[k].type);
    if (parts[k] >= static_cast<int64_t>(sources[k].widths.size()))
      r.context.row.fail("CBFuse takes part " + std::to_string(parts[k]) + " of " + name + ", which has parts 0 to " +
                         std::to_string(sources[k].widths.size() - 1));
    const int64_t width = sources[k].widths[static_cast<size_t>(parts[k])];
    if (width != target.widths.at(0))
      r.context.row.fail("CBFuse adds part " + std::to_string(parts[k]) + " of " + name + " with " +
                         std::to_string(width) + " channels to a map of " + std::to_string(target.widths.at(0)));
  }
  r.layer.resolved_args = "[" + json_text(parts) + "]";
  r.layer.widths = target.widths;
  r.layer.size = target.size;
  r.layer.make = [=]() -> ModulePtr { return CBFuse(parts).ptr(); };
}

void resolve_head(Resolver r) {
  const std::string& type = r.layer.type;
  const Arguments args(r.context.args, type, "nc", 1, 1);
  r.refuse_repeats();
  const auto& nc = args.item(0);
  // A number is fine if it repeats the file's own nc, which the caller may have overridden.
  const bool named = nc.is_scalar() && nc.text() == "nc";
  if (!named && !nc.is_int()) args.refuse(0, "number of classes", "nc");
  HeadOptions options;
  options.classes = r.context.graph.classes;
  options.activation = r.activation();
  std::vector<int64_t> sizes;
  for (const auto& source : r.context.sources) {
    options.widths.push_back(source.widths.at(0));
    sizes.push_back(source.size);
  }
  const bool dual = type == "DualDDetect";
  if (dual && sizes.size() % 2 != 0)
    r.context.row.fail("DualDDetect needs an even number of sources, auxiliary ones first; it has " +
                       std::to_string(sizes.size()));
  const size_t levels = dual ? sizes.size() / 2 : sizes.size();
  for (size_t i = 0; i < sizes.size(); ++i) {
    const std::string name = "source " + std::to_string(i + 1) + " of " + type + " (layer " +
                             std::to_string(r.context.sources[i].index) + ")";
    if (sizes[i] > kProbeSize || kProbeSize % sizes[i] != 0)
      r.context.row.fail(name + " has " + std::to_string(sizes[i]) + " rows on a " + std::to_string(kProbeSize) +
                         "-pixel picture, which is no whole stride");
    if (i >= levels && sizes[i] != sizes[i - levels])
      r.context.row.fail(name + " does not have the stride of the auxiliary source of the same level");
    if (i < levels) options.strides.push_back(static_cast<double>(kProbeSize) / static_cast<double>(sizes[i]));
    const int64_t first = options.widths[i < levels ? 0 : levels];
    r.layer.weights += product({options.widths[i] + first, std::max<int64_t>(first, 128), 9});
  }
  r.layer.weights += product({options.classes, 128, static_cast<int64_t>(sizes.size())});
  r.layer.resolved_args = "[" + std::to_string(options.classes) + ", " + json_text(options.widths) + "]";
  r.layer.widths = options.widths;
  r.layer.size = sizes[0];
  r.layer.make = [=]() -> ModulePtr {
    if (dual) return DualDDetect(options).ptr();
    return DDetect(options).ptr();
  };
}

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
