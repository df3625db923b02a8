#include <yolo9/train/trainer.h>

#include <atomic>
#include <chrono>
#include <filesystem>

#include <yolo9/core/error.h>
#include <yolo9/core/log.h>
#include <yolo9/memory/host_source.h>
#include <yolo9/train/dataset_facts.h>
#include <yolo9/train/image_weights.h>
#include <yolo9/train/run_setup.h>

namespace yolo9 {

namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Steps in a row without finite gradients after which a run is given up: it will not come back.
constexpr int64_t kMaxBadSteps = 20;

std::atomic<bool> stop_requested{false};

}  // namespace

struct Trainer::State {
  RunOptions options;
  Hyp hyp;
  std::string run_dir;
  std::vector<std::shared_ptr<Callback>> callbacks;
  RunParts parts;

  int64_t first_epoch = 0;
  int64_t iteration = 0;  // batches drawn so far
  int64_t last_step_iteration = -1;
  int64_t steps = 0;
  int64_t bad_steps = 0;
  int64_t epoch_iteration = 0;  // batches of this epoch drawn so far
  bool light_now = false;       // batches come without mosaic for the memory's sake, until the epoch ends
  int64_t epochs_done = 0;
  double best_fitness = -1;
  int64_t best_epoch = 0;
  std::vector<double> class_maps;
  EvalResult validation;  // the newest
  bool validated = false;

  std::string last_path() const { return run_dir + "/weights/last.pt"; }
  std::string best_path() const { return run_dir + "/weights/best.pt"; }

  void restore(const Checkpoint& checkpoint);
  Checkpoint capture(int64_t epoch) const;
  void save(int64_t epoch, bool best);
  void finish();

  bool mosaic_on(int64_t epoch) const {
    return options.close_mosaic == 0 || epoch < options.epochs - options.close_mosaic;
  }
  std::optional<std::vector<int64_t>> epoch_order(int64_t epoch) const;
  Draw make_draw(Batch batch, int64_t of_iteration) const;
  EpochEvent train_epoch(int64_t epoch);
  void start_loader(int64_t epoch, int64_t first_batch);
  void redraw(int64_t epoch, std::vector<Draw>& draws);
  void run_step(int64_t epoch, const StepPlan& plan, std::vector<Draw>& draws, EpochEvent& event, int64_t& counted);
  void evaluate_into(EpochEvent& event);
  EvalResult evaluate_model(DetectionModel& model, int64_t epoch);
  template <typename Event>
  void tell(void (Callback::*method)(const Event&), const Event& event) {
    for (const auto& callback : callbacks) ((*callback).*method)(event);
  }
};

// ---- what an epoch consists of ----

std::optional<std::vector<int64_t>> Trainer::State::epoch_order(int64_t epoch) const {
  if (!options.image_weights) return std::nullopt;
  const auto weights =
      image_weights(classes_per_image(*parts.train_set), static_cast<int64_t>(parts.names.size()), class_maps);
  Random random{options.seed, 0x1a9e5, static_cast<uint64_t>(epoch)};
  return draw_weighted(weights, parts.train_set->size(), random);
}

// Multi-scale draws the longest side from half to one and a half of the picture size, a pure function of the
// iteration so that a resumed run draws the same.
Draw Trainer::State::make_draw(Batch batch, int64_t of_iteration) const {
  Draw draw;
  draw.light = light_now || options.light;
  if (options.multi_scale) {
    constexpr double kStride = 32;
    const auto height = static_cast<double>(batch.images.size(2)), width = static_cast<double>(batch.images.size(3));
    Random random{options.seed, 0x5ca1e, static_cast<uint64_t>(of_iteration)};
    const auto size = static_cast<double>(parts.image_size * (options.quad ? 2 : 1));
    const double side = std::floor(random.uniform(size * 0.5, size * 1.5 + kStride) / kStride) * kStride;
    const double factor = side / std::max(height, width);
    draw.height = static_cast<int64_t>(std::ceil(height * factor / kStride) * kStride);
    draw.width = static_cast<int64_t>(std::ceil(width * factor / kStride) * kStride);
  }
  draw.batch = std::move(batch);
  return draw;
}

