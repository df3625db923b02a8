// Layers that connect, and the detection heads.
#include <yolo9/nn/heads.h>
#include <yolo9/nn/links.h>
#include <yolo9/nn/resolver.h>

namespace yolo9 {

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
                             std::to_string(first.size) + " rows and layer " + std::to_string(source.index) +
                             " gives " + std::to_string(source.size) + " on a " + std::to_string(kProbeSize) +
                             "-pixel picture",
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

}  // namespace yolo9
