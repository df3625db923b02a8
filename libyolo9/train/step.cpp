#include <yolo9/train/step.h>

#include <c10/core/GradMode.h>

#include <yolo9/core/error.h>
#include <yolo9/core/log.h>
#include <yolo9/memory/host_source.h>
#include <yolo9/memory/oom.h>

namespace yolo9 {

namespace {

// Rows of targets whose image lies in [first, first + count), renumbered from 0.
torch::Tensor slice_targets(const torch::Tensor& targets, int64_t first, int64_t count) {
  const auto image = targets.select(1, 0);
  auto rows = targets.index({(image >= first).logical_and(image < first + count)}).clone();
  rows.select(1, 0).sub_(first);
  return rows;
}

StepShape shape_of(const std::vector<Draw>& draws) {
  StepShape shape;
  for (const auto& draw : draws) {
    shape.draw_size = std::max(shape.draw_size, draw.batch.size());
    shape.height = std::max(shape.height, draw.height > 0 ? draw.height : draw.batch.images.size(2));
    shape.width = std::max(shape.width, draw.width > 0 ? draw.width : draw.batch.images.size(3));
    shape.boxes = std::max(shape.boxes, draw.batch.targets.size(0));
  }
  return shape;
}

}  // namespace

SplitMode parse_split_mode(const std::string& name) {
  if (name == "exact") return SplitMode::Exact;
  if (name == "official") return SplitMode::Official;
  throw Error(ErrorKind::Usage, "unknown split mode \"" + name + "\"", "", "use exact or official");
}

torch::Tensor to_network_input(const torch::Tensor& images, torch::Device device, int64_t height, int64_t width,
                               torch::MemoryFormat format) {
  auto input = images.to(device, /*non_blocking=*/true).to(torch::kFloat32, false, false, format);
  input.div_(255);
  if (height > 0 && width > 0 && (height != input.size(2) || width != input.size(3)))
    input = at::upsample_bilinear2d(input, {height, width}, /*align_corners=*/false);
  return input;
}

TrainStep::TrainStep(DetectionModel model, const DetectionLoss& loss, ParameterStore& store, Optimizer& optimizer,
                     Ema* ema, Governor& governor, Communicator& communicator, StepOptions options)
    : model_(std::move(model)),
      loss_(loss),
      store_(store),
      optimizer_(optimizer),
      ema_(ema),
      governor_(governor),
      communicator_(communicator),
      options_(options),
      before_step_(store.forward_state()),
      before_draw_(store.forward_state()),
      norm_scratch_(make_norm_scratch(optimizer.groups())) {}

StepReport TrainStep::run(const std::vector<Draw>& draws, bool commit_step) {
  TORCH_CHECK(!draws.empty(), "[TrainStep::run] no draws");
  const StepShape shape = shape_of(draws);
  int64_t micro_batch = governor_.plan(shape);
  before_step_.save();
  model_->train();
  StepReport report;
  for (;;) {
    governor_.source().reset_peak();
    const bool failed = !attempt(draws, micro_batch, report);
    if (!communicator_.any(failed)) break;
    before_step_.restore();
    store_.zero_gradients();
    micro_batch = governor_.shrink(shape, micro_batch);
  }
  for (const auto& draw : draws) report.images += draw.batch.size();
  if (commit_step) commit(report);
  store_.zero_gradients();
  report.memory = governor_.observe(shape, micro_batch);
  return report;
}

// True when all draws went through. An out-of-memory is only noted inside the handler: the step's tensors are gone
// by the time anything is undone.
bool TrainStep::attempt(const std::vector<Draw>& draws, int64_t micro_batch, StepReport& report) {
  const HostBudgetScope budgeted;
  report.draws.assign(draws.size(), {});
  try {
    for (size_t i = 0; i < draws.size(); ++i) run_draw(draws[i], micro_batch, report.draws[i]);
    return true;
  } catch (const std::exception& error) {
    if (!is_out_of_memory(error)) throw;
  }
  return false;
}

void TrainStep::run_draw(const Draw& draw, int64_t micro_batch, DrawReport& report) {
  const Batch& batch = draw.batch;
  const auto device = store_.statistics().device();
  report.boxes = batch.targets.size(0);
  SliceContext context;
  context.batch_size = batch.size();
  const bool cut = micro_batch < batch.size();
  if (cut && options_.split == SplitMode::Exact) context.score_sums = draw_sums(draw, micro_batch);
  // With sums of its own, a slice stands for itself, as a batch of the official trainer's accumulation does.
  if (cut && options_.split == SplitMode::Official) context.batch_size = 0;
  for (int64_t first = 0; first < batch.size(); first += micro_batch) {
    const int64_t count = std::min(micro_batch, batch.size() - first);
    const auto targets = cut ? slice_targets(batch.targets, first, count) : batch.targets;
    LossResult loss;
    {
      const auto input = to_network_input(batch.images.narrow(0, first, count), device, draw.height, draw.width,
                                          options_.memory_format);
      loss = loss_(model_->forward(input), targets.to(device), context);
    }
    loss.total.backward();
    // A slice with its own sums is a mean over its images; the draw's figure weighs it by its share.
    const double share = cut && options_.split == SplitMode::Official
                             ? static_cast<double>(count) / static_cast<double>(batch.size())
                             : 1.0;
    const auto items = loss.items.to(torch::kCPU, torch::kFloat64);
    for (int64_t k = 0; k < 3; ++k) report.items[static_cast<size_t>(k)] += share * items.data_ptr<double>()[k];
    report.total += loss.total.item<double>();
  }
}

// The draw's sums of target scores, slice by slice, leaving BatchNorm's statistics and the generators as they were.
torch::Tensor TrainStep::draw_sums(const Draw& draw, int64_t micro_batch) {
  c10::NoGradGuard no_grad;
  before_draw_.save();
  torch::Tensor sums;
  const Batch& batch = draw.batch;
  const auto device = store_.statistics().device();
  for (int64_t first = 0; first < batch.size(); first += micro_batch) {
    const int64_t count = std::min(micro_batch, batch.size() - first);
    const auto input =
        to_network_input(batch.images.narrow(0, first, count), device, draw.height, draw.width, options_.memory_format);
    const auto part = loss_.score_sums(model_->forward(input), slice_targets(batch.targets, first, count).to(device));
    sums = sums.defined() ? sums + part : part;
  }
  before_draw_.restore();
  return sums;
}

void TrainStep::commit(StepReport& report) {
  c10::NoGradGuard no_grad;
  const HostBudgetScope counted;
  const int64_t allocations_before = host_scoped_allocations();
  for (auto& group : optimizer_.groups()) communicator_.all_reduce_mean(group.gradient);
  report.gradient_norm = clip_gradients(optimizer_.groups(), options_.clip_norm, norm_scratch_);
  report.finite = std::isfinite(report.gradient_norm);
  if (report.finite) {
    optimizer_.step();
    if (ema_) ema_->update();
    report.committed = true;
  }
  report.commit_allocations = host_scoped_allocations() - allocations_before;
}

}  // namespace yolo9
