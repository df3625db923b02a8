#include <yolo9/train/step.h>

#include <cmath>

#include <c10/core/GradMode.h>

#include <yolo9/core/error.h>
#include <yolo9/core/log.h>
#include <yolo9/memory/host_source.h>
#include <yolo9/memory/oom.h>
#include <yolo9/memory/recompute.h>
#include <yolo9/nn/recipe.h>

namespace yolo9 {

namespace {

// The parts of a step whose peaks follow different laws.
enum Phase : size_t { kForward, kLoss, kBackward, kPhases };

}  // namespace

SplitMode parse_split_mode(const std::string& name) {
  if (name == "exact") return SplitMode::Exact;
  if (name == "official") return SplitMode::Official;
  throw Error(ErrorKind::Usage, "unknown split mode \"" + name + "\"", "", "use exact or official");
}

torch::Tensor slice_targets(const torch::Tensor& targets, int64_t first, int64_t count) {
  const auto image = targets.select(1, 0);
  auto rows = targets.index({(image >= first).logical_and(image < first + count)}).clone();
  rows.select(1, 0).sub_(first);
  return rows;
}

torch::Tensor to_network_input(const torch::Tensor& images, torch::Device device, int64_t height, int64_t width,
                               torch::MemoryFormat format) {
  auto input = images.to(device, /*non_blocking=*/true).to(torch::kFloat32, false, false, format);
  input.div_(255);
  if (height > 0 && width > 0 && (height != input.size(2) || width != input.size(3)))
    input = at::upsample_bilinear2d(input, {height, width}, /*align_corners=*/false);
  return input;
}

// Peaks of the phases over all slices of a step.
class TrainStep::PhaseMeter {
 public:
  explicit PhaseMeter(MemorySource& source) : source_(source), peaks_(kPhases) { source_.reset_peak(); }
  // What happened since the last mark belongs to this phase.
  void mark(Phase phase) { peaks_[phase] = std::max(peaks_[phase], source_.take_peak()); }
  const std::vector<int64_t>& peaks() const { return peaks_; }

