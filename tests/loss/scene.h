// Made-up assignment problems.
#pragma once

#include <string>
#include <vector>

#include <torch/types.h>

#include <yolo9/loss/assigner.h>

#include "support/fixture.h"

namespace golden {

// counts[b] boxes in image b of size x size pixels, with predictions around their anchors.
struct Scene {
  yolo9::GroundTruths truths;
  torch::Tensor boxes, points;
  yolo9::ClassScores scores;
};

inline Scene make_scene(const std::vector<int64_t>& counts, int64_t size, int64_t classes, const std::string& name) {
  Scene scene;
  const auto batch = static_cast<int64_t>(counts.size());
  std::vector<torch::Tensor> points, images;
  int64_t total = 0;
  for (int64_t b = 0; b < batch; ++b) {
    images.push_back(torch::full({counts[static_cast<size_t>(b)]}, b, torch::kLong));
    total += counts[static_cast<size_t>(b)];
  }
  for (const int64_t stride : {8, 16, 32}) {
    const int64_t cells = size / stride;
    const auto axis = (torch::arange(cells, torch::kFloat) + 0.5) * stride;
    points.push_back(torch::stack({axis.repeat({cells}), axis.repeat_interleave(cells)}, 1));
    scene.scores.levels.push_back(
        fixture::uniform(name + ":logits:" + std::to_string(stride), {batch, classes, cells, cells}) * 6 - 5);
  }
  scene.points = torch::cat(points);
  const auto centre = fixture::uniform(name + ":centre", {total, 2}) * size;
  const auto half = fixture::uniform(name + ":half", {total, 2}) * (size / 8.0) + 4;
  scene.truths = {torch::cat(images), (fixture::uniform(name + ":label", {total}) * classes).to(torch::kLong),
                  torch::cat({centre - half, centre + half}, 1).clamp(0, static_cast<double>(size))};
  const auto reach = fixture::uniform(name + ":reach", {batch, scene.points.size(0), 4}) * 60 + 2;
  scene.boxes = torch::cat({scene.points - reach.narrow(2, 0, 2), scene.points + reach.narrow(2, 2, 2)}, 2);
  return scene;
}

}  // namespace golden
