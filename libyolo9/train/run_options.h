// What a training run was asked to do: the command line, as typed values, and its yaml form.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace yolo9 {

enum class ScheduleShape { Linear, Cosine, FlatCosine, Fixed };

struct RunOptions {
  // what to train
  std::string cfg;      // model yaml or its name; empty: from the weights
  std::string weights;  // start from these; empty: from scratch
  std::string data;     // data.yaml
  std::string hyp = "scratch-high";
  std::string resume;  // checkpoint to go on from; empty: a new run
  int64_t epochs = 100;
  int64_t batch = 16;  // images of one draw; -1: as many as fit
  int64_t image_size = 640;
  int64_t nominal_batch = 64;  // effective batch that accumulation aims at
  int64_t accumulate = 0;      // draws per step; 0: from the nominal batch
  std::string device = "cpu";  // "cpu" or a CUDA index
  uint64_t seed = 0;
  bool deterministic = false;
  // data
  bool rect = false;
  bool single_class = false;
  bool image_weights = false;
  bool multi_scale = false;
  bool light = false;        // no mosaic, mixup, copy-paste, rotation, translation
  bool quad = false;         // groups of four samples make one picture of twice the side
  std::string cache;         // "", "ram" or "disk"
  int64_t workers = -1;      // loader threads; -1: as the cores that may be used suggest
  bool strict = false;       // a label row or picture that cannot be used ends the run
  int64_t min_items = 0;     // images with fewer labels are left out of training
  int64_t close_mosaic = 0;  // the last N epochs go without mosaic
  // optimisation
  std::string optimizer = "SGD";
  ScheduleShape schedule = ScheduleShape::Linear;
  bool modern_schedule = false;  // learning rate of epoch e from e, not from the epoch before
  double label_smoothing = -1;   // below zero: as the hyper-parameters say
  int64_t patience = 100;        // epochs without a better fitness before it stops; 0: never
  std::vector<int64_t> freeze;   // layer indices
  // memory
  std::string memory;  // budget; empty: all there is
  std::string governor = "on";
  std::string split = "exact";
  std::string headroom = "10%";        // share of the budget that plans leave free
  std::string allow;                   // lighter-augment, smaller-image, comma-separated
  std::string amp = "off";             // off, fp16, bf16; auto: when nothing else helps
  std::string checkpointing = "auto";  // level 0 to 3; auto: as deep as needed
  // output
  std::string project = "runs/train";
  std::string name = "exp";
  bool exist_ok = false;
  bool no_save = false;  // only the last epoch's checkpoint
  bool no_val = false;   // validate only after the last epoch
  bool no_plots = false;
  int64_t save_period = -1;  // also keep epochN.pt every N epochs
};

// "auto": least 0, most 3; a number: that level. Throws Error(Usage).
std::pair<int, int> parse_checkpointing(const std::string& text);
// What the governor may do to a training that changes its result.
struct Allowances {
  bool lighter_augment = false, smaller_image = false;
};
Allowances parse_allow(const std::string& text);  // throws Error(Usage)

// Throws Error(Usage) for values that make no sense, before anything is read or written.
void check_options(const RunOptions& options);
// opt.yaml: every option by the name of its flag.
std::string options_to_yaml(const RunOptions& options);
// Reads what options_to_yaml wrote, or a --config file; unknown keys are errors with file and line. `base` gives the
// values of keys that are absent.
RunOptions options_from_yaml(const std::string& text, const std::string& name, RunOptions base = {});

}  // namespace yolo9
