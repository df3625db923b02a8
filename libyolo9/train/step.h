// One optimizer step: plan, save, attempt, vote, reduce, commit, observe. The only way back is from the vote to the
// attempt; what an attempt changes can be undone, and nothing after the vote allocates on the device.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <yolo9/core/communicator.h>
#include <yolo9/core/types.h>
#include <yolo9/loss/detection_loss.h>
#include <yolo9/memory/governor.h>
#include <yolo9/memory/step_state.h>
#include <yolo9/nn/model.h>
#include <yolo9/train/ema.h>
#include <yolo9/train/optimizer.h>
#include <yolo9/train/parameter_store.h>

namespace yolo9 {

// One loader batch as it goes into a step. Its losses have their own sums, as users know it from the recipe; the
// governor may cut it into slices, which share those sums.
struct Draw {
  Batch batch;
  int64_t height = 0, width = 0;  // size to resize the pictures to (multi-scale); 0: as they are
};

enum class SplitMode {
  Exact,     // a pass without gradients fetches the draw's sums first: slices add up to the whole draw
  Official,  // each slice uses its own sums, as accumulation in the official trainer does; costs nothing
};
SplitMode parse_split_mode(const std::string& name);  // "exact", "official"; throws Error(Usage)

struct StepOptions {
  double clip_norm = 10.0;
  SplitMode split = SplitMode::Exact;
  // Of the pictures, and with a ParameterStore of the same format of everything. Channels-last is faster; LibTorch's
  // BatchNorm then sums in float32 instead of double on the CPU, so that losses differ by some 5e-5.
  torch::MemoryFormat memory_format = torch::MemoryFormat::ChannelsLast;
};

struct DrawReport {
  std::array<double, 3> items{};  // box, cls, dfl after gains
  double total = 0;               // what was back-propagated
  int64_t boxes = 0;
};

struct StepReport {
  std::vector<DrawReport> draws;
  double gradient_norm = 0;  // before clipping
  bool committed = false;    // false when asked not to, or when the gradients were not finite
  bool finite = true;
  StepMemory memory;
  int64_t images = 0;
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

 private:
  bool attempt(const std::vector<Draw>& draws, int64_t micro_batch, StepReport& report);
  void run_draw(const Draw& draw, int64_t micro_batch, DrawReport& report);
  torch::Tensor draw_sums(const Draw& draw, int64_t micro_batch);
  void commit(StepReport& report);

  DetectionModel model_;
  const DetectionLoss& loss_;
  ParameterStore& store_;
  Optimizer& optimizer_;
  Ema* ema_;
  Governor& governor_;
  Communicator& communicator_;
  StepOptions options_;
  StepState before_step_, before_draw_;
  torch::Tensor norm_scratch_;
};

// uint8 [n,3,H,W] -> float 0..1 in `format`, on `device`, resized (bilinear) when a size is given.
torch::Tensor to_network_input(const torch::Tensor& images, torch::Device device, int64_t height = 0,
                               int64_t width = 0,
                               torch::MemoryFormat format = torch::MemoryFormat::ChannelsLast);

}  // namespace yolo9
