// Anchor points of the head's grids and the distances measured from them.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <torch/types.h>

namespace yolo9 {

// Anchors run over levels, then rows, then columns.
struct AnchorGrid {
  torch::Tensor points;         // float [A,2]: column + 0.5, row + 0.5, in grid units of their level
  torch::Tensor strides;        // float [A]: pixels per grid unit
  std::vector<int64_t> starts;  // levels + 1: first anchor of each level, then A
};

// `sizes` holds height and width of each level.
AnchorGrid make_anchors(const std::vector<std::pair<int64_t, int64_t>>& sizes, const std::vector<double>& strides,
                        const torch::Device& device = torch::kCPU);
// The grids of raw maps [B,C,h,w].
AnchorGrid make_anchors(const std::vector<torch::Tensor>& maps, const std::vector<double>& strides);

// Distances left, top, right, bottom [...,A,4] from points [A,2] -> boxes in corner form, or in centre form.
torch::Tensor distances_to_corner(const torch::Tensor& distances, const torch::Tensor& points);
torch::Tensor distances_to_centre(const torch::Tensor& distances, const torch::Tensor& points);
// The reverse for corner boxes, clamped to [0, reg_max - 1 - 0.01] so that the right-hand bin exists.
torch::Tensor corner_to_distances(const torch::Tensor& boxes, const torch::Tensor& points, int64_t reg_max);

// The expectation of the distance distributions of one raw map: the first 4 * reg_max channels of [B,C,h,w] ->
// float [B, h*w, 4], in grid units. Reads either memory format without reordering it first. No gradients.
torch::Tensor expected_distances(const torch::Tensor& map, int64_t reg_max);

}  // namespace yolo9