void Trainer::State::run_step(int64_t epoch, const StepPlan& plan, std::vector<Draw>& draws, EpochEvent& event,
                              int64_t& counted) {
  const bool commit = iteration - last_step_iteration >= plan.accumulate;
  for (size_t i = 0; i < 3; ++i) parts.optimizer->groups()[i].learning_rate = plan.learning_rates[i];
  if (parts.optimizer->has_momentum()) parts.optimizer->set_momentum(plan.momentum);
  StepReport report = parts.step->run(draws, commit);
  if (report.redraw) {
    redraw(epoch, draws);
    report = parts.step->run(draws, commit);
  }
  if (commit) {
    last_step_iteration = iteration;
    ++steps;
    bad_steps = report.finite ? 0 : bad_steps + 1;
    if (report.overflow)
      log_info("step " + std::to_string(steps) + ": float16 overflow number " +
               std::to_string(parts.step->scaler().overflows()) +
               ", the step is skipped and the loss scale halved to " +
               std::to_string(static_cast<int64_t>(parts.step->scaler().scale())));
    else if (!report.finite)
      log_warn("step " + std::to_string(steps) + ": the gradients are not finite, the step is skipped");
    if (bad_steps >= kMaxBadSteps)
      throw Error(ErrorKind::Usage, std::to_string(kMaxBadSteps) + " steps in a row had no finite gradients", run_dir,
                  "lower lr0, or check the labels with yolo9-data check; weights/last.pt is of the last good epoch");
  }
  for (const auto& draw : report.draws) {
    for (size_t k = 0; k < 3; ++k) event.losses[k] += draw.items[k];
    event.instances += draw.boxes;
    ++counted;
  }
  event.images += report.images;
  event.micro_batch = report.memory.micro_batch;
  event.accumulation = report.micro_batches;
  event.memory_bytes = std::max(event.memory_bytes, report.memory.peak_bytes);
  event.budget_bytes = report.memory.budget_bytes;
  StepEvent step{epoch, steps, iteration, report.micro_batches, 0, 0, &report, &draws};
  std::tie(step.height, step.width) =
      shrunk_size(draws.back().input_height(), draws.back().input_width(), report.memory.setting.image_shrink,
                  parts.governor->options().ladder.stride);
  if (commit) tell(&Callback::on_step, step);
  draws.clear();
}

void Trainer::State::start_loader(int64_t epoch, int64_t first_batch) {
  parts.train_loader->start(epoch, first_batch, epoch_order(epoch), mosaic_on(epoch) && !light_now);
}

// The same pictures again, without mosaic: the loader goes back to the step's first batch.
void Trainer::State::redraw(int64_t epoch, std::vector<Draw>& draws) {
  light_now = true;
  const auto count = static_cast<int64_t>(draws.size());
  // The step runs when its last batch has been drawn and counted.
  const int64_t first = epoch_iteration - count;
  log_info("memory: no mosaic, mixup and copy-paste for the rest of epoch " + std::to_string(epoch + 1));
  start_loader(epoch, first);
  for (int64_t i = 0; i < count; ++i) {
    auto batch = parts.train_loader->next();
    TORCH_CHECK(batch, "[redraw] the loader gave fewer batches than before");
    draws[static_cast<size_t>(i)] = make_draw(std::move(*batch), iteration - count + 1 + i);
  }
}

EpochEvent Trainer::State::train_epoch(int64_t epoch) {
  const auto start = Clock::now();
  EpochEvent event;
  event.epoch = epoch;
  event.epochs = options.epochs;
  event.image_size = parts.image_size;
  if (!mosaic_on(epoch) && (epoch == first_epoch || mosaic_on(epoch - 1)))
    log_info("mosaic is closed from epoch " + std::to_string(epoch + 1) + " on");
  light_now = false;
  epoch_iteration = 0;
  start_loader(epoch, 0);
  std::vector<Draw> draws;
  int64_t counted = 0;
  StepPlan plan;
  while (auto batch = parts.train_loader->next()) {
    plan = parts.schedule->plan(iteration, epoch);
    draws.push_back(make_draw(std::move(*batch), iteration));
    ++epoch_iteration;
    if (iteration - last_step_iteration >= plan.accumulate) run_step(epoch, plan, draws, event, counted);
    event.learning_rates = plan.learning_rates;
    ++iteration;
    if (stop_requested) {
      parts.train_loader->stop();
      return event;
    }
  }
  // What is left over at the end moves BatchNorm and the meters only; its gradients are dropped, as in the recipe.
  --iteration;
  if (!draws.empty()) run_step(epoch, plan, draws, event, counted);
  ++iteration;
  for (auto& loss : event.losses) loss /= static_cast<double>(std::max<int64_t>(1, counted));
  event.train_seconds = seconds_since(start);
  return event;
}

