// Predicts what training and inference of a model need, for any batch and picture size, from the recorded
// allocations of a few real steps on small pictures.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <yolo9/memory/host_source.h>
#include <yolo9/memory/trace.h>
#include <yolo9/train/moment_law.h>
#include <yolo9/train/training_kit.h>

namespace yolo9 {

// The host's meter, that also marks the parts of a step in a recording.
class PhaseSource : public MemorySource {
 public:
  std::string name() const override { return host_.name(); }
  MemorySample sample() const override { return host_.sample(); }
  void reset_peak() override;
  int64_t take_peak() override;
  void release_cached() override { host_.release_cached(); }
  void set_limit(int64_t budget_bytes) override { host_.set_limit(budget_bytes); }

 private:
  HostMemorySource host_;
  size_t part_ = 0;
};

// One way to train. What 16-bit type it is does not matter to the bytes.
struct StepKind {
  int checkpointing = 0;
  bool mixed_precision = false;
  auto operator<=>(const StepKind&) const = default;
};

// How many pictures of what size go through together.
struct Load {
  int64_t images = 1;
  int64_t height = 640, width = 640;
  int64_t boxes = 0;  // in each picture
};

// The live bytes at the highest moment of a step, by what they are for; they add up to the peak.
struct MemorySplit {
  int64_t weights_bytes = 0;  // parameters and buffers
  int64_t gradients_bytes = 0;
  int64_t optimizer_bytes = 0;
  int64_t ema_bytes = 0;
  int64_t activations_bytes = 0;  // kept by the forward pass for the backward pass, the pictures included
  // Of the label assignment and the loss: all that they hold where they are the highest moment, else only what the
  // backward pass still needs.
  int64_t assignment_bytes = 0;
  int64_t workspace_bytes = 0;  // temporaries at the highest moment, and the copies that a roll-back needs
  int64_t total() const;
  // One rank's share when `ranks` divide the optimizer state among them; weights, gradients and EMA stay whole.
  MemorySplit sharded(int64_t ranks) const;
};

// Bytes above the level before the step: peaks of its parts, and what is live when the first two end.
struct StepBytes {
  int64_t forward = 0, loss = 0, backward = 0;
  int64_t after_forward = 0, after_loss = 0;
  int64_t peak() const;
};

class MemoryTable {
 public:
  // Builds the model in host memory; tensors of other threads disturb the measurements. `classes`: 0 as configured.
  explicit MemoryTable(const std::string& config, int64_t classes = 0);

  // Runs the steps that training() rests on, four of small pictures; does nothing the second time.
  void measure(const StepKind& kind);
  // Prediction; the kind must have been measured. The optimizer's state is counted for `optimizer`.
  MemorySplit training(const Load& load, const StepKind& kind, OptimizerKind optimizer) const;
  StepBytes step_bytes(const Load& load, const StepKind& kind) const;
  // One real step of this load, undone afterwards.
  StepBytes run_step(const Load& load, const StepKind& kind);

  // The same for a forward pass of the deploy form (main branch, normalisation folded in), without what selects boxes
  // afterwards. `half`: 16-bit weights and activations.
  void measure_inference(bool half);
  MemorySplit inference(const Load& load, bool half) const;
  // Peak of one real pass above the level before it.
  int64_t run_inference(const Load& load, bool half);

  // The most pictures, up to `limit`, whose training stays within `bytes`; 0: not even one.
  int64_t most_images(Load load, const StepKind& kind, OptimizerKind optimizer, int64_t bytes, int64_t limit) const;

  const DetectionModel& model() const { return kit_.model; }
  int64_t largest_stride() const;
  // The allocations of one real step with its update, behind seeds for what is live between steps: its parts are
  // marked "forward", "loss", "backward" and "update".
  AllocationTrace record_training_step(const Load& load, const StepKind& kind, OptimizerKind optimizer);

 private:
  LoadTerms terms_of(const Load& load) const;
  AllocationTrace record_step(const Load& load, const StepKind& kind);
  AllocationTrace record_inference(const Load& load, bool half);
  std::vector<PartLaw> fit_laws(const std::function<AllocationTrace(const Load&)>& record) const;
  const DetectionModel& deployed(bool half);

  std::shared_ptr<PhaseSource> source_;
  TrainingKit kit_;
  int64_t rollback_bytes_ = 0;
  std::optional<double> assigner_per_pair_;
  std::map<StepKind, std::vector<PartLaw>> laws_;
  std::map<bool, PartLaw> inference_laws_;  // by half
  std::map<bool, DetectionModel> deployed_;
};

// Bytes that an optimizer keeps for so many parameters: its state, and buffers of its own.
int64_t optimizer_bytes(OptimizerKind kind, int64_t parameters);

}  // namespace yolo9
