// The inner loops of batch normalisation: matrices whose columns have parameters of their own. For norm_kernels.cpp
// only.
#pragma once

#include <algorithm>

#include <yolo9/nn/lanes.h>

namespace yolo9::lanes {

// A column's normalisation: u = (y - mean) * scale + beta, with scale = gamma * deviation and the inverse standard
// deviation apart for the backward pass.
struct Columns {
  const float *mean, *scale, *beta, *deviation;
};

// `rows` x `width` numbers of type T (given to the functions), rows `*_stride` numbers apart. `width` is a multiple of
// 16, except where a function says otherwise. Up to two branches are summed.
struct LoopArguments {
  int64_t rows = 0, width = 0;
  const void* y[2] = {nullptr, nullptr};
  int64_t y_stride[2] = {0, 0};
  Columns columns[2] = {};
  bool silu = false;
  const void* grad = nullptr;  // of the output, or of u for `gradient_in`
  int64_t grad_stride = 0;
  void* out = nullptr;  // may be null for `gradient_out` without an activation
  int64_t out_stride = 0;
  double* sums[3] = {nullptr, nullptr, nullptr};  // per column, added to
};

struct LoopTable {
  // sums[0] += y - mean, sums[1] += (y - mean)^2, where `mean` is a guess that keeps the squares small.
  void (*moments)(const LoopArguments&);
  // out = activation(u of all branches). Any width from 16 on: the last vector may overlap the one before.
  void (*apply)(const LoopArguments&);
  // out = grad * activation'(u); sums[0] += out, sums[1 + k] += out * (normalised y of branch k).
  void (*gradient_out)(const LoopArguments&);
  // out = scale * (grad - mean - (y - columns[0].mean) * deviation): the columns are those of columns[0], but beta and
  // deviation stand for the mean of grad and for mean(grad * normalised y) * deviation. May work in place.
  void (*gradient_in)(const LoopArguments&);
};

// Loops with sums go through a few rows at a time, column by column: the sums stay in registers, and memory is still
// read nearly in its order.
inline constexpr int64_t kRowsTogether = 8;

template <class T>
YOLO9_INLINE void moments_rows(const LoopArguments& a, int64_t begin, int64_t end) {
  const T* y = static_cast<const T*>(a.y[0]);
  for (int64_t c = 0; c < a.width; c += kLanes) {
    const Floats guess = load(a.columns[0].mean + c);
    Sum first, second;
    first.load(a.sums[0] + c);
    second.load(a.sums[1] + c);
    for (int64_t r = begin; r < end; ++r) {
      const Floats d = load(y + r * a.y_stride[0] + c) - guess;
      first.add(d);
      second.add_square(d);
    }
    first.store(a.sums[0] + c);
    second.store(a.sums[1] + c);
  }
}

template <class T>
YOLO9_INLINE void moments_loop(const LoopArguments& a) {
  const int64_t step = a.width == kLanes ? a.rows : kRowsTogether;
  for (int64_t r = 0; r < a.rows; r += step) moments_rows<T>(a, r, std::min(a.rows, r + step));
}

template <class T, bool kTwo>
YOLO9_INLINE Floats normalised_sum(const LoopArguments& a, int64_t r, int64_t c) {
  Floats u = (load(static_cast<const T*>(a.y[0]) + r * a.y_stride[0] + c) - load(a.columns[0].mean + c)) *
                 load(a.columns[0].scale + c) +
             load(a.columns[0].beta + c);
  if constexpr (kTwo)
    u += (load(static_cast<const T*>(a.y[1]) + r * a.y_stride[1] + c) - load(a.columns[1].mean + c)) *
             load(a.columns[1].scale + c) +
         load(a.columns[1].beta + c);
  return u;
}

template <class T, bool kTwo, bool kSilu>
YOLO9_INLINE void apply_loop(const LoopArguments& a) {
  T* out = static_cast<T*>(a.out);
  for (int64_t r = 0; r < a.rows; ++r) {
    for (int64_t next = 0; next < a.width; next += kLanes) {
      const int64_t c = std::min(next, a.width - kLanes);
      const Floats u = normalised_sum<T, kTwo>(a, r, c);
      store(out + r * a.out_stride + c, kSilu ? u * sigmoid(u) : u);
    }
  }
}

template <class T, bool kTwo, bool kSilu>
YOLO9_INLINE void gradient_out_rows(const LoopArguments& a, int64_t begin, int64_t end) {
  const T *y = static_cast<const T*>(a.y[0]), *y2 = static_cast<const T*>(a.y[1]);
  const T* grad = static_cast<const T*>(a.grad);
  T* out = static_cast<T*>(a.out);
  for (int64_t c = 0; c < a.width; c += kLanes) {
    const auto& one = a.columns[0];
    const auto& two = a.columns[1];
    const Floats mean = load(one.mean + c), scale = load(one.scale + c), beta = load(one.beta + c),
                 deviation = load(one.deviation + c);
    Floats mean2 = mean, scale2 = scale, beta2 = beta, deviation2 = deviation;
    Sum total, product, product2;
    total.load(a.sums[0] + c);
    product.load(a.sums[1] + c);
    if constexpr (kTwo) {
      mean2 = load(two.mean + c), scale2 = load(two.scale + c), beta2 = load(two.beta + c);
      deviation2 = load(two.deviation + c);
      product2.load(a.sums[2] + c);
    }
    for (int64_t r = begin; r < end; ++r) {
      const Floats centred = load(y + r * a.y_stride[0] + c) - mean;
      Floats centred2 = centred;
      if constexpr (kTwo) centred2 = load(y2 + r * a.y_stride[1] + c) - mean2;
      Floats g = load(grad + r * a.grad_stride + c);
      if constexpr (kSilu) {
        Floats u = centred * scale + beta;
        if constexpr (kTwo) u += centred2 * scale2 + beta2;
        const Floats s = sigmoid(u);
        g *= s * (1.0f + u * (1.0f - s));
        store(out + r * a.out_stride + c, g);
      }
      total.add(g);
      product.add(g * (centred * deviation));
      if constexpr (kTwo) product2.add(g * (centred2 * deviation2));
    }
    total.store(a.sums[0] + c);
    product.store(a.sums[1] + c);
    if constexpr (kTwo) product2.store(a.sums[2] + c);
  }
}

template <class T, bool kTwo, bool kSilu>
YOLO9_INLINE void gradient_out_loop(const LoopArguments& a) {
  const int64_t step = a.width == kLanes ? a.rows : kRowsTogether;
  for (int64_t r = 0; r < a.rows; r += step) gradient_out_rows<T, kTwo, kSilu>(a, r, std::min(a.rows, r + step));
}

template <class T>
YOLO9_INLINE void gradient_in_loop(const LoopArguments& a) {
  const T* y = static_cast<const T*>(a.y[0]);
  const T* grad = static_cast<const T*>(a.grad);
  T* out = static_cast<T*>(a.out);
  const auto& k = a.columns[0];
  for (int64_t r = 0; r < a.rows; ++r)
    for (int64_t c = 0; c < a.width; c += kLanes) {
      const Floats centred = load(y + r * a.y_stride[0] + c) - load(k.mean + c);
      const Floats g = load(grad + r * a.grad_stride + c) - load(k.beta + c) - centred * load(k.deviation + c);
      store(out + r * a.out_stride + c, g * load(k.scale + c));
    }
}

}  // namespace yolo9::lanes