EvalResult Trainer::State::evaluate_model(DetectionModel& model, int64_t epoch) {
  const HostBudgetScope budgeted;
  EvalOptions eval;
  eval.names = parts.names;
  eval.device = parts.device;
  eval.on_batch = [&](int64_t index, const Batch& batch, const std::vector<torch::Tensor>& detections) {
    for (const auto& callback : callbacks) callback->on_validation_batch(epoch, index, batch, detections);
  };
  return evaluate(model, *parts.val_loader, eval);
}

void Trainer::State::evaluate_into(EpochEvent& event) {
  const auto start = Clock::now();
  const bool last = event.epoch + 1 == options.epochs;
  if (!options.no_val || last) {
    validation = evaluate_model(parts.ema_model, event.epoch);
    validated = true;
    class_maps = validation.class_maps(static_cast<int64_t>(parts.names.size()));
    event.validation = &validation;
    event.fitness = validation.fitness();
  }
  event.best = event.fitness >= best_fitness;
  if (event.best) {
    best_fitness = event.fitness;
    best_epoch = event.epoch;
  }
  event.validation_seconds = seconds_since(start);
}

// ---- checkpoints ----

void Trainer::State::restore(const Checkpoint& checkpoint) {
  if (checkpoint.data_fingerprint != fingerprint(*parts.train_set))
    throw Error(ErrorKind::Weights, "the training set is not the one this run began with", options.resume,
                "restore the data, or start a new run with --weights");
  first_epoch = checkpoint.epoch + 1;
  iteration = checkpoint.iteration;
  last_step_iteration = checkpoint.last_step_iteration;
  steps = checkpoint.steps;
  best_fitness = checkpoint.best_fitness;
  best_epoch = checkpoint.best_epoch;
  class_maps = checkpoint.class_maps;
  parts.optimizer->load_state(checkpoint.optimizer);
  parts.schedule->load_state(checkpoint.schedule);
  parts.ema->set_updates(checkpoint.ema_updates);
  if (checkpoint.scaler.size() == 3)
    parts.step->scaler().restore(checkpoint.scaler[0], static_cast<int64_t>(checkpoint.scaler[1]),
                                 static_cast<int64_t>(checkpoint.scaler[2]));
  parts.early_stop->restore(checkpoint.best_fitness, checkpoint.best_epoch);
}

Checkpoint Trainer::State::capture(int64_t epoch) const {
  Checkpoint out;
  out.config_text = parts.model->config_text();
  out.names = parts.names;
  out.model = state_dict(*parts.model);
  out.ema = state_dict(*parts.ema_model);
  out.epoch = epoch;
  out.iteration = iteration;
  out.last_step_iteration = last_step_iteration;
  out.steps = steps;
  out.ema_updates = parts.ema->updates();
  out.best_fitness = best_fitness;
  out.best_epoch = best_epoch;
  out.optimizer = parts.optimizer->state();
  out.schedule = parts.schedule->state();
  out.class_maps = class_maps;
  const LossScaler& scaler = parts.step->scaler();
  out.scaler = {scaler.scale(), static_cast<double>(scaler.good_steps()), static_cast<double>(scaler.overflows())};
  out.options_text = options_to_yaml(options);
  out.hyp_text = hyp_to_yaml(hyp);
  out.data_fingerprint = fingerprint(*parts.train_set);
  return out;
}

void Trainer::State::save(int64_t epoch, bool best) {
  const bool last = epoch + 1 == options.epochs;
  if (options.no_save && !last) return;
  const Checkpoint checkpoint = capture(epoch);
  save_checkpoint(last_path(), checkpoint);
  if (options.no_save) return;
  if (best || !std::filesystem::exists(best_path())) save_checkpoint(best_path(), checkpoint);
  if (options.save_period > 0 && (epoch + 1) % options.save_period == 0)
    save_checkpoint(run_dir + "/weights/epoch" + std::to_string(epoch) + ".pt", checkpoint);
}

