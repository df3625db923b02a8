#include <yolo9/memory/simulated_source.h>

#include <algorithm>
#include <optional>

#include <c10/util/Exception.h>

namespace yolo9 {

namespace {

// Addresses cost nothing: an expandable segment has room for the device's memory and an eighth more.
int64_t address_bytes(const SimulatedOptions& options) {
  return options.device_total_bytes + options.device_total_bytes / 8;
}

}  // namespace

SimulatedCachingSource::SimulatedCachingSource(SimulatedOptions options)
    : options_(options),
      small_(true, options.expandable_segments, address_bytes(options)),
      large_(false, options.expandable_segments, address_bytes(options)) {
  TORCH_CHECK(options.device_total_bytes > 0 && options.context_bytes >= 0, "[simulated memory] a device of ",
              options.device_total_bytes, " bytes with a context of ", options.context_bytes);
}

MemorySample SimulatedCachingSource::sample() const {
  MemorySample out;
  out.allocated_bytes = allocated_bytes();
  out.requested_bytes = requested_bytes_;
  out.active_bytes = out.allocated_bytes;
  out.reserved_bytes = reserved_bytes();
  out.inactive_split_bytes = inactive_split_bytes();
  out.peak_allocated_bytes = peak_allocated_bytes_;
  out.peak_reserved_bytes = peak_reserved_bytes_;
  out.retries = retries_;
  out.ooms = ooms_;
  out.held_bytes = out.reserved_bytes + options_.context_bytes;
  out.device_free_bytes = std::max<int64_t>(0, options_.device_total_bytes - out.held_bytes - others_bytes_);
  out.device_total_bytes = options_.device_total_bytes;
  out.budget_bytes = budget_bytes_;
  return out;
}

int64_t SimulatedCachingSource::inactive_split_bytes() const {
  return reserved_bytes() - allocated_bytes() - small_.releasable_bytes() - large_.releasable_bytes();
}

void SimulatedCachingSource::reset_peak() {
  peak_allocated_bytes_ = allocated_bytes();
  peak_reserved_bytes_ = reserved_bytes();
}

void SimulatedCachingSource::release_cached() {
  small_.trim();
  large_.trim();
}

bool SimulatedCachingSource::can_grow(int64_t bytes) const {
  const int64_t reserved = reserved_bytes() + bytes;
  if (budget_bytes_ != 0 && reserved > budget_bytes_) return false;
  return reserved + options_.context_bytes + others_bytes_ <= options_.device_total_bytes;
}

SimulatedCachingSource::Handle SimulatedCachingSource::allocate(int64_t bytes) {
  TORCH_CHECK(bytes > 0, "[simulated memory] allocate ", bytes, " bytes");
  const int64_t size = CachingPool::round_size(bytes);
  const bool small = size <= CachingPool::kSmallRequest;
  CachingPool& chosen = pool(small);
  std::optional<CachingPool::Place> place = chosen.reuse(size);
  for (int attempt = 0; !place && attempt < 2; ++attempt) {
    if (attempt == 1) {
      ++retries_;
      release_cached();
    }
    const auto growth = chosen.growth(size);
    if (growth && can_grow(*growth)) place = chosen.grow(size);
  }
  if (!place) refuse(bytes);
  const Handle handle = next_handle_++;
  live_[handle] = {small, *place, bytes};
  requested_bytes_ += bytes;
  peak_allocated_bytes_ = std::max(peak_allocated_bytes_, allocated_bytes());
  peak_reserved_bytes_ = std::max(peak_reserved_bytes_, reserved_bytes());
  return handle;
}

void SimulatedCachingSource::refuse(int64_t bytes) {
  ++ooms_;
  const MemorySample now = sample();
  TORCH_CHECK_WITH(OutOfMemoryError, false, "[simulated memory] out of memory: tried to allocate ", format_bytes(bytes),
                   "; device of ", format_bytes(now.device_total_bytes), ", of which ",
                   format_bytes(now.device_free_bytes), " free; this process holds ", format_bytes(now.held_bytes),
                   ": ", format_bytes(now.allocated_bytes), " allocated, ",
                   format_bytes(now.reserved_bytes - now.allocated_bytes), " reserved but unallocated",
                   budget_bytes_ == 0 ? std::string() : "; budget " + format_bytes(budget_bytes_));
}

void SimulatedCachingSource::release(Handle handle) {
  const auto found = live_.find(handle);
  TORCH_CHECK(found != live_.end(), "[simulated memory] release of handle ", handle, ", which is not alive");
  pool(found->second.small).free(found->second.place);
  requested_bytes_ -= found->second.requested_bytes;
  live_.erase(found);
}

ReplayResult SimulatedCachingSource::replay(const AllocationTrace& trace) {
  std::unordered_map<int64_t, Handle> handles;
  const auto release_all = [&] {
    for (const auto& [block, handle] : handles) release(handle);
  };
  ReplayResult out;
  const int64_t retries_before = retries_;
  const auto note = [&] {
    const int64_t allocated = allocated_bytes(), reserved = reserved_bytes();
    out.peak_allocated_bytes = std::max(out.peak_allocated_bytes, allocated);
    out.peak_reserved_bytes = std::max(out.peak_reserved_bytes, reserved);
    out.peak_inactive_split_bytes = std::max(out.peak_inactive_split_bytes, inactive_split_bytes());
    if (out.phases.empty()) return;
    PhasePeak& phase = out.phases.back();
    phase.allocated_bytes = std::max(phase.allocated_bytes, allocated);
    phase.reserved_bytes = std::max(phase.reserved_bytes, reserved);
  };
  note();
  try {
    for (const TraceEvent& event : trace.events()) {
      switch (event.kind) {
        case TraceEvent::Kind::Allocate: handles[event.block] = allocate(event.bytes); break;
        case TraceEvent::Kind::Free:
          release(handles.at(event.block));
          handles.erase(event.block);
          break;
        case TraceEvent::Kind::Mark: out.phases.push_back({trace.label(event), 0, 0}); break;
      }
      note();
    }
  } catch (const c10::OutOfMemoryError&) {
    release_all();
    throw;
  }
  release_all();
  out.retries = retries_ - retries_before;
  if (out.peak_reserved_bytes > 0) {
    out.fragmentation =
        1.0 - static_cast<double>(out.peak_allocated_bytes) / static_cast<double>(out.peak_reserved_bytes);
  }
  return out;
}

}  // namespace yolo9
