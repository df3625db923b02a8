#include <yolo9/train/run_setup.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include <ATen/Context.h>

#include <yolo9/core/error.h>
#include <yolo9/core/log.h>
#include <yolo9/data/quad.h>
#include <yolo9/memory/host_source.h>
#include <yolo9/train/run_data.h>

namespace yolo9 {

namespace {

// What a file's weights filled of the model, in one line.
void load_initial_weights(DetectionModel& model, const std::string& path) {
  const LoadReport report = load_state_dict(*model, load_weights(path));
  if (report.loaded == 0)
    throw Error(ErrorKind::Weights, "none of its tensors fits the model", path,
                "give weights of this model's family and size");
  log_info(path + ": " + report.summary());
}

DetectionModel build_model(const RunOptions& options, const RunParts& parts, const Checkpoint* resumed) {
  ModelOptions model_options;
  model_options.classes = static_cast<int64_t>(parts.names.size());
  if (resumed) return make_model(resumed->config_text, options.resume, model_options);
  if (!options.cfg.empty()) return DetectionModel(options.cfg, model_options);
  const Checkpoint checkpoint = load_checkpoint(options.weights);
  return make_model(checkpoint.config_text, options.weights, model_options);
}

void freeze(DetectionModel& model, const std::vector<int64_t>& layers) {
  for (const int64_t index : layers)
    for (auto& parameter : model->layer_module(index).parameters()) parameter.requires_grad_(false);
}

void set_up_models(RunParts& parts, const RunOptions& options, const Checkpoint* resumed, const KitOptions& kit) {
  at::manual_seed(options.seed);
  DetectionModel model = build_model(options, parts, resumed), averaged = build_model(options, parts, resumed);
  if (resumed) {
    load_state_dict(*model, resumed->model);
  } else if (!options.weights.empty()) {
    load_initial_weights(model, options.weights);
  }
  const auto layers = frozen_layers(options.freeze, static_cast<int64_t>(model->layers().size()));
  for (auto* each : {&model, &averaged}) {
    (*each)->to(parts.device);
    freeze(*each, layers);
  }
  if (!layers.empty()) log_info("frozen: " + std::to_string(layers.size()) + " layers");
  parts.assemble(model, averaged, make_memory_source(parts.device), kit);
  if (resumed) load_state_dict(*parts.ema_model, resumed->ema);
}

LossOptions loss_options(const RunOptions& options, const Hyp& hyp) {
  LossOptions out;
  out.box_gain = hyp.box;
  out.cls_gain = hyp.cls;
  out.dfl_gain = hyp.dfl;
  out.cls_pw = hyp.cls_pw;
  out.fl_gamma = hyp.fl_gamma;
  out.label_smoothing = options.label_smoothing >= 0 ? options.label_smoothing : hyp.label_smoothing;
  return out;
}

GovernorOptions governor_options(const RunOptions& options, torch::Device device) {
  GovernorOptions out;
  out.mode = parse_governor_mode(options.governor);
  out.headroom = parse_headroom(options.headroom);
  // Of what is free now: the rest is what the meter does not see (libraries' own scratch memory, the CUDA context).
  // Without a limit on the host the kernel would end the process where the batch could still have been cut.
  out.budget_share = device.is_cpu() ? 0.9 : 0.95;
  if (!options.memory.empty()) {
    const int64_t total =
        device.is_cpu() ? host_total_bytes() : make_memory_source(device)->sample().device_total_bytes;
    out.budget_bytes = parse_bytes(options.memory, total);
  }
  const AmpMode amp = parse_amp(options.amp);
  LadderOptions& ladder = out.ladder;
  const auto [least, most] = parse_checkpointing(options.checkpointing);
  ladder.min_checkpointing = least;
  // Levels beyond the first are only ever taken by a governor that acts.
  ladder.max_checkpointing = out.mode == GovernorMode::On ? most : least;
  ladder.may_chunk_assignment = true;
  ladder.mixed_precision = amp == AmpMode::Float16 || amp == AmpMode::BFloat16;
  ladder.may_use_mixed_precision = amp == AmpMode::Auto;
  const Allowances allowed = parse_allow(options.allow);
  // Rectangular batches and --light have no mosaic to leave out.
  ladder.may_lighten_augment = allowed.lighter_augment && !options.light && !options.rect;
  ladder.may_shrink_image = allowed.smaller_image;
  return out;
}

int64_t nominal_batch(const RunOptions& options, int64_t batch) {
  return options.accumulate > 0 ? options.accumulate * batch : options.nominal_batch;
}

// Measures what steps cost before the first one, so that it is run right.
void plan_memory(RunParts& parts, const RunOptions& options, const Hyp& hyp) {
  if (parts.governor->options().mode == GovernorMode::Off) return;
  const StepShape shape = largest_draw(parts, options, hyp);
  Planner planner(*parts.governor, parts.probe());
  // Watching is not refusing: a run that may fail is still tried.
  if (parts.governor->options().mode == GovernorMode::On) planner.measure(shape);
  parts.memory_plan =
      planner.plan(shape, parts.baseline(), nominal_accumulation(parts.batch, nominal_batch(options, parts.batch)));
}

}  // namespace

torch::Device parse_device(const std::string& name) {
  if (name == "cpu") return torch::Device(torch::kCPU);
  const bool number =
      !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isdigit(c); });
  if (!number)
    throw Error(ErrorKind::Device, "unknown device \"" + name + "\"", "", "use cpu or the number of one CUDA device");
  if (!at::globalContext().hasCUDA())
    throw Error(ErrorKind::Device, "there is no CUDA device " + name + " for this program", "", "use --device cpu");
  return torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(std::stoi(name)));
}

