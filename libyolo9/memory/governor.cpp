#include <yolo9/memory/governor.h>

#include <algorithm>

#include <yolo9/core/error.h>
#include <yolo9/core/log.h>

namespace yolo9 {

GovernorMode parse_governor_mode(const std::string& name) {
  if (name == "on") return GovernorMode::On;
  if (name == "watch") return GovernorMode::Watch;
  if (name == "off") return GovernorMode::Off;
  throw Error(ErrorKind::Usage, "unknown governor mode \"" + name + "\"", "", "use on, watch or off");
}

Governor::Governor(std::shared_ptr<MemorySource> source, GovernorOptions options)
    : source_(std::move(source)), options_(options), budget_bytes_(options.budget_bytes) {
  if (options_.mode != GovernorMode::Off && budget_bytes_ > 0) source_->set_limit(budget_bytes_);
  if (budget_bytes_ == 0) budget_bytes_ = source_->sample().device_total_bytes;
}

int64_t Governor::predict(const Cost& cost, int64_t micro_batch) const {
  if (cost.peak_of_slice.empty()) return 0;
  const auto exact = cost.peak_of_slice.find(micro_batch);
  if (exact != cost.peak_of_slice.end()) return exact->second;
  const auto& [small, small_peak] = *cost.peak_of_slice.begin();
  const auto& [large, large_peak] = *cost.peak_of_slice.rbegin();
  // With one point only, everything is taken to grow with the slice: an overestimate, on the safe side.
  if (small == large) return large_peak * micro_batch / large;
  const int64_t per_image = std::max<int64_t>(0, (large_peak - small_peak) / (large - small));
  return large_peak + per_image * (micro_batch - large);
}

int64_t Governor::largest_foreseen(const Cost& cost, int64_t draw_size) const {
  const auto allowed = static_cast<int64_t>(static_cast<double>(budget_bytes_) * (1.0 - options_.headroom));
  int64_t best = cost.largest_good;
  for (int64_t slice = best + 1; slice <= draw_size; ++slice)
    if (predict(cost, slice) <= allowed) best = slice;
  return best;
}

int64_t Governor::plan(const StepShape& shape) {
  ooms_in_step_ = 0;
  decision_.clear();
  if (options_.mode != GovernorMode::On) return shape.draw_size;
  Cost& cost = costs_[{shape.height, shape.width}];
  if (cost.smallest_bad == 0) return shape.draw_size;
  if (cost.largest_good == 0) return std::clamp<int64_t>(cost.smallest_bad / 2, 1, shape.draw_size);
  int64_t slice = std::min(cost.largest_good, shape.draw_size);
  if (cost.quiet_steps >= options_.patience_steps && slice < shape.draw_size) {
    const int64_t larger = largest_foreseen(cost, shape.draw_size);
    if (larger > slice) {
      decision_ = "memory: micro-batch " + std::to_string(slice) + " -> " + std::to_string(larger) + " at " +
                  std::to_string(shape.width) + " px, foreseen " + format_bytes(predict(cost, larger)) + " of " +
                  format_bytes(budget_bytes_);
      log_info(decision_);
      slice = larger;
      cost.smallest_bad = std::max(cost.smallest_bad, larger + 1);
    }
    cost.quiet_steps = 0;
  }
  return slice;
}

int64_t Governor::shrink(const StepShape& shape, int64_t micro_batch) {
  const MemorySample now = source_->sample();
  ++ooms_in_step_;
  const std::string needed = format_bytes(std::max(now.peak_allocated_bytes, budget_bytes_));
  if (options_.mode != GovernorMode::On)
    throw Error(ErrorKind::Memory,
                "out of memory with " + std::to_string(micro_batch) + " images of " + std::to_string(shape.width) +
                    " px, the governor is not on",
                "", "run with --governor on or a smaller --batch");
  if (micro_batch <= 1)
    throw Error(ErrorKind::Memory,
                "even one image of " + std::to_string(shape.height) + "x" + std::to_string(shape.width) +
                    " px does not fit: more than " + needed + " are needed, the budget is " +
                    format_bytes(budget_bytes_),
                "", "raise --memory, or use a smaller --img or model");
  Cost& cost = costs_[{shape.height, shape.width}];
  const int64_t next = (micro_batch + 1) / 2;
  cost.smallest_bad = micro_batch;
  cost.largest_good = std::min(cost.largest_good, next);
  cost.quiet_steps = 0;
  cost.peak_of_slice.erase(cost.peak_of_slice.lower_bound(micro_batch), cost.peak_of_slice.end());
  source_->release_cached();
  decision_ = "memory: out of memory with " + std::to_string(micro_batch) + " images of " +
              std::to_string(shape.width) + " px and " + std::to_string(shape.boxes) + " boxes (budget " +
              format_bytes(budget_bytes_) + "): the step is run again with micro-batch " + std::to_string(next);
  log_info(decision_);
  return next;
}

StepMemory Governor::observe(const StepShape& shape, int64_t micro_batch) {
  StepMemory out;
  out.micro_batch = micro_batch;
  const MemorySample now = source_->sample();
  Cost& cost = costs_[{shape.height, shape.width}];
  out.predicted_bytes = predict(cost, micro_batch);
  out.allocated_bytes = now.allocated_bytes;
  out.reserved_bytes = now.reserved_bytes;
  out.retries = now.retries;
  out.peak_bytes = now.peak_allocated_bytes;
  out.budget_bytes = budget_bytes_;
  out.ooms = ooms_in_step_;
  out.decision = decision_;
  int64_t& peak = cost.peak_of_slice[micro_batch];
  peak = std::max(peak, now.peak_allocated_bytes);
  cost.largest_good = std::max(cost.largest_good, micro_batch);
  ++cost.quiet_steps;
  return out;
}

}  // namespace yolo9
