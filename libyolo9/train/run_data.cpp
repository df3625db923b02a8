#include <yolo9/train/run_data.h>

#include <algorithm>

#include <yolo9/core/cpu.h>
#include <yolo9/core/error.h>
#include <yolo9/core/log.h>
#include <yolo9/data/scan_cache.h>
#include <yolo9/memory/host_source.h>
#include <yolo9/train/run_setup.h>

namespace yolo9 {

int64_t picture_budget_bytes(int64_t free_bytes, int64_t memory_bytes, torch::Device device) {
  if (!device.is_cpu()) return free_bytes / 10 * 8;
  // What --memory does not keep for the training is free for pictures, but for a tenth that nobody plans with.
  return std::max<int64_t>(0, memory_bytes > 0 ? free_bytes / 10 * 9 - memory_bytes : free_bytes / 2);
}

AugmentOptions augment_options(const Hyp& hyp, bool light) {
  AugmentOptions out;
  out.hsv_h = hyp.hsv_h;
  out.hsv_s = hyp.hsv_s;
  out.hsv_v = hyp.hsv_v;
  out.degrees = light ? 0 : hyp.degrees;
  out.translate = light ? 0 : hyp.translate;
  out.scale = hyp.scale;
  out.shear = hyp.shear;
  out.perspective = hyp.perspective;
  out.flipud = hyp.flipud;
  out.fliplr = hyp.fliplr;
  out.mosaic = light ? 0 : hyp.mosaic;
  out.mixup = light ? 0 : hyp.mixup;
  out.copy_paste = light ? 0 : hyp.copy_paste;
  out.mosaic9 = hyp.mosaic9;
  out.filters = hyp.filters;
  return out;
}

namespace {

// Threads far beyond the cores only cost memory and switches.
int64_t chosen_workers(int64_t asked, torch::Device device) {
  const int64_t cores = usable_cores();
  if (asked < 0) return suggested_workers(cores, !device.is_cpu());
  const int64_t most = 4 * cores;
  if (asked <= most) return asked;
  log_info("--workers " + std::to_string(asked) + " is far above the " + std::to_string(cores) +
           " cores that may be used, taken as " + std::to_string(most));
  return most;
}

void keep_pictures(DatasetOptions& data, const RunOptions& options, torch::Device device) {
  if (options.cache.empty()) return;
  if (options.cache == "disk") {
    data.keep_pictures = PictureKeeping::Disk;
    return;
  }
  const bool shared = device.is_cpu() && !options.memory.empty();
  data.keep_pictures = PictureKeeping::Memory;
  data.keep_budget_bytes = picture_budget_bytes(host_available_bytes(),
                                                shared ? parse_bytes(options.memory, host_total_bytes()) : 0, device);
}

void limit_recent_pictures(DatasetOptions& data, const RunOptions& options, torch::Device device) {
  constexpr int64_t kShareOfMemory = 8;
  if (options.image_weights) {
    data.recent_budget_bytes = 0;  // its order is another than the one that mosaics follow
  } else if (device.is_cpu() && !options.memory.empty()) {
    // They are part of what the process holds, which the governor keeps within the budget.
    const int64_t memory_bytes = parse_bytes(options.memory, host_total_bytes());
    data.recent_budget_bytes = std::clamp<int64_t>(memory_bytes / kShareOfMemory, 1, data.recent_budget_bytes);
  }
}

void report_keeping(const Dataset& set, const std::string& name) {
  const std::string line = set.describe_keeping();
  if (!line.empty()) log_info("cache of the " + name + " set: " + line);
}

}  // namespace

void set_up_data(RunParts& parts, const RunOptions& options, const Hyp& hyp, const ScanProgress& on_scan) {
  const DataConfig config = load_data_config(options.data);
  constexpr int64_t kStride = 32;
  parts.image_size = (options.image_size + kStride - 1) / kStride * kStride;
  if (parts.image_size != options.image_size)
    log_info("--img " + std::to_string(options.image_size) + " is not a multiple of 32, taken as " +
             std::to_string(parts.image_size));

  DatasetOptions train;
  train.image_size = parts.image_size;
  train.augment = true;
  train.augmentation = augment_options(hyp, options.light);
  train.rect = options.rect;
  train.batch_size = options.batch;
  train.stride = kStride;
  train.single_class = options.single_class;
  train.seed = options.seed;
  limit_recent_pictures(train, options, parts.device);
  keep_pictures(train, options, parts.device);
  train.min_items = options.min_items;
  train.strict = options.strict;
  train.scan_folder = scan_cache_folder();
  train.on_scan = on_scan;
  parts.train_set = std::make_shared<Dataset>(config.split("train"), config.names, train);
  parts.names = parts.train_set->names();
  log_info("training: " + parts.train_set->describe());
  report_keeping(*parts.train_set, "training");
  parts.batch = std::min(options.batch, parts.train_set->size());
  if (options.quad) parts.batch = parts.batch / 4 * 4;
  if (parts.batch == 0) throw Error(ErrorKind::Data, "--quad needs at least 4 pictures", options.data, "leave it out");
  if (parts.batch < options.batch)
    log_info("the training set has " + std::to_string(parts.train_set->size()) + " pictures: batch " +
             std::to_string(options.batch) + " is taken as " + std::to_string(parts.batch));

  LoaderOptions loader;
  loader.batch_size = parts.batch;
  loader.workers = chosen_workers(options.workers, parts.device);
  loader.shuffle = !options.rect;
  loader.seed = options.seed;
  loader.quad = options.quad;
  loader.pin_memory = parts.device.is_cuda();
  parts.train_loader = std::make_unique<Loader>(parts.train_set, loader);

  DatasetOptions val = train;
  val.augment = false;
  val.augmentation = {};
  val.rect = true;
  val.pad = 0.5;
  val.min_items = 0;
  val.batch_size = std::max<int64_t>(1, parts.batch * 2);
  // The validation set takes what the training set has left.
  if (val.keep_pictures == PictureKeeping::Memory) val.keep_budget_bytes -= parts.train_set->kept_bytes();
  parts.val_set = std::make_shared<Dataset>(config.split("val"), config.names, val);
  log_info("validation: " + parts.val_set->describe());
  report_keeping(*parts.val_set, "validation");
  const bool in_memory = val.keep_pictures == PictureKeeping::Memory;
  set_host_bytes_aside(in_memory ? parts.train_set->kept_bytes() + parts.val_set->kept_bytes() : 0);
  loader.quad = false;
  loader.batch_size = val.batch_size;
  loader.shuffle = false;
  parts.val_loader = std::make_unique<Loader>(parts.val_set, loader);
}

}  // namespace yolo9
