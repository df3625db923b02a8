#include <yolo9/nn/heads.h>

#include <cmath>

namespace yolo9 {

namespace {

// Two 3x3 convolutions and a plain 1x1 one, children "0", "1", "2".
class BranchImpl : public torch::nn::Module {
 public:
  BranchImpl(int64_t in, int64_t hidden, int64_t out, int64_t groups, const Activation& activation) {
    first_ = register_module("0", Conv(in, hidden, ConvOptions{.kernel = 3, .activation = activation}));
    second_ = register_module(
        "1", Conv(hidden, hidden, ConvOptions{.kernel = 3, .groups = groups, .activation = activation}));
    last_ = register_module("2", torch::nn::Conv2d(torch::nn::Conv2dOptions(hidden, out, 1).groups(groups)));
  }
  torch::Tensor forward(const torch::Tensor& x) { return last_->forward(second_->forward(first_->forward(x))); }
  void fill_bias(double value) {
    torch::NoGradGuard guard;
    last_->bias.fill_(value);
  }

 private:
  Conv first_{nullptr}, second_{nullptr};
  torch::nn::Conv2d last_{nullptr};
};

BranchImpl& branch(torch::nn::ModuleList& list, size_t level) { return *list[level]->as<BranchImpl>(); }

// Box and class branches for `count` levels whose input widths start at widths[first]; the hidden widths follow from
// the first level and are the same for all.
void fill_branches(torch::nn::ModuleList& boxes, torch::nn::ModuleList& classes, const HeadOptions& options,
                   size_t first, size_t count) {
  const int64_t base = options.widths[first];
  const int64_t box_width = (std::max<int64_t>({base / 4, 4 * kRegMax, 16}) + 3) / 4 * 4;
  const int64_t class_width = std::max(base, std::min<int64_t>(2 * options.classes, 128));
  for (size_t i = first; i < first + count; ++i) {
    const int64_t in = options.widths[i];
    boxes->push_back(std::make_shared<BranchImpl>(in, box_width, 4 * kRegMax, 4, options.activation));
    classes->push_back(std::make_shared<BranchImpl>(in, class_width, options.classes, 1, options.activation));
  }
}

std::vector<torch::Tensor> run_branches(torch::nn::ModuleList& boxes, torch::nn::ModuleList& classes,
                                        const std::vector<torch::Tensor>& maps, size_t first,
                                        const SegmentRunner& runner) {
  std::vector<torch::Tensor> raw;
  for (size_t i = 0; i < boxes->size(); ++i) {
    // Modules, not the lists: the function may be called when this one has returned.
    const auto run = [box = &branch(boxes, i), score = &branch(classes, i)](const std::vector<torch::Tensor>& in) {
      return std::vector<torch::Tensor>{at::cat({box->forward(in.at(0)), score->forward(in.at(0))}, 1)};
    };
    const auto& x = maps.at(first + i);
    raw.push_back(runner ? runner(run, {x}).at(0) : run({x}).at(0));
  }
  return raw;
}

void fill_biases(torch::nn::ModuleList& boxes, torch::nn::ModuleList& classes, const HeadOptions& options) {
  for (size_t i = 0; i < boxes->size(); ++i) {
    const double cells = std::pow(640.0 / options.strides.at(i), 2);
    branch(boxes, i).fill_bias(1.0);
    branch(classes, i).fill_bias(std::log(5.0 / static_cast<double>(options.classes) / cells));
  }
}

}  // namespace

DFLImpl::DFLImpl() {
  conv = register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(kRegMax, 1, 1).bias(false)));
  freeze();
}

void DFLImpl::freeze() {
  conv->weight.set_requires_grad(false);
  conv->weight.copy_(at::arange(kRegMax, at::kFloat).view({1, kRegMax, 1, 1}));
}

torch::Tensor DFLImpl::forward(const torch::Tensor& logits) {
  const auto shares = logits.view({logits.size(0), 4, kRegMax, logits.size(2)}).softmax(2);
  return (shares * conv->weight.view({1, 1, kRegMax, 1})).sum(2);
}

torch::Tensor decode_maps(const std::vector<torch::Tensor>& maps, const std::vector<double>& strides, DFL& dfl) {
  std::vector<torch::Tensor> flat, points, scales;
  const auto options = maps.at(0).options();
  for (size_t i = 0; i < maps.size(); ++i) {
    const int64_t h = maps[i].size(2), w = maps[i].size(3);
    flat.push_back(maps[i].flatten(2));
    const auto x = (at::arange(w, options) + 0.5).view({1, w}).expand({h, w}).reshape({1, h * w});
    const auto y = (at::arange(h, options) + 0.5).view({h, 1}).expand({h, w}).reshape({1, h * w});
    points.push_back(at::cat({x, y}, 0));
    scales.push_back(at::full({1, h * w}, strides.at(i), options));
  }
  const auto all = at::cat(flat, 2);
  const int64_t channels = all.size(1);
  const auto distance = dfl->forward(all.narrow(1, 0, 4 * kRegMax));
  const auto anchors = at::cat(points, 1);
  const auto low = anchors - distance.narrow(1, 0, 2), high = anchors + distance.narrow(1, 2, 2);
  const auto boxes = at::cat({(low + high) / 2, high - low}, 1) * at::cat(scales, 1);
  return at::cat({boxes, all.narrow(1, 4 * kRegMax, channels - 4 * kRegMax).sigmoid()}, 1);
}

DDetectImpl::DDetectImpl(const HeadOptions& options) : HeadImpl(options) {
  register_module("cv2", cv2);
  register_module("cv3", cv3);
  fill_branches(cv2, cv3, options_, 0, options_.widths.size());
  dfl = register_module("dfl", DFL());
  DDetectImpl::initialize_biases();
}

HeadOutput DDetectImpl::forward(const std::vector<torch::Tensor>& maps, bool) {
  HeadOutput out;
  out.main = run_branches(cv2, cv3, maps, 0, is_training() ? runner_ : nullptr);
  if (!is_training()) out.decoded_main = decode_maps(out.main, options_.strides, dfl);
  return out;
}

void DDetectImpl::initialize_biases() { fill_biases(cv2, cv3, options_); }

DualDDetectImpl::DualDDetectImpl(const HeadOptions& options) : HeadImpl(options) {
  const size_t levels = options_.widths.size() / 2;
  register_module("cv2", cv2);
  register_module("cv3", cv3);
  register_module("cv4", cv4);
  register_module("cv5", cv5);
  fill_branches(cv2, cv3, options_, 0, levels);
  fill_branches(cv4, cv5, options_, levels, levels);
  dfl = register_module("dfl", DFL());
  dfl2 = register_module("dfl2", DFL());
  DualDDetectImpl::initialize_biases();
}

HeadOutput DualDDetectImpl::forward(const std::vector<torch::Tensor>& maps, bool auxiliary) {
  HeadOutput out;
  if (auxiliary) out.aux = run_branches(cv2, cv3, maps, 0, is_training() ? runner_ : nullptr);
  out.main = run_branches(cv4, cv5, maps, cv2->size(), is_training() ? runner_ : nullptr);
  if (is_training()) return out;
  if (auxiliary) out.decoded_aux = decode_maps(out.aux, options_.strides, dfl);
  out.decoded_main = decode_maps(out.main, options_.strides, dfl2);
  return out;
}

void DualDDetectImpl::initialize_biases() {
  fill_biases(cv2, cv3, options_);
  fill_biases(cv4, cv5, options_);
}

}  // namespace yolo9
