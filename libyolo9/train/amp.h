// Automatic mixed precision (Micikevicius et al. 2018): convolutions in a 16-bit type, everything that must not lose
// digits in float32, and a scale on the loss that keeps small float16 gradients from vanishing.
#pragma once

#include <cstdint>
#include <string>

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

namespace yolo9 {

enum class AmpMode {
  Off,       // float32
  Float16,   // from the start; CUDA only
  BFloat16,  // from the start
  Auto,      // only when the memory governor finds no other way
};
AmpMode parse_amp(const std::string& name);  // "off", "fp16", "bf16", "auto"; throws Error(Usage)

// The 16-bit type for a mode on a device: bfloat16 where it is native (CPU, CUDA from compute capability 8.0 on),
// else float16. Throws Error(Usage) for float16 on the CPU.
c10::ScalarType amp_type(AmpMode mode, c10::Device device);

// While one lives, forward passes of this thread run under autocast. The cache of cast weights is off: each weight is
// used once a pass, and a copy made without gradients must not serve a pass with them.
class AutocastScope {
 public:
  AutocastScope(c10::Device device, c10::ScalarType type, bool enabled);
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  c10::DeviceType device_;
  bool active_, enabled_before_ = false, cache_before_ = false;
  c10::ScalarType type_before_ = c10::ScalarType::Float;
};

// The dynamic scale of a float16 loss: halved when a step's gradients overflow, doubled after a long time without. All
// scales are powers of two, so that scaling and unscaling lose no bit.
class LossScaler {
 public:
  static constexpr double kInitialScale = 65536;
  static constexpr int64_t kGrowthInterval = 2000;  // steps

  explicit LossScaler(double scale = kInitialScale) : scale_(scale) {}
  double scale() const { return scale_; }
  int64_t overflows() const { return overflows_; }
  int64_t good_steps() const { return good_steps_; }
  // After a step with this scale.
  void update(bool overflow);
  void restore(double scale, int64_t good_steps, int64_t overflows);

 private:
  double scale_;
  int64_t good_steps_ = 0;  // since the scale last changed
  int64_t overflows_ = 0;   // since the run began
};

}  // namespace yolo9
