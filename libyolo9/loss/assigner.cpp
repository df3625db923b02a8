#include <yolo9/loss/assigner.h>

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <yolo9/core/boxes.h>

namespace yolo9 {
namespace {

// score^alpha * overlap^beta for each pair. On the CPU every element is computed alone: vectorised kernels round
// transcendental functions differently at the end of a range, and the result would depend on the chunks.
torch::Tensor alignment(const torch::Tensor& scores, bool are_logits, const torch::Tensor& overlap,
                        const AssignerOptions& options) {
  if (!scores.is_cpu())
    return (are_logits ? scores.sigmoid() : scores).pow(options.alpha) * overlap.pow(options.beta);
  const float alpha = static_cast<float>(options.alpha), beta = static_cast<float>(options.beta);
  const auto score = scores.contiguous(), base = overlap.contiguous();
  auto metric = at::empty_like(base);
  const float *s = score.const_data_ptr<float>(), *o = base.const_data_ptr<float>();
  float* out = metric.mutable_data_ptr<float>();
  at::parallel_for(0, metric.numel(), 4096, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const float p = are_logits ? 1.0f / (1.0f + std::exp(-s[i])) : s[i];
      const float left = alpha == 0.5f ? std::sqrt(p) : alpha == 1.0f ? p : std::pow(p, alpha);
      const float cube = o[i] * o[i] * o[i];
      out[i] = left * (beta == 6.0f ? cube * cube : std::pow(o[i], beta));
    }
  });
  return metric;
}

class Assigner {
 public:
  Assigner(const GroundTruths& truths, const torch::Tensor& boxes, const ClassScores& scores,
           const torch::Tensor& points, const AssignerOptions& options)
      : truths_(truths),
        scores_(scores),
        points_(points),
        options_(options),
        batch_(boxes.size(0)),
        anchors_(boxes.size(1)),
        boxes_(boxes.reshape({-1, 4})),
        truth_angle_(aspect_angle(truths.box)),
        box_angle_(aspect_angle(boxes_)) {}

  Assignment run() const {
    auto [truth, anchor] = candidates();
    std::tie(truth, anchor) = resolve_conflicts(truth, anchor);
    const auto image = truths_.image.index_select(0, truth);
    const auto order = at::argsort(anchor * batch_ + image);
    Assignment result{image.index_select(0, order), anchor.index_select(0, order), truth.index_select(0, order), {}};
    result.score = target_scores(result.truth, result.anchor);
    return result;
  }

 private:
  torch::Tensor cell_of(const torch::Tensor& truth, const torch::Tensor& anchor) const {
    return truths_.image.index_select(0, truth) * anchors_ + anchor;
  }

  // CIoU of listed pairs, clamped at 0.
  torch::Tensor overlap_of(const torch::Tensor& truth, const torch::Tensor& anchor) const {
    const auto cell = cell_of(truth, anchor);
    return corner_ciou(truths_.box.index_select(0, truth), boxes_.index_select(0, cell),
                       truth_angle_.index_select(0, truth), box_angle_.index_select(0, cell))
        .clamp_min_(0);
  }

  torch::Tensor metric_of(const torch::Tensor& truth, const torch::Tensor& anchor,
                          const torch::Tensor& overlap) const {
    const auto image = truths_.image.index_select(0, truth), label = truths_.label.index_select(0, truth);
    torch::Tensor picked;
    int64_t start = 0;
    for (const auto& level : scores_.levels) {
      const int64_t width = level.size(3), cells = level.size(2) * width;
      const auto cell = (anchor - start).clamp(0, cells - 1);
      const auto here = level.index({image, label, at::floor_divide(cell, width), at::remainder(cell, width)});
      picked = picked.defined() ? at::where(anchor >= start, here, picked) : here;
      start += cells;
    }
    return alignment(picked.to(at::kFloat), scores_.are_logits, overlap, options_);
  }

  // Per ground truth the top-k anchors by metric among those inside it.
  std::pair<torch::Tensor, torch::Tensor> candidates() const {
    const int64_t count = truths_.box.size(0);
    const int64_t rows = std::max<int64_t>(1, options_.chunk_pairs / std::max<int64_t>(1, anchors_));
    const int64_t topk = std::min(options_.topk, anchors_);
    std::vector<torch::Tensor> truth, anchor;
    for (int64_t first = 0; first < count; first += rows) {
      const int64_t chunk = std::min(rows, count - first);
      const auto inside = inside_of(truths_.box.narrow(0, first, chunk));
      const auto pairs = inside.nonzero();
      const auto row = pairs.select(1, 0), column = pairs.select(1, 1);
      auto metric = at::zeros({chunk, anchors_}, points_.options());
      metric.index_put_({row, column}, metric_of(row + first, column, overlap_of(row + first, column)));
      const auto best = std::get<1>(metric.topk(topk, 1));
      const auto kept = inside.gather(1, best).nonzero();
      truth.push_back(kept.select(1, 0) + first);
      anchor.push_back(best.index({kept.select(1, 0), kept.select(1, 1)}));
    }
    return {at::cat(truth), at::cat(anchor)};
  }

