#include <yolo9/train/amp.h>

#include <algorithm>

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <ATen/detail/CUDAHooksInterface.h>

#include <yolo9/core/error.h>

namespace yolo9 {

namespace {

constexpr double kSmallestScale = 1, kLargestScale = 16777216;  // 2^24

}  // namespace

AmpMode parse_amp(const std::string& name) {
  if (name == "off") return AmpMode::Off;
  if (name == "fp16") return AmpMode::Float16;
  if (name == "bf16") return AmpMode::BFloat16;
  if (name == "auto") return AmpMode::Auto;
  throw Error(ErrorKind::Usage, "unknown precision \"" + name + "\"", "", "use --amp off, fp16, bf16 or auto");
}

c10::ScalarType amp_type(AmpMode mode, c10::Device device) {
  if (mode == AmpMode::BFloat16) return c10::ScalarType::BFloat16;
  if (mode == AmpMode::Float16) {
    if (device.is_cpu())
      throw Error(ErrorKind::Usage, "--amp fp16 needs a CUDA device", "", "use --amp bf16 on the CPU");
    return c10::ScalarType::Half;
  }
  return device.is_cpu() || at::detail::getCUDAHooks().supportsBFloat16ConvolutionWithCuDNNv8()
             ? c10::ScalarType::BFloat16
             : c10::ScalarType::Half;
}

AutocastScope::AutocastScope(c10::Device device, c10::ScalarType type, bool enabled)
    : device_(device.type()), active_(enabled) {
  if (!active_) return;
  enabled_before_ = at::autocast::is_autocast_enabled(device_);
  cache_before_ = at::autocast::is_autocast_cache_enabled();
  type_before_ = at::autocast::get_autocast_dtype(device_);
  at::autocast::set_autocast_enabled(device_, true);
  at::autocast::set_autocast_cache_enabled(false);
  at::autocast::set_autocast_dtype(device_, type);
}

AutocastScope::~AutocastScope() {
  if (!active_) return;
  at::autocast::set_autocast_enabled(device_, enabled_before_);
  at::autocast::set_autocast_cache_enabled(cache_before_);
  at::autocast::set_autocast_dtype(device_, type_before_);
}

void LossScaler::update(bool overflow) {
  if (overflow) {
    ++overflows_;
    good_steps_ = 0;
    scale_ = std::max(kSmallestScale, scale_ / 2);
  } else if (++good_steps_ >= kGrowthInterval) {
    good_steps_ = 0;
    scale_ = std::min(kLargestScale, scale_ * 2);
  }
}

void LossScaler::restore(double scale, int64_t good_steps, int64_t overflows) {
  scale_ = scale;
  good_steps_ = good_steps;
  overflows_ = overflows;
}

}  // namespace yolo9
