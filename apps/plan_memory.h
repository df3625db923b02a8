// The figures of yolo9-plan: predicted memory, as JSON from which the text is made too.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "plan_request.h"

namespace plan {

using nlohmann::ordered_json;

constexpr int64_t kMostImages = 4096;

inline ordered_json split_json(const yolo9::MemorySplit& split) {
  return {{"weights_bytes", split.weights_bytes},         {"gradients_bytes", split.gradients_bytes},
          {"optimizer_bytes", split.optimizer_bytes},     {"ema_bytes", split.ema_bytes},
          {"activations_bytes", split.activations_bytes}, {"assignment_bytes", split.assignment_bytes},
          {"workspace_bytes", split.workspace_bytes},     {"total_bytes", split.total()}};
}

inline ordered_json cards_that_fit(int64_t device_bytes) {
  auto names = ordered_json::array();
  for (const auto& card : yolo9::known_cards())
    if (card.memory_bytes >= device_bytes) names.push_back(card.name);
  return names;
}

// One model, measured as far as the request needs it.
class ModelPlan {
 public:
  ModelPlan(const Request& request, const std::string& config)
      : request_(request), config_(config), table_(config, request.classes) {
    check_sizes(request.sizes, table_.largest_stride());
    for (const auto& precision : request.precisions) {
      for (const int level : request.levels) table_.measure(kind_of(level, precision));
      table_.measure_inference(kind_of(0, precision).mixed_precision);
    }
  }

  void append_to(ordered_json& out) {
    for (const int64_t size : request_.sizes)
      for (const auto& precision : request_.precisions) {
        for (const int64_t batch : request_.batches) {
          for (const auto& optimizer : request_.optimizers)
            for (const int level : request_.levels)
              out["training"].push_back(training_row(size, batch, precision, level, optimizer));
          out["inference"].push_back(inference_row(size, batch, precision));
        }
      }
    if (request_.device_bytes() > 0) append_safe_batches(out);
  }

 private:
  yolo9::Load load(int64_t size, int64_t batch) const { return {batch, size, size, request_.boxes}; }

  ordered_json training_row(int64_t size, int64_t batch, const std::string& precision, int level,
                            const std::string& optimizer) const {
    const auto kind = kind_of(level, precision);
    const auto optimizer_kind = yolo9::parse_optimizer(optimizer);
    const auto split = table_.training(load(size, batch), kind, optimizer_kind);
    const int64_t needed = request_.device_for(split.total());
    ordered_json row{{"config", config_},
                     {"image_size", size},
                     {"batch", batch},
                     {"amp", precision},
                     {"checkpointing", level},
                     {"optimizer", optimizer},
                     {"accumulation", request_.accumulation(batch)}};
    row.update(split_json(split));
    row["bytes_per_image"] =
        table_.step_bytes(load(size, 2), kind).peak() - table_.step_bytes(load(size, 1), kind).peak();
    row["needed_device_bytes"] = needed;
    if (request_.device_bytes() > 0) row["fits"] = needed <= request_.device_bytes();
    row["cards"] = cards_that_fit(needed);
    const int64_t share = (batch + request_.ranks - 1) / request_.ranks;
    const auto rank = table_.training(load(size, share), kind, optimizer_kind);
    row["data_parallel"] = {{"ranks", request_.ranks},
                            {"batch_per_rank", share},
                            {"bytes_per_rank", rank.total()},
                            {"needed_device_bytes", request_.device_for(rank.total())},
                            {"sharded_optimizer_bytes_per_rank", rank.sharded(request_.ranks).optimizer_bytes},
                            {"sharded_bytes_per_rank", rank.sharded(request_.ranks).total()}};
    return row;
  }

  ordered_json inference_row(int64_t size, int64_t batch, const std::string& precision) const {
    const auto split = table_.inference(load(size, batch), kind_of(0, precision).mixed_precision);
    return {{"config", config_},
            {"image_size", size},
            {"batch", batch},
            {"precision", precision == "off" ? "fp32" : precision},
            {"weights_bytes", split.weights_bytes},
            {"activations_bytes", split.activations_bytes},
            {"total_bytes", split.total()},
            {"needed_device_bytes", request_.device_for(split.total())}};
  }

  // The table of batch and picture size: the sizes that were asked for, or usual ones around a single one.
  void append_safe_batches(ordered_json& out) const {
    std::vector<int64_t> sizes = request_.sizes;
    if (sizes.size() == 1)
      for (const int64_t usual : {320, 416, 512, 640, 768, 960, 1280})
        if (usual % table_.largest_stride() == 0) sizes.push_back(usual);
    std::sort(sizes.begin(), sizes.end());
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    const int64_t usable = request_.usable_bytes(request_.device_bytes());
    for (const auto& optimizer : request_.optimizers)
      for (const auto& precision : request_.precisions)
        for (const int64_t size : sizes)
          for (const int level : request_.levels) {
            const auto kind = kind_of(level, precision);
            const auto optimizer_kind = yolo9::parse_optimizer(optimizer);
            const int64_t most = table_.most_images(load(size, 1), kind, optimizer_kind, usable, kMostImages);
            const int64_t one = table_.training(load(size, 1), kind, optimizer_kind).total();
            out["safe_batches"].push_back({{"config", config_},
                                           {"amp", precision},
                                           {"optimizer", optimizer},
                                           {"image_size", size},
                                           {"checkpointing", level},
                                           {"batch", most},
                                           {"accumulation", most > 0 ? request_.accumulation(most) : 0},
                                           {"one_image_needs_bytes", request_.device_for(one)}});
          }
  }

  const Request& request_;
  std::string config_;
  yolo9::MemoryTable table_;
};

inline ordered_json make_plan(const Request& request) {
  ordered_json out;
  out["assumptions"] = {{"context_bytes", request.context_bytes()},
                        {"headroom", yolo9::parse_headroom(request.headroom)},
                        {"boxes_per_image", request.boxes},
                        {"nominal_batch", request.nominal_batch},
                        {"measured_on", "cpu"}};
  if (request.device_bytes() > 0) {
    out["device"] = {{"name", request.gpu.empty() ? "" : yolo9::find_card(request.gpu).name},
                     {"memory_bytes", request.device_bytes()},
                     {"usable_bytes", request.usable_bytes(request.device_bytes())}};
  }
  for (const auto& config : request.configs) ModelPlan(request, config).append_to(out);
  return out;
}

// Throws Error(Memory) when nothing of what was asked for trains even one image; call it after printing.
inline void refuse_if_nothing_fits(const Request& request, const ordered_json& result) {
  if (!result.contains("safe_batches")) return;
  int64_t least = 0;
  for (const auto& row : result.at("safe_batches")) {
    const auto size = row.at("image_size").get<int64_t>();
    if (std::find(request.sizes.begin(), request.sizes.end(), size) == request.sizes.end()) continue;
    if (row.at("batch").get<int64_t>() > 0) return;
    const auto bytes = row.at("one_image_needs_bytes").get<int64_t>();
    least = least == 0 ? bytes : std::min(least, bytes);
  }
  throw yolo9::Error(yolo9::ErrorKind::Memory,
                     "not even one image can be trained: at least " + yolo9::format_bytes(least) +
                         " are needed, the device has " + yolo9::format_bytes(request.device_bytes()),
                     "", "use a larger card, or a smaller --img or model");
}

}  // namespace plan