  // bool [chunk, A]: the smallest distance from the anchor point to the sides exceeds eps.
  torch::Tensor inside_of(const torch::Tensor& box) const {
    const auto side = box.unbind(1), point = points_.unbind(1);
    const auto within = [&](size_t axis) {
      const auto to_low = point[axis].unsqueeze(0) - side[axis].unsqueeze(1);
      return at::minimum(to_low, side[axis + 2].unsqueeze(1) - point[axis].unsqueeze(0));
    };
    return at::minimum(within(0), within(1)) > options_.eps;
  }

  // An anchor wanted by several ground truths goes to the one with the greatest overlap among all of its image,
  // even one that did not want it; the first on equality.
  std::pair<torch::Tensor, torch::Tensor> resolve_conflicts(const torch::Tensor& truth,
                                                            const torch::Tensor& anchor) const {
    const auto cell = cell_of(truth, anchor);
    auto wanted = at::zeros({batch_ * anchors_}, cell.options());
    wanted.index_add_(0, cell, at::ones_like(cell));
    const auto shared = (wanted > 1).nonzero().squeeze(1);
    if (shared.size(0) == 0) return {truth, anchor};
    const auto winner = greatest_overlap(shared);
    const auto single = (wanted.index_select(0, cell) == 1).nonzero().squeeze(1);
    return {at::cat({truth.index_select(0, single), winner}),
            at::cat({anchor.index_select(0, single), at::remainder(shared, anchors_)})};
  }

  // cells: ascending image * A + anchor.
  torch::Tensor greatest_overlap(const torch::Tensor& cells) const {
    const auto count_by_image = [&](const torch::Tensor& image) {
      return at::bincount(image, {}, batch_).to(at::kCPU);
    };
    const auto truths = count_by_image(truths_.image), shared = count_by_image(at::floor_divide(cells, anchors_));
    std::vector<torch::Tensor> winners;
    int64_t first_truth = 0, first_cell = 0;
    for (int64_t image = 0; image < batch_; ++image) {
      const int64_t truth_count = truths.const_data_ptr<int64_t>()[image];
      const int64_t last_cell = first_cell + shared.const_data_ptr<int64_t>()[image];
      // Every pair has its overlap here, not only those inside: a quarter of the pairs takes the same memory.
      const int64_t rows = std::max<int64_t>(1, options_.chunk_pairs / 4 / std::max<int64_t>(1, truth_count));
      const auto box = truths_.box.narrow(0, first_truth, truth_count).unsqueeze(0);
      const auto angle = truth_angle_.narrow(0, first_truth, truth_count).unsqueeze(0);
      for (; first_cell < last_cell; first_cell += std::min(rows, last_cell - first_cell)) {
        const auto cell = cells.narrow(0, first_cell, std::min(rows, last_cell - first_cell));
        const auto overlap = corner_ciou(box, boxes_.index_select(0, cell).unsqueeze(1), angle,
                                         box_angle_.index_select(0, cell).unsqueeze(1))
                                 .clamp_min_(0);
        winners.push_back(overlap.argmax(1) + first_truth);
      }
      first_truth += truth_count;
    }
    return at::cat(winners);
  }

  // metric * largest overlap of the truth / (largest metric of the truth + eps), over the final positives.
  torch::Tensor target_scores(const torch::Tensor& truth, const torch::Tensor& anchor) const {
    const auto overlap = overlap_of(truth, anchor), metric = metric_of(truth, anchor, overlap);
    const auto largest = [&](const torch::Tensor& values) {
      auto per_truth = at::zeros({truths_.box.size(0)}, values.options());
      per_truth.scatter_reduce_(0, truth, values, "amax");
      return per_truth.index_select(0, truth);
    };
    return metric * largest(overlap) / (largest(metric) + options_.eps);
  }

  const GroundTruths& truths_;
  const ClassScores& scores_;
  const torch::Tensor& points_;
  const AssignerOptions& options_;
  const int64_t batch_, anchors_;
  const torch::Tensor boxes_;                    // [B*A,4]
  const torch::Tensor truth_angle_, box_angle_;  // [N], [B*A]
};

}  // namespace

Assignment assign_targets(const GroundTruths& truths, const torch::Tensor& boxes, const ClassScores& scores,
                          const torch::Tensor& points, const AssignerOptions& options) {
  const at::NoGradGuard no_grad;
  int64_t anchors = 0;
  for (const auto& level : scores.levels) anchors += level.size(2) * level.size(3);
  TORCH_CHECK(anchors == boxes.size(1) && anchors == points.size(0), "[assign_targets] ", anchors, " scores, ",
              boxes.size(1), " boxes and ", points.size(0), " anchor points do not agree");
  if (truths.box.size(0) == 0) {
    const auto none = at::empty({0}, truths.image.options());
    return {none, none, none, at::empty({0}, boxes.options())};
  }
  return Assigner(truths, boxes, scores, points, options).run();
}

}  // namespace yolo9
