#include <yolo9/memory/planner.h>

#include <algorithm>
#include <cmath>

#include <yolo9/core/error.h>
#include <yolo9/core/log.h>

namespace yolo9 {

namespace {

// Measured and straight line may differ by this much before a word is said.
constexpr double kStraight = 0.05;
constexpr int64_t kMostImages = 4096, kLargestSize = 16384;

int64_t peak_of(const std::vector<int64_t>& phases) { return *std::max_element(phases.begin(), phases.end()); }

StepShape with_size(const StepShape& shape, int64_t height, int64_t width) {
  StepShape out = shape;
  const double cells = static_cast<double>(height) * static_cast<double>(width);
  const double before = static_cast<double>(shape.height) * static_cast<double>(shape.width);
  out.anchors = static_cast<int64_t>(std::llround(static_cast<double>(shape.anchors) * cells / before));
  out.height = height;
  out.width = width;
  return out;
}

}  // namespace

int64_t largest_that_fits(int64_t limit, const std::function<bool(int64_t)>& fits) {
  if (!fits(1)) return 0;
  int64_t low = 1, high = limit + 1;  // low fits, high does not or is not wanted
  while (low + 1 < high) {
    const int64_t middle = (low + high) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

StepShape with_images(const StepShape& shape, int64_t images) {
  StepShape out = shape;
  int64_t densest = (shape.boxes + std::max<int64_t>(1, shape.draw_size) - 1) / std::max<int64_t>(1, shape.draw_size);
  for (const int64_t boxes : shape.image_boxes) densest = std::max(densest, boxes);
  out.draw_size = images;
  out.boxes = densest * images;
  out.image_boxes.clear();
  return out;
}

bool Planner::measure_setting(const StepShape& shape, StepSetting setting, int64_t images) {
  std::vector<int64_t> peaks;
  for (int64_t count = 1; count <= std::min(images, std::max<int64_t>(1, shape.draw_size)); ++count) {
    const StepShape few = with_images(shape, count);
    setting.micro_batch = count;
    // One more image than fits is not worth a failure.
    if (count > 1 && !foreseen_to_fit(few, setting)) break;
    const auto phases = probe_(few, setting);
    if (!phases) {
      governor_.learn_failure(few, setting);
      break;
    }
    peaks.push_back(peak_of(*phases));
    governor_.learn(few, setting, *phases);
    if (count > 1 && peaks[static_cast<size_t>(count - 1)] < peaks[static_cast<size_t>(count - 2)])
      throw Error(ErrorKind::Memory,
                  std::to_string(count) + " images of " + size_text(shape) + " were measured to need " +
                      format_bytes(peaks.back()) + ", less than one fewer with " +
                      format_bytes(peaks[static_cast<size_t>(count - 2)]),
                  "", "memory cannot be planned here: run with --governor watch and a fixed --batch");
  }
  if (peaks.size() == 3) {
    const double line = 2.0 * static_cast<double>(peaks[1]) - static_cast<double>(peaks[0]);
    const double measured = static_cast<double>(peaks[2]);
    if (std::abs(measured - line) > kStraight * measured)
      log_warn("memory: three images need " + format_bytes(peaks[2]) + " where one and two let expect " +
               format_bytes(static_cast<int64_t>(line)) + ": predictions are rough here");
  }
  // Without labels, so that their share is known apart from the pictures'.
  for (int64_t count = 1; shape.boxes > 0 && count <= std::min<int64_t>(2, static_cast<int64_t>(peaks.size()));
       ++count) {
    StepShape empty = with_images(shape, count);
    empty.boxes = 0;
    setting.micro_batch = count;
    if (const auto phases = probe_(empty, setting)) governor_.learn(empty, setting, *phases);
  }
  return !peaks.empty();
}

bool Planner::foreseen_to_fit(const StepShape& shape, const StepSetting& setting) const {
  const auto bytes = governor_.bound(shape, setting);
  return bytes && governor_.rest_bytes() + *bytes <= governor_.allowed_bytes();
}

void Planner::measure(const StepShape& shape) {
  governor_.refresh_budget();
  const auto ladder = make_ladder(shape, governor_.options().ladder);
  const StepSetting front = ladder.front();
  const bool first_fits = measure_setting(shape, front, 3);
  if (first_fits && foreseen_to_fit(shape, front)) return;
  bool fits = first_fits;
  std::vector<std::pair<int, bool>> measured{{front.checkpointing, front.mixed_precision}};
  for (const StepSetting& setting : ladder) {
    const std::pair<int, bool> kind{setting.checkpointing, setting.mixed_precision};
    if (setting.image_shrink > 0 || std::find(measured.begin(), measured.end(), kind) != measured.end()) continue;
    // Mixed precision is not tried while everything else still serves.
    if (setting.mixed_precision && fits) break;
    measured.push_back(kind);
    fits = measure_setting(shape, setting, 2);
    if (fits && foreseen_to_fit(shape, setting)) return;
  }
  if (fits) return;
  StepSetting last = ladder.back();
  if (last.image_shrink == 0) refuse(shape, last);
  // Smaller images are allowed: one of them must fit.
  for (const StepSetting& setting : ladder)
    if (setting.image_shrink > 0)
      if (const auto phases = probe_(with_images(shape, 1), setting)) {
        governor_.learn(with_images(shape, 1), setting, *phases);
        return;
      }
  refuse(shape, last);
}

// What one image would need is measured where the device has more than the budget, and otherwise follows from smaller
// images: the cost is linear in the pixels.
void Planner::refuse(const StepShape& shape, const StepSetting& setting) {
  StepSetting one = setting;
  one.micro_batch = 1;
  one.image_shrink = 0;
  const StepShape wanted = with_images(shape, 1);
  const int64_t stride = governor_.options().ladder.stride;
  int measured = 0;
  MemorySource& source = governor_.source();
  const MemorySample now = source.sample();
  const int64_t reach = (now.held_bytes + now.device_free_bytes) / 10 * 9;
  if (reach > governor_.budget_bytes()) {
    source.set_limit(reach);
    if (const auto phases = probe_(wanted, one)) {
      governor_.learn(wanted, one, *phases);
      measured = 2;
    }
    source.set_limit(governor_.budget_bytes());
  }
  for (int64_t part = 2; part <= 16 && measured < 2; part *= 2) {
    if (std::max(shape.height, shape.width) / part < 2 * stride) break;
    // Two cells of the coarsest map at least: BatchNorm needs more than one value.
    const auto side = [&](int64_t full) { return std::max(2 * stride, full / part / stride * stride); };
    const StepShape small = with_size(wanted, side(shape.height), side(shape.width));
    if (const auto phases = probe_(small, one)) {
      governor_.learn(small, one, *phases);
      ++measured;
    }
  }
  const auto bytes = governor_.expect(wanted, one);
  const std::string budget = format_bytes(governor_.budget_bytes());
  if (!bytes)
    throw Error(ErrorKind::Memory,
                "even a small image does not fit: " + format_bytes(governor_.rest_bytes()) +
                    " are taken before the first one, the budget is " + budget,
                "", "raise --memory, or use a smaller model");
  const int64_t needed = std::max(governor_.rest_bytes() + *bytes, governor_.budget_bytes() + 1);
  throw Error(ErrorKind::Memory,
              "even one image of " + size_text(shape) + " does not fit: about " + format_bytes(needed) +
                  " are needed, the budget is " + budget,
              "", "raise --memory, or use a smaller --img or model");
}

int64_t Planner::most_images(const StepShape& image, StepSetting setting, int64_t limit) const {
  return largest_that_fits(limit, [&](int64_t count) {
    setting.micro_batch = count;
    return foreseen_to_fit(with_images(image, count), setting);
  });
}

MemoryPlan Planner::plan(const StepShape& shape, const Baseline& baseline, int64_t draws) {
  MemoryPlan out;
  out.shape = shape;
  out.baseline = baseline;
  out.baseline.other_bytes = std::max<int64_t>(0, governor_.rest_bytes() - baseline.total());
  out.budget_bytes = governor_.budget_bytes();
  out.allowed_bytes = governor_.allowed_bytes();
  const auto ladder = make_ladder(shape, governor_.options().ladder);
  out.setting = governor_.foresee(shape);
  out.rung = rung_of(out.setting, shape, governor_.options().ladder);
  if (const auto bytes = governor_.expect(shape, out.setting)) out.predicted_bytes = governor_.rest_bytes() + *bytes;
  out.safe_batch = most_images(shape, ladder.front(), kMostImages);
  const int64_t slices =
      (shape.draw_size + out.setting.micro_batch - 1) / std::max<int64_t>(1, out.setting.micro_batch);
  out.accumulation = slices * draws;
  out.effective_batch = shape.draw_size * draws;
  StepShape empty = shape;
  empty.boxes = 0;
  empty.image_boxes.clear();
  const auto with = governor_.expect(shape, out.setting), without = governor_.expect(empty, out.setting);
  if (with && without) out.boxes_bytes = std::max<int64_t>(0, *with - *without);
  const int64_t stride = governor_.options().ladder.stride;
  const double ratio = static_cast<double>(std::min(shape.height, shape.width)) /
                       static_cast<double>(std::max(shape.height, shape.width));
  for (int64_t longer = stride; longer <= kLargestSize; longer += stride) {
    const auto shorter = std::max(
        stride,
        static_cast<int64_t>(std::llround(static_cast<double>(longer) * ratio / static_cast<double>(stride))) * stride);
    if (!foreseen_to_fit(with_size(shape, shorter, longer), out.setting)) break;
    out.largest_size = longer;
  }
  int before = -1;
  for (const StepSetting& setting : ladder) {
    if (setting.checkpointing == before || setting.mixed_precision != ladder.front().mixed_precision) continue;
    StepSetting one = setting, two = setting;
    one.micro_batch = 1;
    two.micro_batch = 2;
    const auto of_one = governor_.expect(with_images(shape, 1), one),
               of_two = governor_.expect(with_images(shape, 2), two);
    before = setting.checkpointing;
    if (!of_one || !of_two) continue;
    out.levels.push_back({setting.checkpointing, *of_two - *of_one, most_images(shape, setting, kMostImages)});
  }
  return out;
}

std::string describe(const MemoryPlan& plan) {
  const auto line = [](const std::string& name, const std::string& text) {
    return name + std::string(name.size() < 17 ? 17 - name.size() : 1, ' ') + text + "\n";
  };
  const auto images = [](int64_t count) { return std::to_string(count) + (count == 1 ? " image" : " images"); };
  const Baseline& base = plan.baseline;
  std::string out =
      line("1 baseline", format_bytes(base.total()) + " before the first image: weights " +
                             format_bytes(base.weights_bytes) + ", gradients " + format_bytes(base.gradients_bytes) +
                             ", optimizer " + format_bytes(base.optimizer_bytes) + ", EMA " +
                             format_bytes(base.ema_bytes) + ", other " + format_bytes(base.other_bytes));
  std::string levels;
  for (const auto& level : plan.levels)
    levels += "; checkpointing " + std::to_string(level.checkpointing) + ": " + format_bytes(level.bytes_per_image) +
              " an image, " + images(level.most_images) + " in one piece";
  out += line("2 safe batch", images(plan.safe_batch) + " of " + size_text(plan.shape) + " within " +
                                  format_bytes(plan.allowed_bytes) + " of " + format_bytes(plan.budget_bytes) + levels);
  out += line("3 accumulation", describe(plan.setting) + ": " + std::to_string(plan.accumulation) + " of them make " +
                                    images(plan.effective_batch) + " a step; peak " +
                                    format_bytes(plan.predicted_bytes) + " foreseen");
  out += line("4 augmentation", "up to " + std::to_string(plan.shape.boxes) + " boxes a draw, which cost " +
                                    format_bytes(plan.boxes_bytes));
  out += line("5 resolution", "up to " + std::to_string(plan.largest_size) + " px with the same batch and setting");
  return out;
}

}  // namespace yolo9
