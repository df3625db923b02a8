// Checkpoints: weights, EMA, optimizer and schedule in one file, written so that a valid one is always there.
// The file is a zip archive of LibTorch's own pickle format, holding one dictionary of tensors, numbers and texts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <torch/types.h>

#include <yolo9/nn/model.h>
#include <yolo9/nn/weights.h>

namespace yolo9 {

struct Checkpoint {
  std::string config_text;         // the model's yaml
  std::vector<std::string> names;  // classes
  NamedTensors model;              // state dict; empty in a stripped file
  NamedTensors ema;                // state dict of the averaged model, the one to use
  // What training goes on from; absent (epoch -1) in a stripped file.
  int64_t epoch = -1;     // last finished epoch, from 0
  int64_t iteration = 0;  // batches drawn so far
  int64_t last_step_iteration = -1;
  int64_t steps = 0;  // optimizer steps so far
  int64_t ema_updates = 0;
  double best_fitness = 0;
  int64_t best_epoch = 0;
  NamedTensors optimizer;
  NamedTensors schedule;
  std::vector<double> scaler;      // loss scale, good steps, overflows; empty in files without
  std::vector<double> class_maps;  // mAP per class of the last validation, for image weights
  std::string options_text, hyp_text;
  std::string data_fingerprint;  // of the training set: resuming on another is refused
};

// Written to a temporary file, synced, renamed. Throws Error(Weights) if that fails; the old file is then intact.
void save_checkpoint(const std::string& path, const Checkpoint& checkpoint);
// Throws Error(Weights) with what is wrong: no file, damaged, another program's, a newer version.
Checkpoint load_checkpoint(const std::string& path);
// Leaves only what inference needs.
void strip_checkpoint(Checkpoint& checkpoint);

struct LoadedModel {
  DetectionModel model{nullptr};
  std::vector<std::string> names;
};
// The averaged model of a checkpoint, in evaluation mode, on `device`; fused unless asked not to.
LoadedModel load_model(const std::string& path, torch::Device device = torch::kCPU, bool fuse = true);

// Weights of any supported file (checkpoint or safetensors) as names and float tensors, for a start from them.
NamedTensors load_weights(const std::string& path);

}  // namespace yolo9
