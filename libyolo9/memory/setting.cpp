#include <yolo9/memory/setting.h>

#include <algorithm>
#include <cmath>

namespace yolo9 {

const char* rung_name(Rung rung) {
  switch (rung) {
    case Rung::None: return "none";
    case Rung::ReleaseCache: return "cache released";
    case Rung::ChunkAssignment: return "assignment in chunks";
    case Rung::Checkpointing: return "checkpointing";
    case Rung::Slices: return "slices";
    case Rung::MixedPrecision: return "mixed precision";
    case Rung::LighterAugment: return "lighter augmentation";
    case Rung::SmallerImage: break;
  }
  return "smaller image";
}

int64_t StepShape::slice_boxes(int64_t micro_batch) const {
  if (image_boxes.empty()) return draw_size > 0 ? (boxes * micro_batch + draw_size - 1) / draw_size : boxes;
  int64_t most = 0;
  const auto count = static_cast<int64_t>(image_boxes.size());
  for (int64_t first = 0; first < count; first += micro_batch) {
    int64_t sum = 0;
    for (int64_t i = first; i < std::min(count, first + micro_batch); ++i) sum += image_boxes[static_cast<size_t>(i)];
    most = std::max(most, sum);
  }
  return most;
}

std::string size_text(const StepShape& shape) {
  const std::string height = std::to_string(shape.height), width = std::to_string(shape.width);
  return (height == width ? width : width + "x" + height) + " px";
}

std::pair<int64_t, int64_t> shrunk_size(int64_t height, int64_t width, int64_t shrink, int64_t stride) {
  if (shrink == 0) return {height, width};
  const int64_t longer = std::max(height, width), target = std::max(stride, longer - shrink * stride);
  const auto scaled = [&](int64_t side) {
    const auto exact = static_cast<double>(side) * static_cast<double>(target) / static_cast<double>(longer);
    return std::max(stride, static_cast<int64_t>(std::llround(exact / static_cast<double>(stride))) * stride);
  };
  return {scaled(height), scaled(width)};
}

std::vector<StepSetting> make_ladder(const StepShape& shape, const LadderOptions& options) {
  std::vector<StepSetting> ladder;
  StepSetting now;
  now.micro_batch = std::max<int64_t>(1, shape.draw_size);
  now.checkpointing = options.min_checkpointing;
  now.mixed_precision = options.mixed_precision;
  ladder.push_back(now);
  if (options.may_chunk_assignment && shape.boxes > 0) {
    now.small_chunks = true;
    ladder.push_back(now);
  }
  while (now.checkpointing < options.max_checkpointing) {
    ++now.checkpointing;
    ladder.push_back(now);
  }
  // The coarsest map of so small an image is a single cell, and BatchNorm needs more than one value per channel.
  const bool one_cell = shape.height > 0 && std::max(shape.height, shape.width) <= options.stride;
  for (int64_t slices = 2; slices <= shape.draw_size && !one_cell; ++slices) {
    const int64_t size = (shape.draw_size + slices - 1) / slices;
    if (size == now.micro_batch) continue;
    now.micro_batch = size;
    ladder.push_back(now);
  }
  if (options.may_use_mixed_precision && !options.mixed_precision) {
    // Half the bytes: twice the images at most.
    now.mixed_precision = true;
    if (shape.draw_size > 1) {
      now.micro_batch = 2;
      ladder.push_back(now);
    }
    now.micro_batch = 1;
    ladder.push_back(now);
  }
  if (options.may_lighten_augment && !shape.light) {
    now.lighter_augment = true;
    ladder.push_back(now);
  }
  if (options.may_shrink_image) {
    const int64_t longer = std::max(shape.height, shape.width);
    while (longer - (now.image_shrink + 1) * options.stride >= options.smallest_image) {
      ++now.image_shrink;
      ladder.push_back(now);
    }
  }
  return ladder;
}

Rung rung_of(const StepSetting& setting, const StepShape& shape, const LadderOptions& options) {
  if (setting.image_shrink > 0) return Rung::SmallerImage;
  if (setting.lighter_augment) return Rung::LighterAugment;
  if (setting.mixed_precision && !options.mixed_precision) return Rung::MixedPrecision;
  if (setting.micro_batch < shape.draw_size) return Rung::Slices;
  if (setting.checkpointing > options.min_checkpointing) return Rung::Checkpointing;
  return setting.small_chunks ? Rung::ChunkAssignment : Rung::None;
}

std::string describe(const StepSetting& setting) {
  std::string text = "micro-batch " + std::to_string(setting.micro_batch);
  if (setting.checkpointing > 0)
    text += ", checkpointing " + std::to_string(setting.checkpointing);
  else if (setting.small_chunks)
    text += ", assignment in chunks";
  if (setting.mixed_precision) text += ", mixed precision";
  if (setting.lighter_augment) text += ", lighter augmentation";
  if (setting.image_shrink > 0) text += ", image smaller by " + std::to_string(setting.image_shrink) + " strides";
  return text;
}

}  // namespace yolo9
