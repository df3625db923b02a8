// The ways to run one step, from the one that disturbs a training least to the one that disturbs it most.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace yolo9 {

// Ways to need less memory, in the order in which they are taken.
enum class Rung : int64_t {
  None = 0,
  ReleaseCache = 1,     // bit-exact
  ChunkAssignment = 2,  // bit-exact
  Checkpointing = 3,    // bit-exact, costs up to one more forward pass
  Slices = 4,           // exact to rounding but for BatchNorm, which sees the slice
  MixedPrecision = 5,   // only if the user allows it
  LighterAugment = 6,   // only if the user allows it
  SmallerImage = 7,     // only if the user allows it
};
const char* rung_name(Rung rung);

inline constexpr int kMaxCheckpointing = 3;
// (Box, anchor) pairs that the label assigner looks at together, usually and in small chunks.
inline constexpr int64_t kChunkPairs = int64_t{1} << 18, kSmallChunkPairs = kChunkPairs / 16;

// One way to run a step.
struct StepSetting {
  int64_t micro_batch = 0;       // images per slice
  int checkpointing = 0;         // level, 0 (nothing is recomputed) to 3 (all that can be)
  bool small_chunks = false;     // the label assigner looks at a sixteenth of the usual number of pairs at a time
  bool mixed_precision = false;  // autocast
  bool lighter_augment = false;  // no mosaic, mixup, copy-paste
  int64_t image_shrink = 0;      // stride multiples taken off the longer side of the image

  bool operator==(const StepSetting&) const = default;
};

// What a step is about to process.
struct StepShape {
  int64_t draw_size = 0;  // images of one draw (the user's batch)
  int64_t height = 0, width = 0;
  int64_t boxes = 0;                 // labels in the draw
  std::vector<int64_t> image_boxes;  // labels per image, if known: the densest slice then counts
  bool light = false;                // made without mosaic, mixup and copy-paste already
  int64_t anchors = 0;               // predictions per image; 0: the number of boxes has no further cost

  // Labels in the densest slice of `micro_batch` images, in the order of the draw.
  int64_t slice_boxes(int64_t micro_batch) const;
};

// What the user allows.
struct LadderOptions {
  int min_checkpointing = 0;  // equal to max_checkpointing: a fixed level
  int max_checkpointing = 0;  // the model must know how: 0 unless somebody runs it with recomputation
  bool may_chunk_assignment = false;
  bool mixed_precision = false;  // from the start
  bool may_use_mixed_precision = false;
  bool may_lighten_augment = false;
  bool may_shrink_image = false;
  int64_t stride = 32;          // images shrink by this many pixels at a time
  int64_t smallest_image = 64;  // longer side, in pixels
};

// All settings for this step, the most wanted first. Slices are as equal as they can be: n slices of ceil(size / n).
std::vector<StepSetting> make_ladder(const StepShape& shape, const LadderOptions& options);
// The deepest rung that `setting` uses.
Rung rung_of(const StepSetting& setting, const StepShape& shape, const LadderOptions& options);
// "micro-batch 4, checkpointing 3, mixed precision": what a log line says of a setting.
std::string describe(const StepSetting& setting);
// "640 px", or "640x480 px" (width, height).
std::string size_text(const StepShape& shape);
// Height and width after `shrink` stride multiples are taken off the longer side, the other side in proportion,
// rounded to the stride.
std::pair<int64_t, int64_t> shrunk_size(int64_t height, int64_t width, int64_t shrink, int64_t stride);

}  // namespace yolo9
