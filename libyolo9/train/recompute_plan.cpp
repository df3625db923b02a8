#include <yolo9/train/recompute_plan.h>

#include <algorithm>

#include <ATen/ATen.h>

#include <yolo9/nn/recipe.h>

namespace yolo9 {

namespace {

using Segment = DetectionModelImpl::Segment;

// Large enough that no map is smaller than an allocator's rounding, and a multiple of every stride.
constexpr int64_t kMeasureSize = 256;
constexpr double kWorkOfLevel[] = {0, 0.2, 0.5, 1};

int64_t bytes_of(const std::vector<torch::Tensor>& maps) {
  int64_t sum = 0;
  for (const auto& map : maps) sum += static_cast<int64_t>(map.nbytes());
  return sum;
}

struct Candidate {
  Segment segment;
  int64_t freed_bytes = 0;
  double work = 0;
};

// Bytes of the segment's outputs that are read behind it; they are kept in any case. The head's go to the loss.
int64_t result_bytes(const DetectionModelImpl& model, const std::vector<LayerCost>& costs, const Segment& segment) {
  const auto& layers = model.graph().layers;
  int64_t sum = 0;
  for (int64_t i = segment.first; i <= segment.last; ++i) {
    bool read = i + 1 == static_cast<int64_t>(layers.size());
    for (auto reader = static_cast<size_t>(segment.last + 1); reader < layers.size(); ++reader)
      for (const int64_t source : layers[reader].sources) read = read || source == i;
    if (read) sum += costs[static_cast<size_t>(i)].output_bytes;
  }
  return sum;
}

}  // namespace

std::vector<LayerCost> measure_layers(DetectionModel& model, MemorySource& source, StepState& state,
                                      torch::MemoryFormat format) {
  const auto& infos = model->layers();
  std::vector<LayerCost> costs(infos.size());
  const auto parameters = model->parameters();
  const auto device = parameters.front().device();
  const bool training = model->is_training();
  state.save();
  model->set_segments({}, nullptr);
  model->train();
  const at::AutoGradMode gradients(true);
  const RebuildInputsScope lean;
  {
    const auto picture =
        at::zeros({1, 3, kMeasureSize, kMeasureSize}, parameters.front().options().requires_grad(false))
            .to(device)
            .contiguous(format);
    int64_t before = source.sample().allocated_bytes;
    model->set_observer([&](int64_t layer, const Maps& output) {
      const int64_t now = source.sample().allocated_bytes;
      auto& cost = costs[static_cast<size_t>(layer)];
      cost.kept_bytes = std::max<int64_t>(0, now - before);
      cost.output_bytes = bytes_of(output);
      before = now;
    });
    const HeadOutput output = model->forward(picture);
    model->set_observer(nullptr);
    costs.back().output_bytes = bytes_of(output.aux) + bytes_of(output.main);
    costs.back().kept_bytes = std::max<int64_t>(0, source.sample().allocated_bytes - before);
  }
  state.restore();
  model->train(training);
  for (size_t i = 0; i < infos.size(); ++i) {
    double cells = 0;
    if (i + 1 < infos.size()) {
      cells = std::pow(static_cast<double>(kMeasureSize) / infos[i].stride, 2);
    } else {
      for (const double stride : model->strides())
        cells += std::pow(static_cast<double>(kMeasureSize) / stride, 2) / static_cast<double>(model->strides().size());
    }
    costs[i].work = static_cast<double>(infos[i].parameters) * cells;
  }
  return costs;
}

RecomputePlan plan_recomputation(const DetectionModelImpl& model, const std::vector<LayerCost>& costs) {
  int64_t costliest = 0;
  double all_work = 0;
  for (const auto& cost : costs) {
    costliest = std::max(costliest, cost.kept_bytes);
    all_work += cost.work;
  }
  std::vector<Candidate> candidates;
  for (size_t first = 0; first < costs.size();) {
    size_t last = first;
    int64_t kept = costs[first].kept_bytes;
    double work = costs[first].work;
    // The head stays alone: it is run branch by branch.
    while (last + 2 < costs.size() && kept + costs[last + 1].kept_bytes <= costliest) {
      ++last;
      kept += costs[last].kept_bytes;
      work += costs[last].work;
    }
    const Segment segment{static_cast<int64_t>(first), static_cast<int64_t>(last)};
    const int64_t freed = kept - result_bytes(model, costs, segment);
    if (freed > 0 && work > 0) candidates.push_back({segment, freed, work});
    first = last + 1;
  }
  std::stable_sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return static_cast<double>(a.freed_bytes) * b.work > static_cast<double>(b.freed_bytes) * a.work;
  });
  RecomputePlan plan;
  for (size_t level = 1; level < plan.size(); ++level) {
    double work = 0;
    for (const auto& candidate : candidates) {
      work += candidate.work;
      if (work > all_work * kWorkOfLevel[level] && !plan[level].empty() && level < plan.size() - 1) break;
      plan[level].push_back(candidate.segment);
    }
    std::sort(plan[level].begin(), plan[level].end(),
              [](const Segment& a, const Segment& b) { return a.first < b.first; });
  }
  return plan;
}

}  // namespace yolo9
