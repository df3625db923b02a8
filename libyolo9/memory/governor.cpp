#include <yolo9/memory/governor.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <yolo9/core/error.h>
#include <yolo9/core/log.h>

namespace yolo9 {

namespace {

// A budget that moved by less than this share is not worth a new limit, or a line: on a shared machine what is free
// moves all the time.
constexpr double kBudgetStep = 0.01, kBudgetNews = 0.05;
constexpr int64_t kMaxPatience = 320;
// A cache worth releasing.
constexpr int64_t kMinCacheBytes = int64_t{4} << 20;

// A shape of something else than pictures has no size.
std::string of_size(const StepShape& shape) { return shape.height == 0 ? "" : " of " + size_text(shape); }

// A setting to remember: the whole draw stays the whole draw, however many images the next one has.
StepSetting remembered(StepSetting setting, const StepShape& shape) {
  if (setting.micro_batch >= shape.draw_size) setting.micro_batch = std::numeric_limits<int64_t>::max();
  return setting;
}

// How far down the ladder a setting that was used before stands: the first entry that saves at least as much.
size_t position_of(const std::vector<StepSetting>& ladder, StepSetting setting) {
  // Draws that are light already, or without labels, have no such entries.
  if (!ladder.back().lighter_augment) setting.lighter_augment = false;
  if (!ladder.back().small_chunks) setting.small_chunks = false;
  for (size_t i = 0; i < ladder.size(); ++i) {
    const StepSetting& entry = ladder[i];
    const bool small_enough = entry.micro_batch <= setting.micro_batch;
    if (small_enough && entry.checkpointing >= setting.checkpointing && entry.small_chunks >= setting.small_chunks &&
        entry.mixed_precision >= setting.mixed_precision && entry.lighter_augment >= setting.lighter_augment &&
        entry.image_shrink >= setting.image_shrink)
      return i;
  }
  return ladder.size() - 1;
}

}  // namespace

GovernorMode parse_governor_mode(const std::string& name) {
  if (name == "on") return GovernorMode::On;
  if (name == "watch") return GovernorMode::Watch;
  if (name == "off") return GovernorMode::Off;
  throw Error(ErrorKind::Usage, "unknown governor mode \"" + name + "\"", "", "use on, watch or off");
}

double parse_headroom(const std::string& text) {
  const bool percent = !text.empty() && text.back() == '%';
  const std::string number = percent ? text.substr(0, text.size() - 1) : text;
  size_t used = 0;
  double value = -1;
  try {
    value = std::stod(number, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (percent) value /= 100;
  if (used == 0 || used != number.size() || !(value >= 0) || value >= 0.9)
    throw Error(ErrorKind::Usage, "headroom \"" + text + "\" is not a share of the budget", "",
                "give a percentage below 90, such as 10%");
  return value;
}

Governor::Governor(std::shared_ptr<MemorySource> source, GovernorOptions options)
    : source_(std::move(source)), options_(std::move(options)) {
  refresh_budget();
}

// ---- the budget ----

void Governor::refresh_budget() {
  const MemorySample now = source_->sample();
  const int64_t reach = now.held_bytes + now.device_free_bytes;  // without anybody else giving way
  int64_t budget = options_.budget_bytes;
  if (budget == 0) budget = static_cast<int64_t>(static_cast<double>(reach) * options_.budget_share);
  // Reach is 0 where a source knows nothing of its device.
  if (reach > 0) budget = std::min(budget, reach);
  rest_bytes_ = now.allocated_bytes;
  largest_block_bytes_ = now.largest_block_bytes;
  const int64_t before = budget_bytes_;
  const auto step = static_cast<int64_t>(static_cast<double>(before) * kBudgetStep);
  if (before > 0 && std::abs(budget - before) <= step) return;
  budget_bytes_ = budget;
  // Watching obeys a budget that was asked for, and sets none of its own.
  const bool limits =
      options_.mode == GovernorMode::On || (options_.mode == GovernorMode::Watch && options_.budget_bytes > 0);
  if (limits) source_->set_limit(budget_bytes_);
  const int64_t said = announced_bytes_ > 0 ? announced_bytes_ : budget;
  const bool news = static_cast<double>(std::abs(budget - said)) > static_cast<double>(said) * kBudgetNews;
  if (announced_bytes_ == 0 || news) announced_bytes_ = budget;
  if (news && options_.mode != GovernorMode::Off)
    decide("budget " + format_bytes(said) + " -> " + format_bytes(budget) +
           (budget < said ? ": others hold more, or less was granted" : ": more is free"));
}

int64_t Governor::allowed_bytes() const {
  const auto share = static_cast<int64_t>(static_cast<double>(budget_bytes_) * options_.headroom);
  // Without headroom asked for, none is kept; and a block that is most of a small budget must not forbid everything.
  const int64_t block = options_.headroom > 0 ? std::min(largest_block_bytes_, budget_bytes_ / 4) : 0;
  return budget_bytes_ - std::max(share, block);
}

// ---- what is foreseen ----

CostPoint Governor::point_of(const StepShape& shape, const StepSetting& setting) const {
  CostPoint point;
  point.images = std::min(std::max<int64_t>(1, setting.micro_batch), std::max<int64_t>(1, shape.draw_size));
  std::tie(point.height, point.width) =
      shrunk_size(shape.height, shape.width, setting.image_shrink, options_.ladder.stride);
  point.height = std::max<int64_t>(1, point.height);
  point.width = std::max<int64_t>(1, point.width);
  point.boxes = shape.slice_boxes(point.images);
  const int64_t chunk = setting.small_chunks ? kSmallChunkPairs : kChunkPairs;
  point.pairs = std::min(point.boxes * shape.anchors, chunk);
  return point;
}

const CostModel& Governor::model_of(const StepSetting& setting) const {
  static const CostModel nothing;
  const auto found = models_.find({setting.checkpointing, setting.mixed_precision});
  return found == models_.end() ? nothing : found->second;
}

std::optional<int64_t> Governor::expect(const StepShape& shape, const StepSetting& setting) const {
  return model_of(setting).expect(point_of(shape, setting));
}

std::optional<int64_t> Governor::bound(const StepShape& shape, const StepSetting& setting) const {
  return model_of(setting).bound(point_of(shape, setting));
}

int64_t Governor::need(const StepShape& shape, const StepSetting& setting) const {
  const CostPoint point = point_of(shape, setting);
  const CostModel& model = model_of(setting);
  const auto foreseen = model.bound(point);
  const int64_t bytes = foreseen ? *foreseen : model.failed_below(point);
  return bytes > 0 ? rest_bytes_ + bytes : 0;
}

// The first entry from `from` on that is foreseen to fit, or of which nothing is known; where none leaves the headroom
// free, the first that fits without; the last one if none does. Of slices that nothing is known of, only those up to
// `blind_micro_batch` are taken, so that blind steps down halve.
size_t Governor::first_that_fits(const StepShape& shape, const std::vector<StepSetting>& ladder, size_t from,
                                 int64_t blind_micro_batch) const {
  for (const int64_t room : {allowed_bytes(), budget_bytes_}) {
    for (size_t i = from; i < ladder.size(); ++i) {
      const int64_t bytes = need(shape, ladder[i]);
      // Lighter pictures have fewer boxes; how many fewer, only making them tells.
      const bool lighter = ladder[i].lighter_augment && (i == 0 || !ladder[i - 1].lighter_augment);
      if (lighter && rest_bytes_ < room) return i;
      if (bytes > room) continue;
      const bool same_precision = from == 0 || ladder[i].mixed_precision == ladder[from - 1].mixed_precision;
      const bool blind = bytes == 0 && ladder[i].micro_batch < shape.draw_size && same_precision;
      if (blind && ladder[i].micro_batch > blind_micro_batch) continue;
      return i;
    }
  }
  return ladder.size() - 1;
}

void Governor::decide(const std::string& line) {
  log_info("memory: " + line);
  decision_ += (decision_.empty() ? "" : "; ") + line;
}

// ---- before, during and after a step ----

StepSetting Governor::plan(const StepShape& shape) {
  ooms_in_step_ = 0;
  released_in_step_ = false;
  decision_.clear();
  refresh_budget();
  const auto ladder = make_ladder(shape, options_.ladder);
  if (options_.mode != GovernorMode::On) return ladder.front();
  const auto found = places_.find({shape.height, shape.width});
  size_t chosen = first_that_fits(shape, ladder, 0, shape.draw_size);
  if (found != places_.end()) {
    Place& place = found->second;
    const size_t present = position_of(ladder, place.setting);
    if (chosen < present && place.quiet_steps < place.patience) {
      // Up only after a while; and what is left of the present setting must do.
      chosen = first_that_fits(shape, ladder, present, shape.draw_size);
    } else if (chosen < present) {
      place.growing = true;
    }
    if (chosen != present) {
      const int64_t bytes = need(shape, ladder[chosen]);
      decide(describe(ladder[present]) + " -> " + describe(ladder[chosen]) + " for images" + of_size(shape) + " and " +
             std::to_string(shape.boxes) + " boxes, " +
             (bytes > 0 ? "foreseen " + format_bytes(bytes) : std::string("not tried before")) + " of " +
             format_bytes(budget_bytes_));
      place.quiet_steps = 0;
    }
  } else if (chosen > 0) {
    decide(describe(ladder[chosen]) + " for images" + of_size(shape) + ": " + describe(ladder.front()) +
           " would need " + format_bytes(need(shape, ladder.front())) + " of " + format_bytes(budget_bytes_));
  }
  const StepSetting setting = ladder[chosen];
  const MemorySample now = source_->sample();
  // The cache goes first where the step would fit but for what is cached in the wrong sizes.
  if (now.reserved_bytes > now.allocated_bytes && need(shape, setting) > 0 &&
      now.inactive_split_bytes + need(shape, setting) > budget_bytes_)
    release_cache(now);
  return setting;
}

bool Governor::release_cache(const MemorySample& now) {
  if (released_in_step_ || now.reserved_bytes - now.allocated_bytes < kMinCacheBytes) return false;
  released_in_step_ = true;
  source_->release_cached();
  const int64_t released = now.reserved_bytes - source_->sample().reserved_bytes;
  if (released > 0) decide("cache released: " + format_bytes(released));
  return released > 0;
}

StepSetting Governor::shrink(const StepShape& shape, const StepSetting& setting) {
  const MemorySample now = source_->sample();
  ++ooms_in_step_;
  if (options_.mode != GovernorMode::On)
    throw Error(ErrorKind::Memory,
                "out of memory with " + std::to_string(setting.micro_batch) + " images" + of_size(shape) +
                    ", the governor is not on",
                "", "run with --governor on or a smaller --batch");
  // The peak tells how far it came. Where that is most of the way, the budget is what ended it; elsewhere something
  // else did, and no more is known than that so much was needed.
  const int64_t reached = std::max<int64_t>(0, now.peak_allocated_bytes - rest_bytes_);
  const int64_t room = budget_bytes_ - rest_bytes_;
  const bool by_budget = reached > room / 5 * 3;
  const bool cache_helps = release_cache(now);
  if (cache_helps) return setting;
  models_[{setting.checkpointing, setting.mixed_precision}].observe_failure(
      point_of(shape, setting),
      std::max<int64_t>(1, by_budget ? std::max(reached, allowed_bytes() - rest_bytes_ + 1) : reached));

  const auto ladder = make_ladder(shape, options_.ladder);
  const size_t present = position_of(ladder, setting);
  if (present + 1 >= ladder.size()) give_up(shape, setting, now);
  const size_t chosen = first_that_fits(shape, ladder, present + 1, (setting.micro_batch + 1) / 2);
  Place& place = places_[{shape.height, shape.width}];
  place.patience = place.growing ? std::min(kMaxPatience, place.patience * 2) : options_.patience_steps;
  place.setting = remembered(ladder[chosen], shape);
  place.quiet_steps = 0;
  place.growing = false;
  decide("out of memory with " + describe(setting) + " for images" + of_size(shape) + " and " +
         std::to_string(shape.boxes) + " boxes (budget " + format_bytes(budget_bytes_) +
         "): the step is run again with " + describe(ladder[chosen]));
  return ladder[chosen];
}

void Governor::give_up(const StepShape& shape, const StepSetting& setting, const MemorySample& now) const {
  const auto [height, width] = shrunk_size(shape.height, shape.width, setting.image_shrink, options_.ladder.stride);
  StepShape one = shape;
  one.height = height;
  one.width = width;
  const int64_t known = need(shape, setting);
  const bool exact = known > budget_bytes_;
  throw Error(ErrorKind::Memory,
              "even one image" + of_size(one) + " does not fit: " + (exact ? "about " : "more than ") +
                  format_bytes(exact ? known : std::max(now.peak_allocated_bytes, budget_bytes_)) +
                  " are needed, the budget is " + format_bytes(budget_bytes_),
              "", "raise --memory, or use a smaller --img or model");
}

void Governor::learn(const StepShape& shape, const StepSetting& setting, const std::vector<int64_t>& phase_bytes) {
  models_[{setting.checkpointing, setting.mixed_precision}].observe(point_of(shape, setting), phase_bytes);
}

void Governor::learn_failure(const StepShape& shape, const StepSetting& setting) {
  models_[{setting.checkpointing, setting.mixed_precision}].observe_failure(
      point_of(shape, setting), std::max<int64_t>(1, allowed_bytes() - rest_bytes_ + 1));
}

StepSetting Governor::foresee(const StepShape& shape) const {
  const auto ladder = make_ladder(shape, options_.ladder);
  return ladder[first_that_fits(shape, ladder, 0, shape.draw_size)];
}

StepMemory Governor::observe(const StepShape& shape, const StepSetting& setting, std::vector<int64_t> phase_peaks) {
  const MemorySample now = source_->sample();
  StepMemory out;
  out.setting = setting;
  out.micro_batch = setting.micro_batch;
  out.rung = rung_of(setting, shape, options_.ladder);
  if (out.rung == Rung::None && released_in_step_) out.rung = Rung::ReleaseCache;
  if (const auto expected = expect(shape, setting)) out.predicted_bytes = rest_bytes_ + *expected;
  out.allocated_bytes = now.allocated_bytes;
  out.reserved_bytes = now.reserved_bytes;
  out.retries = now.retries;
  if (phase_peaks.empty()) phase_peaks.push_back(now.peak_allocated_bytes);
  out.peak_bytes = *std::max_element(phase_peaks.begin(), phase_peaks.end());
  out.budget_bytes = budget_bytes_;
  out.ooms = ooms_in_step_;
  if (options_.mode != GovernorMode::Off) {
    for (auto& bytes : phase_peaks) bytes = std::max<int64_t>(0, bytes - rest_bytes_);
    learn(shape, setting, phase_peaks);
  }
  if (options_.mode == GovernorMode::On) {
    Place& place = places_[{shape.height, shape.width}];
    place.setting = remembered(setting, shape);
    if (place.patience == 0) place.patience = options_.patience_steps;
    if (++place.quiet_steps >= place.patience) place.growing = false;
    if (setting.micro_batch < shape.draw_size && !slices_announced_) {
      slices_announced_ = true;
      log_info("memory: BatchNorm's statistics come from slices of " + std::to_string(setting.micro_batch) +
               " images now, not from the whole draw of " + std::to_string(shape.draw_size));
    }
  }
  out.decision = decision_;
  return out;
}

}  // namespace yolo9