 private:
  MemorySource& source_;
  std::vector<int64_t> peaks_;
};

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
      before_recomputation_(std::make_shared<StepState>(store.forward_state())),
      norm_scratch_(make_norm_scratch(optimizer.groups())) {
  const auto device = store.statistics().device();
  amp_type_ = amp_type(options_.amp, device);
  if (amp_type_ != at::kHalf) scaler_ = LossScaler(1);  // the other types have float32's range
  if (governor_.ladder().max_checkpointing > 0)
    recompute_plan_ =
        plan_recomputation(*model_, measure_layers(model_, governor_.source(), before_step_, options_.memory_format));
}

StepShape TrainStep::shape_of(const std::vector<Draw>& draws) const {
  StepShape shape;
  shape.light = draws.front().light;
  for (const auto& draw : draws) {
    shape.draw_size = std::max(shape.draw_size, draw.batch.size());
    shape.height = std::max(shape.height, draw.input_height());
    shape.width = std::max(shape.width, draw.input_width());
    const int64_t boxes = draw.batch.targets.size(0);
    if (boxes < shape.boxes) continue;
    shape.boxes = boxes;
    shape.image_boxes.assign(static_cast<size_t>(draw.batch.size()), 0);
    const auto images = draw.batch.targets.select(1, 0).to(torch::kCPU, torch::kFloat32).contiguous();
    for (int64_t i = 0; i < boxes; ++i) ++shape.image_boxes.at(static_cast<size_t>(images.const_data_ptr<float>()[i]));
  }
  shape.anchors = model_->anchors(shape.height, shape.width);
  return shape;
}

StepReport TrainStep::run(const std::vector<Draw>& draws, bool commit_step) {
  TORCH_CHECK(!draws.empty(), "[TrainStep::run] no draws");
  const StepShape shape = shape_of(draws);
  StepSetting setting = governor_.plan(shape);
  before_step_.save();
  model_->train();
  StepReport report;
  std::vector<int64_t> peaks;
  for (;;) {
    report.redraw = setting.lighter_augment && !draws.front().light;
    if (report.redraw) return report;
    PhaseMeter meter(governor_.source());
    const bool failed = !attempt(draws, setting, report, meter);
    peaks = meter.peaks();
    if (!communicator_.any(failed)) break;
    before_step_.restore();
    store_.zero_gradients();
    setting = governor_.shrink(shape, setting);
  }
  for (const auto& draw : draws) {
    report.images += draw.batch.size();
    report.micro_batches += (draw.batch.size() + setting.micro_batch - 1) / setting.micro_batch;
  }
  if (commit_step) commit(report, setting);
  store_.zero_gradients();
  report.memory = governor_.observe(shape, setting, std::move(peaks));
  return report;
}

// True when all draws went through. An out-of-memory is only noted inside the handler: the step's tensors are gone
// by the time anything is undone.
bool TrainStep::attempt(const std::vector<Draw>& draws, const StepSetting& setting, StepReport& report,
                        PhaseMeter& meter) {
  const HostBudgetScope budgeted;
  // Over the backward pass too, which may recompute.
  const RebuildInputsScope lean;
  report.draws.assign(draws.size(), {});
  try {
    apply(setting);
    for (size_t i = 0; i < draws.size(); ++i) run_draw(draws[i], setting, report.draws[i], meter);
    return true;
  } catch (const std::exception& error) {
    if (!is_out_of_memory(error)) throw;
  }
  return false;
}

void TrainStep::apply(const StepSetting& setting) {
  if (setting.checkpointing == level_) return;
  level_ = setting.checkpointing;
  model_->set_segments(
      recompute_plan_[static_cast<size_t>(level_)],
      [state = before_recomputation_](const SegmentFunction& run, const std::vector<torch::Tensor>& inputs) {
        return recompute(run, inputs, state);
      });
}

double TrainStep::loss_scale(const StepSetting& setting) const {
  return setting.mixed_precision ? scaler_.scale() : 1.0;
}

// Images [first, first + count) through the network, at the size that the draw and the setting ask for; raw maps in
// float32.
HeadOutput TrainStep::forward(const Draw& draw, int64_t first, int64_t count, const StepSetting& setting) {
  const auto device = store_.statistics().device();
  const auto& images = draw.batch.images;
  const auto [height, width] =
      shrunk_size(draw.input_height(), draw.input_width(), setting.image_shrink, governor_.ladder().stride);
  const auto input = to_network_input(images.narrow(0, first, count), device, height, width, options_.memory_format);
  const AutocastScope cast(device, amp_type_, setting.mixed_precision);
  HeadOutput output = model_->forward(input);
  if (setting.mixed_precision)
    for (auto* maps : {&output.aux, &output.main})
      for (auto& map : *maps) map = map.to(torch::kFloat32);
  return output;
}

void TrainStep::run_draw(const Draw& draw, const StepSetting& setting, DrawReport& report, PhaseMeter& meter) {
  const Batch& batch = draw.batch;
  const auto device = store_.statistics().device();
  report.boxes = batch.targets.size(0);
  SliceContext context;
  context.batch_size = batch.size();
  if (setting.small_chunks) context.chunk_pairs = kSmallChunkPairs;
  const bool cut = setting.micro_batch < batch.size();
  if (cut && options_.split == SplitMode::Exact) context.score_sums = draw_sums(draw, setting);
  // With sums of its own, a slice stands for itself, as a batch of the official trainer's accumulation does.
  if (cut && options_.split == SplitMode::Official) context.batch_size = 0;
  for (int64_t first = 0; first < batch.size(); first += setting.micro_batch) {
    const int64_t count = std::min(setting.micro_batch, batch.size() - first);
    const auto targets = cut ? slice_targets(batch.targets, first, count) : batch.targets;
    LossResult loss;
    {
      const HeadOutput output = forward(draw, first, count, setting);
      meter.mark(kForward);
      loss = loss_(output, targets.to(device), context);
    }
    meter.mark(kLoss);
    const double scale = loss_scale(setting) * draw.loss_factor();
    (scale == 1 ? loss.total : loss.total * scale).backward();
    meter.mark(kBackward);
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
torch::Tensor TrainStep::draw_sums(const Draw& draw, const StepSetting& setting) {
  c10::NoGradGuard no_grad;
  before_draw_.save();
  torch::Tensor sums;
  const Batch& batch = draw.batch;
  const auto device = store_.statistics().device();
  for (int64_t first = 0; first < batch.size(); first += setting.micro_batch) {
    const int64_t count = std::min(setting.micro_batch, batch.size() - first);
    const auto part =
        loss_.score_sums(forward(draw, first, count, setting), slice_targets(batch.targets, first, count).to(device),
                         setting.small_chunks ? kSmallChunkPairs : 0);
    sums = sums.defined() ? sums + part : part;
  }
  before_draw_.restore();
  return sums;
}

std::optional<std::vector<int64_t>> TrainStep::probe(const Draw& draw, const StepSetting& setting) {
  before_step_.save();
  const bool training = model_->is_training();
  model_->train();
  StepReport report;
  const int64_t rest = governor_.source().sample().allocated_bytes;
  PhaseMeter meter(governor_.source());
  const bool fitted = attempt({draw}, setting, report, meter);
  before_step_.restore();
  store_.zero_gradients();
  model_->train(training);
  if (!fitted) return std::nullopt;
  auto bytes = meter.peaks();
  for (auto& peak : bytes) peak = std::max<int64_t>(0, peak - rest);
  return bytes;
}

void TrainStep::commit(StepReport& report, const StepSetting& setting) {
  c10::NoGradGuard no_grad;
  const HostBudgetScope counted;
  const int64_t allocations_before = host_scoped_allocations();
  for (auto& group : optimizer_.groups()) communicator_.all_reduce_mean(group.gradient);
  report.loss_scale = loss_scale(setting);
  report.gradient_norm = clip_gradients(optimizer_.groups(), options_.clip_norm, norm_scratch_, report.loss_scale);
  report.finite = std::isfinite(report.gradient_norm);
  if (report.finite) {
    optimizer_.step();
    if (ema_) ema_->update();
    report.committed = true;
  }
  if (setting.mixed_precision && amp_type_ == at::kHalf) {
    // At the smallest scale it is no longer the scale's fault.
    report.overflow = !report.finite && scaler_.scale() > 1;
    scaler_.update(!report.finite);
  }
  report.commit_allocations = host_scoped_allocations() - allocations_before;
}

}  // namespace yolo9
