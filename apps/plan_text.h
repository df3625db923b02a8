// yolo9-plan's figures as aligned text.
#pragma once

#include <cstdio>
#include <string>

#include <nlohmann/json.hpp>

#include <yolo9/yolo9.h>

namespace plan {

using nlohmann::ordered_json;

inline std::string bytes_text(const ordered_json& row, const char* key) {
  return yolo9::format_bytes(row.at(key).get<int64_t>());
}
inline std::string word(const ordered_json& row, const char* key) { return row.at(key).get<std::string>(); }
inline long long number(const ordered_json& row, const char* key) { return row.at(key).get<long long>(); }

inline void print_training(const ordered_json& rows) {
  std::printf("Training\n%-12s %5s %5s %4s %5s %-6s %10s %10s %10s %10s %11s %10s %10s %11s %11s %11s\n", "model", "px",
              "batch", "amp", "ckpt", "optim", "weights", "gradients", "optimizer", "EMA", "activations", "assignment",
              "workspace", "total", "per image", "on a card");
  for (const auto& row : rows) {
    std::printf("%-12s %5lld %5lld %4s %5lld %-6s", word(row, "config").c_str(), number(row, "image_size"),
                number(row, "batch"), word(row, "amp").c_str(), number(row, "checkpointing"),
                word(row, "optimizer").c_str());
    for (const char* key : {"weights_bytes", "gradients_bytes", "optimizer_bytes", "ema_bytes"})
      std::printf(" %10s", bytes_text(row, key).c_str());
    std::printf(" %11s", bytes_text(row, "activations_bytes").c_str());
    for (const char* key : {"assignment_bytes", "workspace_bytes"}) std::printf(" %10s", bytes_text(row, key).c_str());
    for (const char* key : {"total_bytes", "bytes_per_image", "needed_device_bytes"})
      std::printf(" %11s", bytes_text(row, key).c_str());
    std::printf("%s\n", row.contains("fits") ? (row.at("fits").get<bool>() ? "  fits" : "  does not fit") : "");
  }
}

inline void print_cards(const ordered_json& rows) {
  std::printf("\nSmallest cards that fit\n");
  for (const auto& row : rows) {
    std::string names;
    size_t shown = 0;
    for (const auto& name : row.at("cards")) {
      if (++shown > 4) break;
      names += (names.empty() ? "" : ", ") + name.get<std::string>();
    }
    const size_t count = row.at("cards").size();
    if (count > 4) names += " and " + std::to_string(count - 4) + " more";
    std::printf("%-12s %5lld px, batch %lld, amp %s, checkpointing %lld, %s: %s\n", word(row, "config").c_str(),
                number(row, "image_size"), number(row, "batch"), word(row, "amp").c_str(), number(row, "checkpointing"),
                word(row, "optimizer").c_str(), count > 0 ? names.c_str() : "none");
  }
}

inline void print_ranks(const ordered_json& rows) {
  std::printf("\nData parallel\n%-12s %5s %5s %4s %5s %-6s %6s %14s %12s %20s %18s\n", "model", "px", "batch", "amp",
              "ckpt", "optim", "ranks", "batch per rank", "per rank", "optimizer, sharded", "per rank, sharded");
  for (const auto& row : rows) {
    const auto& share = row.at("data_parallel");
    std::printf("%-12s %5lld %5lld %4s %5lld %-6s %6lld %14lld %12s %20s %18s\n", word(row, "config").c_str(),
                number(row, "image_size"), number(row, "batch"), word(row, "amp").c_str(), number(row, "checkpointing"),
                word(row, "optimizer").c_str(), number(share, "ranks"), number(share, "batch_per_rank"),
                bytes_text(share, "bytes_per_rank").c_str(),
                bytes_text(share, "sharded_optimizer_bytes_per_rank").c_str(),
                bytes_text(share, "sharded_bytes_per_rank").c_str());
  }
}

inline void print_inference(const ordered_json& rows) {
  std::printf("\nInference (main branch, normalisation folded in)\n%-12s %5s %5s %5s %11s %11s %11s %11s\n", "model",
              "px", "batch", "type", "weights", "activations", "total", "on a card");
  for (const auto& row : rows) {
    std::printf("%-12s %5lld %5lld %5s", word(row, "config").c_str(), number(row, "image_size"), number(row, "batch"),
                word(row, "precision").c_str());
    for (const char* key : {"weights_bytes", "activations_bytes", "total_bytes", "needed_device_bytes"})
      std::printf(" %11s", bytes_text(row, key).c_str());
    std::printf("\n");
  }
}

// One line a model, precision and size; one column a checkpointing level: images, and micro-batches a step.
inline void print_safe_batches(const ordered_json& result) {
  const auto& device = result.at("device");
  std::printf("\nLargest safe batch (x micro-batches per optimizer step), %s%s, %s of it for tensors\n",
              word(device, "name").empty() ? "" : (word(device, "name") + ", ").c_str(),
              bytes_text(device, "memory_bytes").c_str(), bytes_text(device, "usable_bytes").c_str());
  std::string line;
  long long best = 0;
  const ordered_json* best_row = nullptr;
  for (const auto& row : result.at("safe_batches")) {
    const std::string here = word(row, "config") + " " + word(row, "amp") + " " + word(row, "optimizer") + " " +
                             std::to_string(number(row, "image_size"));
    if (here != line) {
      std::printf("%s%-12s %4s %-6s %5lld px", line.empty() ? "" : "\n", word(row, "config").c_str(),
                  word(row, "amp").c_str(), word(row, "optimizer").c_str(), number(row, "image_size"));
      line = here;
    }
    const long long batch = number(row, "batch");
    const std::string cell = batch > 0
                                 ? std::to_string(batch) + " (x" + std::to_string(number(row, "accumulation")) + ")"
                                 : std::string("none");
    std::printf("  checkpointing %lld: %-10s", number(row, "checkpointing"), cell.c_str());
    if (batch > best) {
      best = batch;
      best_row = &row;
    }
  }
  std::printf("\n");
  if (best_row)
    std::printf("Largest of all: %lld images of %lld px (%s, amp %s, checkpointing %lld)\n", best,
                number(*best_row, "image_size"), word(*best_row, "config").c_str(), word(*best_row, "amp").c_str(),
                number(*best_row, "checkpointing"));
}

inline void print_plan(const ordered_json& result, bool several_ranks) {
  print_training(result.at("training"));
  print_cards(result.at("training"));
  if (several_ranks) print_ranks(result.at("training"));
  print_inference(result.at("inference"));
  if (result.contains("safe_batches")) print_safe_batches(result);
  const auto& assumed = result.at("assumptions");
  std::printf(
      "\nPredicted from small steps measured on the CPU. Assumed, not measured: %s a card holds besides tensors\n"
      "(CUDA context, cuDNN and cuBLAS workspace; --context), %.0f%% of the rest kept free (--headroom), "
      "%lld boxes in each\nimage (--boxes). fp16 and bf16 take the same.\n",
      bytes_text(assumed, "context_bytes").c_str(), 100 * assumed.at("headroom").get<double>(),
      number(assumed, "boxes_per_image"));
}

}  // namespace plan
