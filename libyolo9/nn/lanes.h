// Sixteen numbers at a time, in the compilers' vector extension, so that one source serves every instruction set.
// Lanes never mix: a result does not depend on a number's place within a vector. For the kernels' source file only.
#pragma once

#include <cstdint>
#include <cstring>

#include <c10/util/BFloat16.h>

// A product and the sum it goes into may become one operation: that doubles the speed where the processor has it.
#if defined(__clang__)
#pragma clang fp contract(fast)
#else
#pragma GCC optimize("fp-contract=fast")
#endif

// Vectors are passed to inlined functions only; the calling convention that the warning speaks of is never used.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace yolo9::lanes {

inline constexpr int64_t kLanes = 16;

using Floats = float __attribute__((vector_size(64)));
using Bits = uint32_t __attribute__((vector_size(64)));
using Mask = int32_t __attribute__((vector_size(64)));
using Halves = uint16_t __attribute__((vector_size(32)));
using Doubles = double __attribute__((vector_size(64)));

#define YOLO9_INLINE [[gnu::always_inline]] inline

YOLO9_INLINE Floats load(const float* at) {
  Floats value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

YOLO9_INLINE void store(float* at, const Floats& value) { std::memcpy(at, &value, sizeof value); }

YOLO9_INLINE Floats load(const c10::BFloat16* at) {
  Halves raw;
  std::memcpy(&raw, at, sizeof raw);
  return reinterpret_cast<Floats>(__builtin_convertvector(raw, Bits) << 16);
}

// Rounds to nearest, ties to even, as c10::BFloat16 does.
YOLO9_INLINE void store(c10::BFloat16* at, const Floats& value) {
  const Bits bits = reinterpret_cast<Bits>(value);
  const Bits rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const Mask is_nan = value != value;
  const Bits chosen = is_nan ? (rounded & 0u) + 0x7fc0u : rounded;
  const Halves raw = __builtin_convertvector(chosen, Halves);
  std::memcpy(at, &raw, sizeof raw);
}

YOLO9_INLINE Doubles low_half(const Floats& value) {
  return __builtin_convertvector(__builtin_shufflevector(value, value, 0, 1, 2, 3, 4, 5, 6, 7), Doubles);
}
YOLO9_INLINE Doubles high_half(const Floats& value) {
  return __builtin_convertvector(__builtin_shufflevector(value, value, 8, 9, 10, 11, 12, 13, 14, 15), Doubles);
}

// A sum in double precision of sixteen lanes.
struct Sum {
  Doubles low, high;

  YOLO9_INLINE void load(const double* at) {
    std::memcpy(&low, at, sizeof low);
    std::memcpy(&high, at + 8, sizeof high);
  }
  YOLO9_INLINE void store(double* at) const {
    std::memcpy(at, &low, sizeof low);
    std::memcpy(at + 8, &high, sizeof high);
  }
  YOLO9_INLINE void add(const Floats& value) {
    low += low_half(value);
    high += high_half(value);
  }
  // Adds value^2, exactly squared.
  YOLO9_INLINE void add_square(const Floats& value) {
    const Doubles a = low_half(value), b = high_half(value);
    low += a * a;
    high += b * b;
  }
};

// 1 / (1 + exp(-u)) within 4e-7 of itself. exp(x) = 2^n exp(r), |r| <= ln(2) / 2, with the minimax polynomial of the
// Cephes library (expf). Beyond +-87 the argument is clamped: there 1 + exp(x) is 1, or its inverse below 2e-38.
// NaN stays NaN.
YOLO9_INLINE Floats sigmoid(const Floats& u) {
  const Floats limit = Floats{} + 87.0f;
  Floats x = -u;
  x = x > limit ? limit : x;
  x = x < -limit ? -limit : x;
  const Floats shifted = x * 1.44269504f + 12582912.0f;  // the low bits of 1.5 * 2^23 + n hold n
  const Floats n = shifted - 12582912.0f;
  const Floats r = x - n * 0.693359375f + n * 2.12194440e-4f;
  Floats p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  const Bits scaled = reinterpret_cast<Bits>(p) + (reinterpret_cast<Bits>(shifted) << 23);
  return 1.0f / (1.0f + reinterpret_cast<Floats>(scaled));
}

}  // namespace yolo9::lanes
