#include <yolo9/nn/links.h>

namespace yolo9 {

torch::Tensor UpsampleImpl::forward(const torch::Tensor& x) {
  return at::upsample_nearest2d(x, {x.size(2) * factor_, x.size(3) * factor_});
}

Maps ConcatImpl::run(const std::vector<const Maps*>& sources) {
  std::vector<torch::Tensor> maps;
  for (const auto* source : sources) maps.push_back(source->at(0));
  return {forward(maps)};
}

CBLinearImpl::CBLinearImpl(int64_t in, const std::vector<int64_t>& widths) : widths_(widths) {
  int64_t out = 0;
  for (const int64_t width : widths) out += width;
  conv = register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, 1)));
}

Maps CBFuseImpl::run(const std::vector<const Maps*>& sources) {
  TORCH_CHECK(sources.size() == parts_.size() + 1, "[cbfuse] expected ", parts_.size() + 1, " sources, got ",
              sources.size());
  const auto& target = sources.back()->at(0);
  torch::Tensor sum;
  for (size_t k = 0; k < parts_.size(); ++k) {
    const auto& part = sources[k]->at(static_cast<size_t>(parts_[k]));
    const bool same = part.size(2) == target.size(2) && part.size(3) == target.size(3);
    const auto resized = same ? part : at::upsample_nearest2d(part, {target.size(2), target.size(3)});
    sum = sum.defined() ? sum + resized : resized;
  }
  return {sum.defined() ? sum + target : target};
}

}  // namespace yolo9
