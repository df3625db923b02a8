#include <yolo9/loss/detection_loss.h>

#include <utility>

#include <ATen/ATen.h>

#include <yolo9/core/boxes.h>
#include <yolo9/loss/anchors.h>
#include <yolo9/loss/regression_loss.h>

namespace yolo9 {

// Losses of one branch before the gains, and its own sum of target scores.
struct DetectionLoss::Branch {
  torch::Tensor items;      // [3], with gradients
  torch::Tensor score_sum;  // scalar, detached
};

DetectionLoss::DetectionLoss(LossOptions options)
    : options_(std::move(options)),
      class_options_{options_.cls_pw, options_.fl_gamma, options_.label_smoothing},
      assigner_options_{options_.topk, options_.alpha, options_.beta} {
  TORCH_CHECK(options_.classes > 0 && !options_.strides.empty(), "[DetectionLoss] needs classes and strides");
}

GroundTruths DetectionLoss::ground_truths(const std::vector<torch::Tensor>& maps, const torch::Tensor& targets) const {
  const auto& first = maps.front();
  const auto rows = targets.detach().to(first.device(), at::kFloat).reshape({-1, 6});
  const double height = static_cast<double>(first.size(2)) * options_.strides.front();
  const double width = static_cast<double>(first.size(3)) * options_.strides.front();
  const auto size = at::tensor({width, height, width, height}, rows.options());
  auto box = centre_to_corner(rows.narrow(1, 2, 4) * size);
  auto image = rows.select(1, 0).to(at::kLong);
  // Rows whose corners do not add up to something positive are padding. Order within an image decides ties.
  const auto real = (box.sum(1) > 0).nonzero().squeeze(1);
  const auto order = real.index_select(0, at::argsort(image.index_select(0, real), /*stable=*/true, 0, false));
  return {image.index_select(0, order), rows.select(1, 1).index_select(0, order).to(at::kLong),
          box.index_select(0, order)};
}

DetectionLoss::Targets DetectionLoss::assign(const std::vector<torch::Tensor>& maps, const torch::Tensor& targets,
                                             int64_t chunk_pairs) const {
  const at::NoGradGuard no_grad;
  AssignerOptions assigner = assigner_options_;
  if (chunk_pairs > 0) assigner.chunk_pairs = chunk_pairs;
  const auto grid = make_anchors(maps, options_.strides);
  std::vector<torch::Tensor> distances;
  ClassScores scores;
  for (const auto& map : maps) {
    TORCH_CHECK(map.size(1) == 4 * options_.reg_max + options_.classes, "[DetectionLoss] a map has ", map.size(1),
                " channels instead of ", 4 * options_.reg_max + options_.classes);
    distances.push_back(expected_distances(map, options_.reg_max));
    scores.levels.push_back(map.detach().narrow(1, 4 * options_.reg_max, options_.classes));
  }
  const auto stride = grid.strides.unsqueeze(1);
  auto boxes = distances_to_corner(at::cat(distances, 1), grid.points).mul_(stride);
  Targets result{ground_truths(maps, targets), {}};
  result.positives = assign_targets(result.truths, boxes, scores, grid.points * stride, assigner);
  return result;
}

DetectionLoss::Branch DetectionLoss::branch(const std::vector<torch::Tensor>& maps, const torch::Tensor& targets,
                                            const torch::Tensor& sum, int64_t chunk_pairs) const {
  const auto [truths, positives] = assign(maps, targets, chunk_pairs);
  const auto grid = make_anchors(maps, options_.strides);
  const auto label = truths.label.index_select(0, positives.truth);
  const auto score_sum = positives.score.sum();
  const auto divisor = (sum.defined() ? sum.to(score_sum.device()) : score_sum).clamp_min(1);

  // The positives are ordered by anchor, so each level's are one run.
  const auto starts = at::tensor(grid.starts, at::TensorOptions(at::kLong)).to(positives.anchor.device());
  const auto bounds = at::searchsorted(positives.anchor, starts).to(at::kCPU);
  std::vector<torch::Tensor> backgrounds, box_logits, class_logits;
  for (size_t level = 0; level < maps.size(); ++level) {
    const int64_t begin = bounds.const_data_ptr<int64_t>()[level];
    const int64_t count = bounds.const_data_ptr<int64_t>()[level + 1] - begin;
    const auto run = [&](const torch::Tensor& all) { return all.narrow(0, begin, count); };
    const auto terms = read_level(maps[level], run(positives.image), run(positives.anchor) - grid.starts[level],
                                  run(label), 4 * options_.reg_max, class_options_);
    backgrounds.push_back(terms.background);
    box_logits.push_back(terms.box_logits);
    class_logits.push_back(terms.class_logits);
  }
  auto cls = at::stack(backgrounds).sum();
  const auto none = at::zeros({}, positives.score.options());
  if (positives.anchor.size(0) == 0) return {at::stack({none, cls / divisor, none}), score_sum};

  cls = cls + positive_correction(at::cat(class_logits), positives.score, class_options_).sum();
  const auto stride = grid.strides.index_select(0, positives.anchor).unsqueeze(1);
  const auto [box, dfl] = regression_loss(at::cat(box_logits).unflatten(1, {4, options_.reg_max}),
                                          truths.box.index_select(0, positives.truth) / stride,
                                          grid.points.index_select(0, positives.anchor), positives.score);
  return {at::stack({box, cls, dfl}) / divisor, score_sum};
}

LossResult DetectionLoss::operator()(const HeadOutput& maps, const torch::Tensor& targets,
                                     const SliceContext& slice) const {
  TORCH_CHECK(!maps.main.empty(), "[DetectionLoss] no maps");
  const bool dual = !maps.aux.empty();
  const auto sum_of = [&](int64_t index) {
    return slice.score_sums.defined() ? slice.score_sums[index] : torch::Tensor();
  };
  const auto main = branch(maps.main, targets, sum_of(dual ? 1 : 0), slice.chunk_pairs);
  auto items = main.items;
  auto sums = main.score_sum.unsqueeze(0);
  if (dual) {
    const auto aux = branch(maps.aux, targets, sum_of(0), slice.chunk_pairs);
    items = aux.items * options_.aux_weight + items;
    sums = at::stack({aux.score_sum, main.score_sum});
  }
  const auto gains = at::tensor({options_.box_gain, options_.cls_gain, options_.dfl_gain}, at::kDouble);
  items = items * gains.to(items.options());
  const int64_t batch = slice.batch_size > 0 ? slice.batch_size : maps.main.front().size(0);
  return {items.sum() * batch, items.detach(), sums};
}

torch::Tensor DetectionLoss::score_sums(const HeadOutput& maps, const torch::Tensor& targets,
                                        int64_t chunk_pairs) const {
  const auto sum_of = [&](const std::vector<torch::Tensor>& branch_maps) {
    return assign(branch_maps, targets, chunk_pairs).positives.score.sum();
  };
  if (maps.aux.empty()) return sum_of(maps.main).unsqueeze(0);
  return at::stack({sum_of(maps.aux), sum_of(maps.main)});
}

}  // namespace yolo9
