// A recorded step replayed through a model of the CUDA caching allocator: what would be reserved.
#pragma once

#include <cstdio>
#include <string>

#include <nlohmann/json.hpp>

#include "plan_request.h"
#include "plan_text.h"

namespace plan {

inline yolo9::AllocationTrace record_trace(const Request& request) {
  yolo9::MemoryTable table(request.configs.front(), request.classes);
  check_sizes(request.sizes, table.largest_stride());
  const auto kind = kind_of(request.levels.front(), request.precisions.front());
  const int64_t size = request.sizes.front();
  const yolo9::Load load{request.batches.front(), size, size, request.boxes};
  const auto optimizer = yolo9::parse_optimizer(request.optimizers.front());
  table.measure(kind);
  const int64_t foreseen = table.step_bytes(load, kind).peak(), free = yolo9::host_available_bytes();
  if (foreseen > free)
    throw yolo9::Error(yolo9::ErrorKind::Memory,
                       "the step to record needs " + yolo9::format_bytes(foreseen) + " of this machine's memory, " +
                           yolo9::format_bytes(free) + " are free",
                       "", "simulate a smaller --batch or --img");
  return table.record_training_step(load, kind, optimizer);
}

inline ordered_json replay(const Request& request, const yolo9::AllocationTrace& trace, bool expandable) {
  yolo9::SimulatedOptions options;
  options.device_total_bytes = request.device_bytes() > 0 ? request.device_bytes() : int64_t{1} << 42;
  options.context_bytes = request.context_bytes();
  options.expandable_segments = expandable;
  yolo9::SimulatedCachingSource allocator(options);
  const auto result = allocator.replay(trace);
  ordered_json out{{"expandable_segments", expandable},
                   {"peak_allocated_bytes", result.peak_allocated_bytes},
                   {"peak_reserved_bytes", result.peak_reserved_bytes},
                   {"peak_inactive_split_bytes", result.peak_inactive_split_bytes},
                   {"fragmentation", result.fragmentation},
                   {"retries", result.retries}};
  out["phases"] = ordered_json::array();
  for (const auto& phase : result.phases)
    out["phases"].push_back(
        {{"label", phase.label}, {"allocated_bytes", phase.allocated_bytes}, {"reserved_bytes", phase.reserved_bytes}});
  return out;
}

inline ordered_json simulate(const Request& request) {
  const auto trace =
      request.replay_file.empty() ? record_trace(request) : yolo9::AllocationTrace::read(request.replay_file);
  if (!request.trace_file.empty()) trace.write(request.trace_file);
  ordered_json out;
  if (request.replay_file.empty())
    out["step"] = {{"config", request.configs.front()},       {"image_size", request.sizes.front()},
                   {"batch", request.batches.front()},        {"amp", request.precisions.front()},
                   {"checkpointing", request.levels.front()}, {"optimizer", request.optimizers.front()}};
  out["events"] = trace.events().size();
  out["requested_peak_bytes"] = trace.peak_bytes();
  out["replays"] = ordered_json::array();
  if (!request.expandable) out["replays"].push_back(replay(request, trace, false));
  out["replays"].push_back(replay(request, trace, true));
  return out;
}

inline void print_simulation(const ordered_json& result) {
  if (result.contains("step")) {
    const auto& step = result.at("step");
    std::printf("One step of %s: %lld images of %lld px, amp %s, checkpointing %lld, %s\n",
                word(step, "config").c_str(), number(step, "batch"), number(step, "image_size"),
                word(step, "amp").c_str(), number(step, "checkpointing"), word(step, "optimizer").c_str());
  }
  std::printf("%lld events, at most %s asked for at once\n", number(result, "events"),
              bytes_text(result, "requested_peak_bytes").c_str());
  for (const auto& replay : result.at("replays")) {
    std::printf("\nexpandable segments %s: peak allocated %s, peak reserved %s, fragmentation %.1f%%, %lld retries\n",
                replay.at("expandable_segments").get<bool>() ? "on" : "off",
                bytes_text(replay, "peak_allocated_bytes").c_str(), bytes_text(replay, "peak_reserved_bytes").c_str(),
                100 * replay.at("fragmentation").get<double>(), number(replay, "retries"));
    for (const auto& phase : replay.at("phases"))
      std::printf("  %-10s allocated %11s  reserved %11s\n", word(phase, "label").c_str(),
                  bytes_text(phase, "allocated_bytes").c_str(), bytes_text(phase, "reserved_bytes").c_str());
  }
}

}  // namespace plan
