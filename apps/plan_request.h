// What yolo9-plan is asked for.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <yolo9/yolo9.h>

namespace plan {

struct Request {
  std::vector<std::string> configs;
  std::vector<int64_t> sizes{640};
  std::vector<int64_t> batches{16};
  std::vector<std::string> precisions{"off"};
  std::vector<int> levels{0, 1, 2, 3};
  std::vector<std::string> optimizers{"SGD"};
  int64_t classes = 0;
  int64_t boxes = 50;  // in each picture
  std::string device_memory, gpu;
  std::string headroom = "10%", context = "600MiB";
  int64_t nominal_batch = 64;
  int64_t ranks = 1;
  bool json = false;
  std::string trace_file, replay_file;
  bool simulate = false, expandable = false;

  // Of the chosen card; 0: none was chosen.
  int64_t device_bytes() const {
    if (!gpu.empty()) return yolo9::find_card(gpu).memory_bytes;
    return device_memory.empty() ? 0 : yolo9::parse_bytes(device_memory, 0);
  }
  int64_t context_bytes() const { return context == "0" ? 0 : yolo9::parse_bytes(context, 0); }
  // What tensors may take of so much device memory.
  int64_t usable_bytes(int64_t device) const {
    const double share = 1 - yolo9::parse_headroom(headroom);
    return static_cast<int64_t>(static_cast<double>(std::max<int64_t>(0, device - context_bytes())) * share);
  }
  // The device memory that lets tensors take so much.
  int64_t device_for(int64_t tensors) const {
    const double share = 1 - yolo9::parse_headroom(headroom);
    return context_bytes() + static_cast<int64_t>(std::ceil(static_cast<double>(tensors) / share));
  }
  // Micro-batches per optimizer step.
  int64_t accumulation(int64_t batch) const { return yolo9::nominal_accumulation(batch, nominal_batch); }
};

// Anything that would only fail after minutes of measuring.
inline void check(const Request& request) {
  const auto require = [](bool condition, const std::string& what, const std::string& place,
                          const std::string& remedy) {
    if (!condition) throw yolo9::Error(yolo9::ErrorKind::Usage, what, place, remedy);
  };
  require(request.gpu.empty() || request.device_memory.empty(), "a card and a device memory were both given", "--gpu",
          "give one of --gpu and --device-memory");
  request.device_bytes();
  request.usable_bytes(0);
  for (const auto& precision : request.precisions)
    require(yolo9::parse_amp(precision) != yolo9::AmpMode::Auto, "auto is no precision that can be planned", "--amp",
            "use off, fp16 or bf16");
  for (const auto& optimizer : request.optimizers) yolo9::parse_optimizer(optimizer);
}

inline void check_sizes(const std::vector<int64_t>& sizes, int64_t stride) {
  for (const int64_t size : sizes)
    if (size % stride != 0)
      throw yolo9::Error(yolo9::ErrorKind::Usage,
                         "the picture size " + std::to_string(size) +
                             " is no multiple of the model's largest stride, " + std::to_string(stride),
                         "--img", "give a multiple of " + std::to_string(stride));
}

inline yolo9::StepKind kind_of(int level, const std::string& precision) {
  return {level, yolo9::parse_amp(precision) != yolo9::AmpMode::Off};
}

}  // namespace plan
