#include <yolo9/train/run_setup.h>

#include <algorithm>
#include <cctype>

#include <ATen/Context.h>

#include <yolo9/core/error.h>
#include <yolo9/core/log.h>
#include <yolo9/memory/host_source.h>

namespace yolo9 {

namespace {

AugmentOptions augmentation(const RunOptions& options, const Hyp& hyp) {
  AugmentOptions out;
  out.hsv_h = hyp.hsv_h;
  out.hsv_s = hyp.hsv_s;
  out.hsv_v = hyp.hsv_v;
  out.degrees = options.light ? 0 : hyp.degrees;
  out.translate = options.light ? 0 : hyp.translate;
  out.scale = hyp.scale;
  out.shear = hyp.shear;
  out.perspective = hyp.perspective;
  out.flipud = hyp.flipud;
  out.fliplr = hyp.fliplr;
  out.mosaic = options.light ? 0 : hyp.mosaic;
  out.mixup = options.light ? 0 : hyp.mixup;
  out.copy_paste = options.light ? 0 : hyp.copy_paste;
  return out;
}

void set_up_data(RunParts& parts, const RunOptions& options, const Hyp& hyp) {
  const DataConfig config = load_data_config(options.data);
  constexpr int64_t kStride = 32;
  parts.image_size = (options.image_size + kStride - 1) / kStride * kStride;
  if (parts.image_size != options.image_size)
    log_info("--img " + std::to_string(options.image_size) + " is not a multiple of 32, taken as " +
             std::to_string(parts.image_size));

  DatasetOptions train;
  train.image_size = parts.image_size;
  train.augment = true;
  train.augmentation = augmentation(options, hyp);
  train.rect = options.rect;
  train.batch_size = options.batch;
  train.stride = kStride;
  train.single_class = options.single_class;
  train.seed = options.seed;
  train.cache_in_memory = !options.cache.empty();
  train.min_items = options.min_items;
  parts.train_set = std::make_shared<Dataset>(config.split("train"), config.names, train);
  parts.names = parts.train_set->names();
  log_info("training: " + parts.train_set->describe());
  parts.batch = std::min(options.batch, parts.train_set->size());
  if (parts.batch < options.batch)
    log_info("the training set has " + std::to_string(parts.batch) + " pictures: batch " +
             std::to_string(options.batch) + " is taken as " + std::to_string(parts.batch));

  LoaderOptions loader;
  loader.batch_size = parts.batch;
  loader.workers = options.workers;
  loader.shuffle = !options.rect;
  loader.seed = options.seed;
  parts.train_loader = std::make_unique<Loader>(parts.train_set, loader);

  DatasetOptions val = train;
  val.augment = false;
  val.augmentation = {};
  val.rect = true;
  val.pad = 0.5;
  val.min_items = 0;
  val.batch_size = std::max<int64_t>(1, parts.batch * 2);
  parts.val_set = std::make_shared<Dataset>(config.split("val"), config.names, val);
  log_info("validation: " + parts.val_set->describe());
  loader.batch_size = val.batch_size;
  loader.shuffle = false;
  parts.val_loader = std::make_unique<Loader>(parts.val_set, loader);
}

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

void set_up_models(RunParts& parts, const RunOptions& options, const Checkpoint* resumed) {
  at::manual_seed(options.seed);
  parts.model = build_model(options, parts, resumed);
  parts.ema_model = build_model(options, parts, resumed);
  if (resumed) {
    load_state_dict(*parts.model, resumed->model);
  } else if (!options.weights.empty()) {
    load_initial_weights(parts.model, options.weights);
  }
  const auto layers = frozen_layers(options.freeze, static_cast<int64_t>(parts.model->layers().size()));
  for (auto* model : {&parts.model, &parts.ema_model}) {
    (*model)->to(parts.device);
    freeze(*model, layers);
  }
  if (!layers.empty()) log_info("frozen: " + std::to_string(layers.size()) + " layers");
  parts.store = std::make_unique<ParameterStore>(*parts.model);
  parts.ema_store = std::make_unique<ParameterStore>(*parts.ema_model);
  if (resumed)
    load_state_dict(*parts.ema_model, resumed->ema);
  else
    parts.ema_store->copy_from(*parts.store);
  // Validation reads the main branch only.
  parts.ema_model->set_auxiliary(false);
  parts.ema_model->eval();
}

LossOptions loss_options(const RunParts& parts, const RunOptions& options, const Hyp& hyp) {
  LossOptions out;
  out.classes = parts.model->classes();
  out.reg_max = parts.model->reg_max();
  out.strides = parts.model->strides();
  out.box_gain = hyp.box;
  out.cls_gain = hyp.cls;
  out.dfl_gain = hyp.dfl;
  out.cls_pw = hyp.cls_pw;
  out.fl_gamma = hyp.fl_gamma;
  out.label_smoothing = options.label_smoothing >= 0 ? options.label_smoothing : hyp.label_smoothing;
  return out;
}

void set_up_governor(RunParts& parts, const RunOptions& options) {
  GovernorOptions governor;
  governor.mode = parse_governor_mode(options.governor);
  auto source = std::make_shared<HostMemorySource>();
  if (!options.memory.empty()) {
    governor.budget_bytes = parse_bytes(options.memory, host_total_bytes());
  } else if (parts.device.is_cpu()) {
    // What is free now, less a tenth for what the meter does not see. Without a limit the kernel would end the
    // process at the point where the governor could still have cut the batch.
    governor.budget_bytes = host_available_bytes() / 10 * 9;
  }
  parts.governor = std::make_unique<Governor>(std::move(source), governor);
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

RunParts set_up_run(const RunOptions& options, const Hyp& hyp, const Checkpoint* resumed) {
  RunParts parts;
  parts.device = parse_device(options.device);
  const OptimizerKind kind = parse_optimizer(options.optimizer);
  set_up_data(parts, options, hyp);
  set_up_models(parts, options, resumed);
  parts.loss = std::make_unique<DetectionLoss>(loss_options(parts, options, hyp));

  ScheduleOptions schedule;
  schedule.shape = options.schedule;
  schedule.epochs = options.epochs;
  schedule.batches_per_epoch = parts.train_loader->batches();
  schedule.batch = parts.batch;
  schedule.nominal_batch = options.accumulate > 0 ? options.accumulate * parts.batch : options.nominal_batch;
  schedule.lr0 = hyp.lr0;
  schedule.lrf = hyp.lrf;
  schedule.momentum = hyp.momentum;
  schedule.warmup_epochs = hyp.warmup_epochs;
  schedule.warmup_momentum = hyp.warmup_momentum;
  schedule.warmup_bias_lr = hyp.warmup_bias_lr;
  schedule.modern = options.modern_schedule;
  parts.schedule = std::make_unique<Schedule>(schedule);

  std::vector<ParameterGroup> groups(3);
  for (size_t i = 0; i < 3; ++i) {
    groups[i].value = parts.store->groups()[i].values;
    groups[i].gradient = parts.store->groups()[i].gradients;
    groups[i].learning_rate = hyp.lr0;
  }
  groups[kWeight].weight_decay = scaled_weight_decay(hyp.weight_decay, parts.batch, schedule.nominal_batch);
  parts.optimizer = make_optimizer(kind, groups, hyp.momentum);
  parts.ema = std::make_unique<Ema>(parts.store->floating_state(), parts.ema_store->floating_state());
  parts.early_stop = std::make_unique<EarlyStop>(options.patience);
  set_up_governor(parts, options);
  parts.communicator = std::make_unique<LocalCommunicator>();
  StepOptions step;
  step.split = parse_split_mode(options.split);
  parts.step = std::make_unique<TrainStep>(parts.model, *parts.loss, *parts.store, *parts.optimizer, parts.ema.get(),
                                           *parts.governor, *parts.communicator, step);
  return parts;
}

}  // namespace yolo9
