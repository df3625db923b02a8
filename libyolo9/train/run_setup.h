// Everything a run works with, built from its options: data, models, optimizer, governor.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <yolo9/core/communicator.h>
#include <yolo9/data/data_config.h>
#include <yolo9/data/dataset.h>
#include <yolo9/data/loader.h>
#include <yolo9/loss/detection_loss.h>
#include <yolo9/memory/governor.h>
#include <yolo9/nn/model.h>
#include <yolo9/train/checkpoint.h>
#include <yolo9/train/early_stop.h>
#include <yolo9/train/ema.h>
#include <yolo9/train/hyp.h>
#include <yolo9/train/optimizer.h>
#include <yolo9/train/parameter_store.h>
#include <yolo9/train/run_options.h>
#include <yolo9/train/schedule.h>
#include <yolo9/train/step.h>

namespace yolo9 {

struct RunParts {
  torch::Device device{torch::kCPU};
  std::vector<std::string> names;
  std::shared_ptr<Dataset> train_set, val_set;
  std::unique_ptr<Loader> train_loader, val_loader;
  int64_t image_size = 0;  // rounded up to the stride
  int64_t batch = 0;       // never more than there are pictures

  DetectionModel model{nullptr}, ema_model{nullptr};
  std::unique_ptr<ParameterStore> store, ema_store;
  std::unique_ptr<DetectionLoss> loss;
  std::unique_ptr<Optimizer> optimizer;
  std::unique_ptr<Ema> ema;
  std::unique_ptr<Schedule> schedule;
  std::unique_ptr<EarlyStop> early_stop;
  std::unique_ptr<Governor> governor;
  std::unique_ptr<Communicator> communicator;
  std::unique_ptr<TrainStep> step;
};

// Throws Error for mistakes in configuration, data and weights. `resumed` may be null.
RunParts set_up_run(const RunOptions& options, const Hyp& hyp, const Checkpoint* resumed);

// "cpu", or the CUDA device with this index; throws Error(Device) if there is none.
torch::Device parse_device(const std::string& name);
// Layer indices that `--freeze` names: {N} means 0..N-1, several numbers mean those layers.
std::vector<int64_t> frozen_layers(const std::vector<int64_t>& freeze, int64_t layers);

}  // namespace yolo9
