// Private to the catalog: a layer under resolution, and the functions that resolve each kind.
#pragma once

#include <algorithm>
#include <cmath>

#include <yolo9/nn/arguments.h>
#include <yolo9/nn/catalog.h>
#include <yolo9/nn/layer.h>

namespace yolo9 {

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

inline double product(std::initializer_list<int64_t> factors) {
  double value = 1;
  for (const int64_t factor : factors) value *= static_cast<double>(factor);
  return value;
}

void resolve_conv(Resolver r);
void resolve_down(Resolver r);
void resolve_elan(Resolver r);
void resolve_spp(Resolver r);
void resolve_rep_conv(Resolver r);
void resolve_bottleneck(Resolver r);
void resolve_csp(Resolver r);
void resolve_silence(Resolver r);
void resolve_upsample(Resolver r);
void resolve_concat(Resolver r);
void resolve_cb_linear(Resolver r);
void resolve_cb_fuse(Resolver r);
void resolve_head(Resolver r);

}  // namespace yolo9
