// One optimizer step: plan, save, attempt, vote, reduce, commit, observe. The only way back is from the vote to the
// attempt; what an attempt changes can be undone, and nothing after the vote allocates on the device.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <yolo9/core/communicator.h>
#include <yolo9/core/types.h>
#include <yolo9/loss/detection_loss.h>
#include <yolo9/memory/governor.h>
#include <yolo9/memory/step_state.h>
#include <yolo9/nn/model.h>
#include <yolo9/train/amp.h>
#include <yolo9/train/ema.h>
#include <yolo9/train/optimizer.h>
#include <yolo9/train/parameter_store.h>
#include <yolo9/train/recompute_plan.h>

namespace yolo9 {

// One loader batch as it goes into a step. Its losses have their own sums, as users know it from the recipe; the
// governor may cut it into slices, which share those sums.
struct Draw {
  Batch batch;
  int64_t height = 0, width = 0;  // size to resize the pictures to (multi-scale); 0: as they are
  bool light = false;             // made without mosaic, mixup and copy-paste

  // What the network is to see.
  // Quad batches have fewer pictures than samples; the gradient is to be as large as of all samples.
  double loss_factor() const {
    return batch.samples > 0 ? static_cast<double>(batch.samples) / static_cast<double>(batch.size()) : 1.0;
  }
  int64_t input_height() const { return height > 0 ? height : batch.images.size(2); }
  int64_t input_width() const { return width > 0 ? width : batch.images.size(3); }
};

enum class SplitMode {
  Exact,     // a pass without gradients fetches the draw's sums first: slices add up to the whole draw
  Official,  // each slice uses its own sums, as accumulation in the official trainer does; costs nothing
};
SplitMode parse_split_mode(const std::string& name);  // "exact", "official"; throws Error(Usage)

struct StepOptions {
  double clip_norm = 10.0;
  SplitMode split = SplitMode::Exact;
  // Of the pictures, and with a ParameterStore of the same format of everything. Channels-last is faster.
  torch::MemoryFormat memory_format = torch::MemoryFormat::ChannelsLast;
  AmpMode amp = AmpMode::Off;  // the type; whether a step uses it is in the governor's setting
};

struct DrawReport {
  std::array<double, 3> items{};  // box, cls, dfl after gains
  double total = 0;               // what was back-propagated, before the draw's factor
  int64_t boxes = 0;
};

struct StepReport {
  std::vector<DrawReport> draws;
  double gradient_norm = 0;  // before clipping
  bool committed = false;    // false when asked not to, or when the gradients were not finite
  bool finite = true;
  // The draws must be made again with lighter augmentation, and the step run on those: nothing was done with these.
  bool redraw = false;
  double loss_scale = 1;  // of this step
  bool overflow = false;  // not finite because the loss scale was too large: expected now and then with float16
  StepMemory memory;
  int64_t images = 0;
  int64_t micro_batches = 0;       // slices of all draws
  int64_t commit_allocations = 0;  // tensor allocations between vote and end of commit (host meter in place only)
};

class TrainStep {
 public:
  // All referenced objects must outlive the step. `ema` may be null.
  TrainStep(DetectionModel model, const DetectionLoss& loss, ParameterStore& store, Optimizer& optimizer, Ema* ema,
            Governor& governor, Communicator& communicator, StepOptions options = {});

  // Gradients of all draws are summed, then clipped and applied. With commit = false the draws only move BatchNorm's
  // statistics and the meters: an accumulation that an epoch's end leaves unfinished.
  // Throws Error(Memory) if not even single images fit.
  StepReport run(const std::vector<Draw>& draws, bool commit = true);

  // Forward and backward of one draw with this setting, everything undone afterwards: weights, gradients, statistics,
  // random numbers and the governor's knowledge are as before. Bytes above the level before, per phase; nothing when
  // the memory ran out. The budget in force holds.
  std::optional<std::vector<int64_t>> probe(const Draw& draw, const StepSetting& setting);

  // What the governor is told of a step.
  StepShape shape_of(const std::vector<Draw>& draws) const;
  LossScaler& scaler() { return scaler_; }
  const RecomputePlan& recompute_plan() const { return recompute_plan_; }
  Governor& governor() { return governor_; }

 private:
  class PhaseMeter;

  bool attempt(const std::vector<Draw>& draws, const StepSetting& setting, StepReport& report, PhaseMeter& meter);
  void run_draw(const Draw& draw, const StepSetting& setting, DrawReport& report, PhaseMeter& meter);
  torch::Tensor draw_sums(const Draw& draw, const StepSetting& setting);
  void apply(const StepSetting& setting);
  HeadOutput forward(const Draw& draw, int64_t first, int64_t count, const StepSetting& setting);
  double loss_scale(const StepSetting& setting) const;
  void commit(StepReport& report, const StepSetting& setting);

  DetectionModel model_;
  const DetectionLoss& loss_;
  ParameterStore& store_;
  Optimizer& optimizer_;
  Ema* ema_;
  Governor& governor_;
  Communicator& communicator_;
  StepOptions options_;
  StepState before_step_, before_draw_;
  std::shared_ptr<StepState> before_recomputation_;
  torch::Tensor norm_scratch_;
  c10::ScalarType amp_type_ = c10::ScalarType::BFloat16;
  LossScaler scaler_;
  RecomputePlan recompute_plan_;
  int level_ = 0;  // that the model is set to
};

// Rows of targets whose image lies in [first, first + count), renumbered from 0.
torch::Tensor slice_targets(const torch::Tensor& targets, int64_t first, int64_t count);

// uint8 [n,3,H,W] -> float 0..1 in `format`, on `device`, resized (bilinear) when a size is given.
torch::Tensor to_network_input(const torch::Tensor& images, torch::Device device, int64_t height = 0, int64_t width = 0,
                               torch::MemoryFormat format = torch::MemoryFormat::ChannelsLast);

}  // namespace yolo9
