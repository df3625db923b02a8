// Which layers a model recomputes at each checkpointing level, chosen by the bytes that each keeps and the work that
// making them again takes.
#pragma once

#include <array>
#include <vector>

#include <yolo9/memory/setting.h>
#include <yolo9/memory/source.h>
#include <yolo9/memory/step_state.h>
#include <yolo9/nn/model.h>

namespace yolo9 {

// What one layer costs, for one small picture; the head is the last one.
struct LayerCost {
  int64_t kept_bytes = 0;  // live after its forward pass and not before, its output included
  int64_t output_bytes = 0;
  double work = 0;  // multiply-adds of its forward pass, roughly: parameters times output cells
};

// Runs the model forward on one small picture, in training mode, and reads the source after each layer. Statistics
// and generators are left as they were.
std::vector<LayerCost> measure_layers(DetectionModel& model, MemorySource& source, StepState& state,
                                      torch::MemoryFormat format);

// Segments by level, [0] being empty. Level 3 recomputes everything that keeps more than its results, neighbours
// joined as long as a segment keeps no more than the costliest layer alone does; levels 1 and 2 take of those the
// segments that free the most bytes for their work, up to a fifth and a half of all the work.
using RecomputePlan = std::array<std::vector<DetectionModelImpl::Segment>, kMaxCheckpointing + 1>;
RecomputePlan plan_recomputation(const DetectionModelImpl& model, const std::vector<LayerCost>& costs);

}  // namespace yolo9