std::vector<int64_t> frozen_layers(const std::vector<int64_t>& freeze, int64_t layers) {
  std::vector<int64_t> out;
  if (freeze.size() == 1) {
    for (int64_t i = 0; i < freeze[0]; ++i) out.push_back(i);
  } else {
    out = freeze;
  }
  for (const int64_t index : out)
    if (index < 0 || index >= layers)
      throw Error(ErrorKind::Usage,
                  "--freeze names layer " + std::to_string(index) + ", the model has 0.." + std::to_string(layers - 1),
                  "", "give layers of this model");
  if (static_cast<int64_t>(out.size()) >= layers)
    throw Error(ErrorKind::Usage, "--freeze leaves nothing to train", "", "freeze fewer layers");
  return out;
}

StepShape largest_draw(const RunParts& parts, const RunOptions& options, const Hyp& hyp) {
  StepShape shape;
  shape.draw_size = parts.batch;
  constexpr int64_t kStride = 32;
  int64_t height = 0, width = 0;
  for (int64_t i = 0; i < parts.train_set->size(); ++i) {
    const PixelSize size = parts.train_set->sample_size(i);
    if (size.height * size.width <= height * width) continue;
    height = size.height;
    width = size.width;
  }
  if (options.quad) {
    // The short batch at the end may have more pictures than a full one.
    const int64_t rest = parts.train_set->size() % parts.batch;
    shape.draw_size = std::max(quad_pictures(parts.batch), quad_pictures(rest));
    height *= 2;
    width *= 2;
  }
  if (options.multi_scale) {
    const auto largest = [&](int64_t side) {
      return static_cast<int64_t>(std::ceil(static_cast<double>(side) * 1.5 / kStride)) * kStride;
    };
    height = largest(height);
    width = largest(width);
  }
  shape.height = height;
  shape.width = width;
  shape.anchors = parts.model->anchors(height, width);
  // A mosaic holds four pictures, two mixed mosaics eight; crops only take boxes away.
  std::vector<int64_t> counts;
  for (int64_t i = 0; i < parts.train_set->size(); ++i) counts.push_back(parts.train_set->label_count(i));
  std::sort(counts.rbegin(), counts.rend());
  size_t pictures = 1;
  if (!options.light && !options.rect && hyp.mosaic > 0) pictures = hyp.mixup > 0 ? 8 : 4;
  int64_t densest = 0;
  for (size_t i = 0; i < std::min(pictures, counts.size()); ++i) densest += counts[i];
  // The four samples of a quad are as dense.
  shape.boxes = densest * shape.draw_size * (options.quad ? 4 : 1);
  return shape;
}

