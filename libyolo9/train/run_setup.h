// Everything a run works with, built from its options: data, models, optimizer, governor.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <yolo9/data/data_config.h>
#include <yolo9/data/dataset.h>
#include <yolo9/data/loader.h>
#include <yolo9/train/checkpoint.h>
#include <yolo9/train/early_stop.h>
#include <yolo9/train/hyp.h>
#include <yolo9/train/run_options.h>
#include <yolo9/train/schedule.h>
#include <yolo9/train/training_kit.h>

namespace yolo9 {

struct RunParts : TrainingKit {
  torch::Device device{torch::kCPU};
  std::vector<std::string> names;
  std::shared_ptr<Dataset> train_set, val_set;
  std::unique_ptr<Loader> train_loader, val_loader;
  int64_t image_size = 0;  // rounded up to the stride
  int64_t batch = 0;       // never more than there are pictures
  std::unique_ptr<Schedule> schedule;
  std::unique_ptr<EarlyStop> early_stop;
  MemoryPlan memory_plan;  // empty when the governor is off
};

// Throws Error for mistakes in configuration, data and weights. `resumed` may be null.
// `on_scan` is told how far the first look at the data is.
RunParts set_up_run(const RunOptions& options, const Hyp& hyp, const Checkpoint* resumed,
                    const ScanProgress& on_scan = {});

// What the largest draw of the run will look like: the largest size, the densest pictures.
StepShape largest_draw(const RunParts& parts, const RunOptions& options, const Hyp& hyp);

// "cpu", or the CUDA device with this index; throws Error(Device) if there is none.
torch::Device parse_device(const std::string& name);
// Layer indices that `--freeze` names: {N} means 0..N-1, several numbers mean those layers.
std::vector<int64_t> frozen_layers(const std::vector<int64_t>& freeze, int64_t layers);

}  // namespace yolo9