// A finished run keeps what inference needs.
void Trainer::State::finish() {
  for (const std::string& path : {last_path(), best_path()}) {
    if (!std::filesystem::exists(path)) continue;
    Checkpoint checkpoint = load_checkpoint(path);
    strip_checkpoint(checkpoint);
    save_checkpoint(path, checkpoint);
  }
}

// ---- the run ----

Trainer::Trainer(RunOptions options, Hyp hyp, std::string run_dir, std::vector<std::shared_ptr<Callback>> callbacks)
    : state_(std::make_unique<State>()) {
  state_->options = std::move(options);
  state_->hyp = hyp;
  state_->run_dir = std::move(run_dir);
  state_->callbacks = std::move(callbacks);
}

Trainer::~Trainer() = default;

void Trainer::request_stop() noexcept { stop_requested = true; }

TrainResult Trainer::run() {
  State& s = *state_;
  const auto start = Clock::now();
  std::optional<Checkpoint> resumed;
  if (!s.options.resume.empty()) resumed = load_checkpoint(s.options.resume);
  const auto on_scan = [&s](int64_t done, int64_t total) {
    for (const auto& callback : s.callbacks) callback->on_scan(done, total);
  };
  s.parts = set_up_run(s.options, s.hyp, resumed ? &*resumed : nullptr, on_scan);
  if (resumed) s.restore(*resumed);
  resumed.reset();
  // What was planned is what a resumed run must ask for.
  s.options.batch = s.parts.batch;
  if (s.parts.memory_plan.rung != Rung::None)
    log_info("memory: planned " + describe(s.parts.memory_plan.setting) + ", peak " +
             format_bytes(s.parts.memory_plan.predicted_bytes) + " of " +
             format_bytes(s.parts.memory_plan.budget_bytes));
  std::filesystem::create_directories(s.run_dir + "/weights");
  s.tell(&Callback::on_start, RunStart{s.run_dir, &s.options, s.parts.names, s.first_epoch, s.options.epochs, s.steps,
                                       s.parts.train_loader->batches(), all_labels(*s.parts.train_set)});
  TrainResult result;
  result.run_dir = s.run_dir;
  result.last_path = s.last_path();
  for (int64_t epoch = s.first_epoch; epoch < s.options.epochs; ++epoch) {
    EpochEvent event = s.train_epoch(epoch);
    if (stop_requested) {
      result.interrupted = true;
      result.epochs_done = s.epochs_done;
      return result;
    }
    s.parts.schedule->end_epoch(epoch);
    s.evaluate_into(event);
    ++s.epochs_done;
    event.remaining_seconds =
        seconds_since(start) / static_cast<double>(s.epochs_done) * static_cast<double>(s.options.epochs - epoch - 1);
    // Told before it is saved: a run killed in between repeats the epoch and its row, and never lacks one.
    s.tell(&Callback::on_epoch, event);
    s.save(epoch, event.best);
    if (event.validation && s.parts.early_stop->should_stop(epoch, event.fitness)) {
      log_info("no better fitness for " + std::to_string(s.options.patience) + " epochs: stopped after epoch " +
               std::to_string(epoch + 1) + ", the best was " + std::to_string(s.best_epoch + 1));
      result.stopped_early = true;
      if (s.options.no_save) save_checkpoint(s.last_path(), s.capture(epoch));
      break;
    }
  }
  s.finish();
  result.best_path = std::filesystem::exists(s.best_path()) ? s.best_path() : s.last_path();
  result.best_fitness = s.best_fitness;
  result.best_epoch = s.best_epoch;
  result.epochs_done = s.epochs_done;
  {
    // Into the model that is there: a second one might not fit beside it.
    const Checkpoint best = load_checkpoint(result.best_path);
    load_state_dict(*s.parts.ema_model, best.ema.empty() ? best.model : best.ema);
  }
  result.validation = s.evaluate_model(s.parts.ema_model, s.options.epochs);
  s.tell(&Callback::on_end, RunEnd{s.run_dir, result.best_path, result.last_path, s.epochs_done, seconds_since(start),
                                   result.stopped_early, &result.validation});
  return result;
}

}  // namespace yolo9