namespace {

// Everything but the plan of the memory.
RunParts assemble_run(const RunOptions& options, const Hyp& hyp, const Checkpoint* resumed,
                      const ScanProgress& on_scan) {
  RunParts parts;
  parts.device = parse_device(options.device);
  set_up_data(parts, options, hyp, on_scan);

  ScheduleOptions schedule;
  schedule.shape = options.schedule;
  schedule.epochs = options.epochs;
  schedule.batches_per_epoch = parts.train_loader->batches();
  schedule.batch = parts.batch;
  schedule.nominal_batch = nominal_batch(options, parts.batch);
  schedule.lr0 = hyp.lr0;
  schedule.lrf = hyp.lrf;
  schedule.momentum = hyp.momentum;
  schedule.warmup_epochs = hyp.warmup_epochs;
  schedule.warmup_momentum = hyp.warmup_momentum;
  schedule.warmup_bias_lr = hyp.warmup_bias_lr;
  schedule.modern = options.modern_schedule;
  parts.schedule = std::make_unique<Schedule>(schedule);
  parts.early_stop = std::make_unique<EarlyStop>(options.patience);

  KitOptions kit;
  kit.loss = loss_options(options, hyp);
  kit.optimizer = parse_optimizer(options.optimizer);
  kit.learning_rate = hyp.lr0;
  kit.momentum = hyp.momentum;
  kit.weight_decay = scaled_weight_decay(hyp.weight_decay, parts.batch, schedule.nominal_batch);
  kit.governor = governor_options(options, parts.device);
  kit.step.split = parse_split_mode(options.split);
  kit.step.amp = parse_amp(options.amp);
  set_up_models(parts, options, resumed, kit);
  return parts;
}

// --batch -1: the largest one that fits without any rung.
int64_t planned_batch(RunOptions options, const Hyp& hyp, const ScanProgress& on_scan) {
  const int64_t unit = options.quad ? 4 : 1;  // samples of one picture
  options.batch = unit;
  RunParts parts = assemble_run(options, hyp, nullptr, on_scan);
  const StepShape image = largest_draw(parts, options, hyp);
  // Two and three images tell what one more costs.
  Governor& governor = *parts.governor;
  const StepSetting front = make_ladder(image, governor.options().ladder).front();
  Planner planner(governor, parts.probe());
  planner.measure(with_images(image, 3));
  const int64_t most = unit * planner.most_images(image, front, parts.train_set->size() / unit);
  if (most == 0)
    throw Error(ErrorKind::Memory,
                "no batch fits without saving memory: one image needs " +
                    format_bytes(governor.rest_bytes() + governor.expect(image, front).value_or(0)) +
                    ", the budget less headroom is " + format_bytes(governor.allowed_bytes()),
                "", "give --batch yourself (the governor then cuts it), raise --memory, or use a smaller --img");
  log_info("--batch -1: " + std::to_string(most) + " images fit into " + format_bytes(governor.allowed_bytes()));
  return most;
}

}  // namespace

RunParts set_up_run(const RunOptions& asked, const Hyp& hyp, const Checkpoint* resumed, const ScanProgress& on_scan) {
  RunOptions options = asked;
  if (options.batch == -1) options.batch = planned_batch(options, hyp, on_scan);
  RunParts parts = assemble_run(options, hyp, resumed, on_scan);
  plan_memory(parts, options, hyp);
  return parts;
}

}  // namespace yolo9
