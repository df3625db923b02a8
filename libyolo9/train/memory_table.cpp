#include <yolo9/train/memory_table.h>

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <yolo9/nn/deploy.h>

namespace yolo9 {

namespace {

// Sizes and box counts that the laws are learnt from: every pair of them. Each box finds anchors of its own.
constexpr int64_t kImages = 2, kSmall = 192, kLarge = 288, kFew = 8, kMany = 32;
// Anchors that a box is given: the assigner's top k.
constexpr int64_t kPositives = 10;

// Boxes in a picture so crowded that the assigner is the loss's highest moment.
constexpr int64_t kCrowd = 80, kCrowdSizes[] = {256, 384};
// The parts of a recorded step: what precedes and what follows the three that count is empty.
enum Part : size_t { kForward = 1, kLoss = 2, kBackward = 3, kParts = 5 };

AllocationTrace recorded(const std::function<void()>& run) {
  start_host_trace();
  try {
    run();
  } catch (...) {
    stop_host_trace();
    throw;
  }
  return stop_host_trace();
}

int64_t bytes_of(const torch::Tensor& tensor) {
  return tensor.defined() ? static_cast<int64_t>(tensor.nbytes()) : int64_t{0};
}

int64_t weight_bytes(const torch::nn::Module& model) {
  int64_t sum = 0;
  for (const auto& tensor : model.parameters()) sum += bytes_of(tensor);
  for (const auto& tensor : model.buffers()) sum += bytes_of(tensor);
  return sum;
}

}  // namespace

void PhaseSource::reset_peak() {
  part_ = 0;
  host_trace_mark("forward");
  host_.reset_peak();
}

int64_t PhaseSource::take_peak() {
  static constexpr const char* kNext[] = {"loss", "backward", "update"};
  host_trace_mark(kNext[std::min<size_t>(part_++, 2)]);
  return host_.take_peak();
}

int64_t MemorySplit::total() const {
  return weights_bytes + gradients_bytes + optimizer_bytes + ema_bytes + activations_bytes + assignment_bytes +
         workspace_bytes;
}

MemorySplit MemorySplit::sharded(int64_t ranks) const {
  MemorySplit out = *this;
  out.optimizer_bytes = (optimizer_bytes + ranks - 1) / ranks;
  return out;
}

int64_t StepBytes::peak() const { return std::max({forward, loss, backward}); }

int64_t optimizer_bytes(OptimizerKind kind, int64_t parameters) {
  const HostMemorySource source;
  const auto live_with = [&](int64_t count) {
    std::vector<ParameterGroup> groups(3);
    for (auto& group : groups) group.value = group.gradient = at::zeros({0});
    groups[0].value = groups[0].gradient = at::zeros({count});
    const int64_t before = source.sample().allocated_bytes;
    const auto optimizer = make_optimizer(kind, std::move(groups), 0.9);
    return source.sample().allocated_bytes - before;
  };
  // All of it but a few counters is per parameter, so that two small ones show what a large one takes.
  constexpr int64_t kCount = 1024;
  const int64_t one = live_with(kCount), two = live_with(2 * kCount);
  return 2 * one - two + (two - one) / kCount * parameters;
}

MemoryTable::MemoryTable(const std::string& config, int64_t classes) : source_(std::make_shared<PhaseSource>()) {
  const int64_t before = source_->sample().allocated_bytes;
  ModelOptions model_options;
  model_options.classes = classes;
  KitOptions options;
  options.governor.mode = GovernorMode::Watch;
  options.governor.ladder.max_checkpointing = kMaxCheckpointing;
  options.step.amp = AmpMode::BFloat16;  // whether a step uses it, its setting says
  kit_.assemble(DetectionModel(config, model_options), DetectionModel(nullptr), source_, options);
  const Baseline known = kit_.baseline();
  rollback_bytes_ = std::max<int64_t>(0, source_->sample().allocated_bytes - before - known.total());
}

int64_t MemoryTable::largest_stride() const {
  const auto strides = kit_.model->strides();
  return static_cast<int64_t>(*std::max_element(strides.begin(), strides.end()));
}

LoadTerms MemoryTable::terms_of(const Load& load) const {
  const int64_t anchors = kit_.model->anchors(load.height, load.width);
  // A box finds kPositives anchors, as long as there are free ones.
  const int64_t lucky = std::min(load.boxes, std::max<int64_t>(1, anchors / kPositives));
  return {static_cast<double>(load.images * load.height * load.width), static_cast<double>(load.images * lucky),
          static_cast<double>(std::min(load.images * load.boxes * anchors, kChunkPairs))};
}

std::vector<PartLaw> MemoryTable::fit_laws(const std::function<AllocationTrace(const Load&)>& record) const {
  const int64_t sizes[] = {kSmall, kLarge}, boxes[] = {kFew, kMany};
  RecordedLoad recorded_loads[2][2];
  for (int s = 0; s < 2; ++s)
    for (int n = 0; n < 2; ++n) {
      const Load load{kImages, sizes[s], sizes[s], boxes[n]};
      recorded_loads[s][n] = {terms_of(load), live_curves(record(load))};
    }
  return fit_part_laws(recorded_loads);
}

AllocationTrace MemoryTable::record_step(const Load& load, const StepKind& kind) {
  StepSetting setting;
  setting.micro_batch = load.images;
  setting.checkpointing = kind.checkpointing;
  setting.mixed_precision = kind.mixed_precision;
  const Draw draw = made_up_draw(load.images, load.height, load.width, load.boxes, kit_.model->classes());
  return recorded([&] { kit_.step->probe(draw, setting); });
}

StepBytes MemoryTable::run_step(const Load& load, const StepKind& kind) {
  const auto parts = live_curves(record_step(load, kind));
  TORCH_CHECK(parts.size() == kParts, "[MemoryTable::run_step] a step of ", parts.size(), " parts");
  const auto whole = [](double bytes) { return std::llround(bytes); };
  return {whole(parts[kForward].peak()), whole(parts[kLoss].peak()), whole(parts[kBackward].peak()),
          whole(parts[kForward].end), whole(parts[kLoss].end)};
}

void MemoryTable::measure(const StepKind& kind) {
  if (laws_.contains(kind)) return;
  // The first pass of a kind makes what is kept for all later ones.
  run_step({1, largest_stride() * 2, largest_stride() * 2, 1}, kind);
  auto laws = fit_laws([&](const Load& load) { return record_step(load, kind); });
  TORCH_CHECK(laws.size() == kParts, "[MemoryTable::measure] a step of ", laws.size(), " parts");
  // With few boxes the assigner hides behind the losses of all anchors; what it takes does not depend on the kind.
  if (!assigner_per_pair_) {
    double most = 0;
    for (const int64_t size : kCrowdSizes) {
      const Load load{1, size, size, kCrowd};
      const StepBytes bytes = run_step(load, kind);
      if (bytes.loss > peak_of(laws[kLoss], terms_of({1, size, size, kFew})))
        most = std::max(most, static_cast<double>(bytes.loss - bytes.after_forward) / terms_of(load).pairs);
    }
    assigner_per_pair_ = most;
  }
  MomentLaw assigner = laws[kForward].back();
  assigner.per_pair += *assigner_per_pair_;
  laws[kLoss].insert(laws[kLoss].begin(), assigner);
  laws_[kind] = std::move(laws);
}

StepBytes MemoryTable::step_bytes(const Load& load, const StepKind& kind) const {
  const auto found = laws_.find(kind);
  TORCH_CHECK(found != laws_.end(), "[MemoryTable::step_bytes] this kind of step was not measured");
  const LoadTerms terms = terms_of(load);
  const auto& laws = found->second;
  return {peak_of(laws[kForward], terms), peak_of(laws[kLoss], terms), peak_of(laws[kBackward], terms),
          peak_of({laws[kForward].back()}, terms), peak_of({laws[kLoss].back()}, terms)};
}

MemorySplit MemoryTable::training(const Load& load, const StepKind& kind, OptimizerKind optimizer) const {
  const StepBytes step = step_bytes(load, kind);
  const Baseline base = kit_.baseline();
  MemorySplit out;
  out.weights_bytes = base.weights_bytes;
  out.gradients_bytes = base.gradients_bytes;
  int64_t parameters = 0;
  for (const auto& group : kit_.store->groups()) parameters += group.values.numel();
  out.optimizer_bytes = optimizer_bytes(optimizer, parameters);
  for (const auto& tensor : kit_.store->floating_state()) out.ema_bytes += bytes_of(tensor);
  const int64_t peak = step.peak();
  out.activations_bytes = std::min(step.after_forward, peak);
  const int64_t above = peak - out.activations_bytes;
  if (step.loss == peak)
    out.assignment_bytes = above;
  else
    out.assignment_bytes = std::clamp<int64_t>(step.after_loss - step.after_forward, 0, above);
  out.workspace_bytes = rollback_bytes_ + above - out.assignment_bytes;
  return out;
}

int64_t MemoryTable::most_images(Load load, const StepKind& kind, OptimizerKind optimizer, int64_t bytes,
                                 int64_t limit) const {
  return largest_that_fits(limit, [&](int64_t images) {
    load.images = images;
    return training(load, kind, optimizer).total() <= bytes;
  });
}

AllocationTrace MemoryTable::record_training_step(const Load& load, const StepKind& kind, OptimizerKind optimizer) {
  const MemorySplit resting = training({}, kind, optimizer);
  AllocationTrace trace = record_step(load, kind);
  std::vector<int64_t> held;
  for (const int64_t bytes :
       {resting.weights_bytes, resting.gradients_bytes, resting.optimizer_bytes, resting.ema_bytes, rollback_bytes_})
    if (bytes > 0) held.push_back(bytes);
  trace.seed(held);
  return trace;
}

// ---- inference ----

const DetectionModel& MemoryTable::deployed(bool half) {
  const auto found = deployed_.find(half);
  if (found != deployed_.end()) return found->second;
  DetectionModel form = to_single_head(*kit_.model);
  form->eval();
  form->fuse();
  if (half) form->to(at::kBFloat16);
  return deployed_.emplace(half, form).first->second;
}

AllocationTrace MemoryTable::record_inference(const Load& load, bool half) {
  auto form = deployed(half);
  const c10::NoGradGuard no_grad;
  return recorded([&] {
    const HostBudgetScope counted;
    const auto pictures = at::zeros({load.images, 3, load.height, load.width}, half ? at::kBFloat16 : at::kFloat)
                              .contiguous(at::MemoryFormat::ChannelsLast);
    form->forward(pictures);
  });
}

int64_t MemoryTable::run_inference(const Load& load, bool half) { return record_inference(load, half).peak_bytes(); }

void MemoryTable::measure_inference(bool half) {
  if (inference_laws_.contains(half)) return;
  run_inference({1, largest_stride() * 2, largest_stride() * 2, 0}, half);
  auto laws = fit_laws([&](const Load& load) { return record_inference(load, half); });
  inference_laws_[half] = std::move(laws.at(0));
}

MemorySplit MemoryTable::inference(const Load& load, bool half) const {
  const auto law = inference_laws_.find(half);
  TORCH_CHECK(law != inference_laws_.end(), "[MemoryTable::inference] this precision was not measured");
  Load pictures = load;
  pictures.boxes = 0;
  MemorySplit out;
  out.weights_bytes = weight_bytes(*deployed_.at(half));
  out.activations_bytes = peak_of(law->second, terms_of(pictures));
  return out;
}

}  // namespace yolo9
