// Layers that compute: convolutions and the blocks made of them.
#include <yolo9/nn/blocks.h>
#include <yolo9/nn/resolver.h>

namespace yolo9 {

namespace {

int64_t halved(int64_t size) { return size < 2 ? 0 : (size - 2) / 2 + 1; }

}  // namespace

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

}  // namespace yolo9
