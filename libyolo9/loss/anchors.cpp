#include <yolo9/loss/anchors.h>

#include <ATen/ATen.h>

namespace yolo9 {

AnchorGrid make_anchors(const std::vector<std::pair<int64_t, int64_t>>& sizes, const std::vector<double>& strides,
                        const torch::Device& device) {
  TORCH_CHECK(sizes.size() == strides.size(), "[make_anchors] ", sizes.size(), " levels but ", strides.size(),
              " strides");
  AnchorGrid grid;
  grid.starts.push_back(0);
  std::vector<torch::Tensor> points, pixels;
  const auto options = at::TensorOptions(at::kFloat).device(device);
  for (size_t level = 0; level < sizes.size(); ++level) {
    const auto [height, width] = sizes[level];
    const auto x = at::arange(width, options) + 0.5, y = at::arange(height, options) + 0.5;
    points.push_back(at::stack({x.unsqueeze(0).expand({height, width}), y.unsqueeze(1).expand({height, width})}, -1)
                         .view({-1, 2}));
    pixels.push_back(at::full({height * width}, strides[level], options));
    grid.starts.push_back(grid.starts.back() + height * width);
  }
  grid.points = at::cat(points);
  grid.strides = at::cat(pixels);
  return grid;
}

AnchorGrid make_anchors(const std::vector<torch::Tensor>& maps, const std::vector<double>& strides) {
  TORCH_CHECK(!maps.empty(), "[make_anchors] no maps");
  std::vector<std::pair<int64_t, int64_t>> sizes;
  for (const auto& map : maps) sizes.emplace_back(map.size(2), map.size(3));
  return make_anchors(sizes, strides, maps.front().device());
}

torch::Tensor distances_to_corner(const torch::Tensor& distances, const torch::Tensor& points) {
  return at::cat({points - distances.narrow(-1, 0, 2), points + distances.narrow(-1, 2, 2)}, -1);
}

torch::Tensor distances_to_centre(const torch::Tensor& distances, const torch::Tensor& points) {
  const auto low = points - distances.narrow(-1, 0, 2), high = points + distances.narrow(-1, 2, 2);
  return at::cat({(low + high) / 2, high - low}, -1);
}

torch::Tensor corner_to_distances(const torch::Tensor& boxes, const torch::Tensor& points, int64_t reg_max) {
  return at::cat({points - boxes.narrow(-1, 0, 2), boxes.narrow(-1, 2, 2) - points}, -1)
      .clamp(0, static_cast<double>(reg_max) - 1 - 0.01);
}

torch::Tensor expected_distances(const torch::Tensor& map, int64_t reg_max) {
  const at::NoGradGuard no_grad;
  const int64_t batch = map.size(0), cells = map.size(2) * map.size(3);
  const auto logits = map.detach().narrow(1, 0, 4 * reg_max);
  const auto bins = at::arange(reg_max, map.options().dtype(at::kFloat));
  if (map.is_contiguous(at::MemoryFormat::ChannelsLast) && !map.is_contiguous()) {
    const auto p = at::softmax(logits.permute({0, 2, 3, 1}).unflatten(3, {4, reg_max}), -1, at::kFloat);
    return at::matmul(p, bins).view({batch, cells, 4});
  }
  const auto p = at::softmax(logits.reshape({batch, 4, reg_max, cells}), 2, at::kFloat);
  return at::matmul(bins.unsqueeze(0), p).squeeze(2).transpose(1, 2);
}

}  // namespace yolo9
