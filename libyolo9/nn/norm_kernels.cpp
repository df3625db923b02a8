#include <yolo9/nn/norm_kernels.h>

#include <ATen/TensorIterator.h>

#include <yolo9/nn/norm_loops.h>

namespace yolo9 {

namespace {

using lanes::Columns;
using lanes::kLanes;
using lanes::LoopArguments;
using lanes::LoopTable;

// The loops for one instruction set.
#define YOLO9_LOOPS(Name, ...)                                                                    \
  template <class T>                                                                              \
  struct Name {                                                                                   \
    __VA_ARGS__ static void moments(const LoopArguments& a) { lanes::moments_loop<T>(a); }        \
    __VA_ARGS__ static void apply(const LoopArguments& a) {                                       \
      if (a.y[1]) return a.silu ? lanes::apply_loop<T, true, true>(a) : lanes::apply_loop<T, true, false>(a);    \
      return a.silu ? lanes::apply_loop<T, false, true>(a) : lanes::apply_loop<T, false, false>(a);              \
    }                                                                                             \
    __VA_ARGS__ static void gradient_out(const LoopArguments& a) {                                \
      if (a.y[1])                                                                                 \
        return a.silu ? lanes::gradient_out_loop<T, true, true>(a) : lanes::gradient_out_loop<T, true, false>(a); \
      return a.silu ? lanes::gradient_out_loop<T, false, true>(a) : lanes::gradient_out_loop<T, false, false>(a); \
    }                                                                                             \
    __VA_ARGS__ static void gradient_in(const LoopArguments& a) { lanes::gradient_in_loop<T>(a); } \
    static constexpr LoopTable kTable{moments, apply, gradient_out, gradient_in};                 \
  }

YOLO9_LOOPS(PlainLoops, );
#if defined(__x86_64__)
YOLO9_LOOPS(Avx2Loops, __attribute__((target("avx2,fma"))));
YOLO9_LOOPS(Avx512Loops, __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512"))));
#endif

template <class T>
const LoopTable& choose_loops() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return Avx512Loops<T>::kTable;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Avx2Loops<T>::kTable;
#endif
  return PlainLoops<T>::kTable;
}

const LoopTable& loops_for(at::ScalarType type) {
  static const LoopTable& float_loops = choose_loops<float>();
  static const LoopTable& bfloat_loops = choose_loops<c10::BFloat16>();
  return type == at::kFloat ? float_loops : bfloat_loops;
}

// Numbers per piece of work: a piece stays in the second-level cache.
constexpr int64_t kPiece = 32768;

bool stride_is(const at::Tensor& t, int64_t dim, int64_t stride) { return t.size(dim) == 1 || t.stride(dim) == stride; }

// Numbers from one pixel to the next if the tensor is a range of channels of a channels-last tensor, else 0.
int64_t pixel_stride(const at::Tensor& t) {
  if (!stride_is(t, 1, 1)) return 0;
  int64_t stride = t.size(1);
  if (t.size(3) > 1) stride = t.stride(3);
  else if (t.size(2) > 1) stride = t.stride(2);
  else if (t.size(0) > 1) stride = t.stride(0);
  const bool fits = stride >= t.size(1) && stride_is(t, 3, stride) && stride_is(t, 2, t.size(3) * stride) &&
                    stride_is(t, 0, t.size(2) * t.size(3) * stride);
  return fits ? stride : 0;
}

bool has_planes(const at::Tensor& t) {
  return stride_is(t, 3, 1) && stride_is(t, 2, t.size(3)) && stride_is(t, 1, t.size(2) * t.size(3));
}

char* address(const at::Tensor& t) { return static_cast<char*>(const_cast<void*>(t.const_data_ptr())); }

// All tensors of a pass: branches' y, gradient, output. Undefined ones are left out.
struct Pass {
  std::vector<at::Tensor> y;
  at::Tensor grad, out;
  std::vector<at::Tensor> columns;  // per branch float [4, C]
  bool silu = false;
  int64_t sums = 0;  // how many sums per column the pass gathers

  std::vector<at::Tensor> tensors() const {
    std::vector<at::Tensor> all = y;
    for (const auto& t : {grad, out})
      if (t.defined()) all.push_back(t);
    return all;
  }
};

// body(begin, end) over [0, count), in LibTorch's threads. Its parallel_for is a template that needs a compiler with
// OpenMP switched on; its iterators have theirs compiled in.
template <class Body>
void in_parallel(int64_t count, int64_t grain, const Body& body) {
  if (count <= grain) return body(0, count);
  auto indices = at::arange(count, at::kLong);
  auto iterator = at::TensorIterator::nullary_op(indices);
  const auto run = [&](char** data, const int64_t*, int64_t size) {
    const int64_t begin = *reinterpret_cast<const int64_t*>(data[0]);
    body(begin, begin + size);
  };
  iterator.for_each(run, grain);
}

using Loop = void (*)(const LoopArguments&);

// Points the arguments at an offset (in numbers) of each tensor, in the order y, y, grad, out.
struct Cursor {
  const Pass& pass;
  int64_t item;

  template <class Offset>
  void place(LoopArguments& a, Offset offset) const {
    for (size_t k = 0; k < pass.y.size(); ++k) a.y[k] = address(pass.y[k]) + item * offset(pass.y[k]);
    if (pass.grad.defined()) a.grad = address(pass.grad) + item * offset(pass.grad);
    if (pass.out.defined()) a.out = address(pass.out) + item * offset(pass.out);
  }
};

void set_columns(LoopArguments& a, const std::vector<at::Tensor>& columns, int64_t first) {
  for (size_t k = 0; k < columns.size(); ++k) {
    const auto* base = columns[k].const_data_ptr<float>() + first;
    const int64_t width = columns[k].size(1);
    a.columns[k] = Columns{base, base + width, base + 2 * width, base + 3 * width};
  }
}

// Fewer than `width` numbers go through buffers; what the padding adds to the sums is taken back.
template <class T>
void run_rest(Loop loop, LoopArguments a, int64_t count) {
  std::vector<T> buffer(static_cast<size_t>(4 * a.width), T(0.0f));
  T* const part[4] = {buffer.data(), buffer.data() + a.width, buffer.data() + 2 * a.width,
                      buffer.data() + 3 * a.width};
  const auto bytes = static_cast<size_t>(count) * sizeof(T);
  for (int k = 0; k < 2; ++k) {
    if (!a.y[k]) continue;
    std::memcpy(part[k], a.y[k], bytes);
    a.y[k] = part[k];
  }
  if (a.grad) std::memcpy(part[2], a.grad, bytes);
  a.grad = a.grad ? part[2] : nullptr;
  void* const out = a.out;
  a.out = out ? part[3] : nullptr;
  a.rows = 1;
  std::vector<double> kept;
  const auto padding = static_cast<size_t>(a.width - count);
  for (double* sum : a.sums)
    if (sum) kept.insert(kept.end(), sum + count, sum + a.width);
  loop(a);
  size_t at = 0;
  for (double* sum : a.sums)
    if (sum) std::copy_n(kept.data() + padding * at++, padding, sum + count);
  if (out) std::memcpy(out, part[3], bytes);
}

void run_rest_of(at::ScalarType type, Loop loop, const LoopArguments& a, int64_t count) {
  if (count <= 0) return;
  if (type == at::kFloat) run_rest<float>(loop, a, count);
  else run_rest<c10::BFloat16>(loop, a, count);
}

// Channels-last and dense: the numbers are one line in which columns repeat every C; a width that is a multiple of
// both C and 16 lets whole vectors step through it, whatever C is.
at::Tensor run_dense(const Pass& pass, Loop loop) {
  const auto& y = pass.y[0];
  const int64_t channels = y.size(1), total = y.numel(), width = std::lcm(channels, kLanes);
  Pass wide = pass;
  if (width > channels)
    for (auto& columns : wide.columns) columns = columns.repeat({1, width / channels});
  const int64_t rows_per_piece = std::max<int64_t>(1, kPiece / width), rows = total / width;
  const int64_t pieces = std::max<int64_t>(1, (rows + rows_per_piece - 1) / rows_per_piece);
  at::Tensor sums;
  if (pass.sums > 0) sums = at::zeros({pieces, pass.sums, width}, at::kDouble);
  double* const gathered = pass.sums > 0 ? sums.mutable_data_ptr<double>() : nullptr;
  in_parallel(pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t piece = begin; piece < end; ++piece) {
      LoopArguments a;
      const int64_t first = piece * rows_per_piece;
      a.rows = std::min(rows_per_piece, rows - first);
      a.width = width;
      a.silu = pass.silu;
      a.y_stride[0] = a.y_stride[1] = a.grad_stride = a.out_stride = width;
      set_columns(a, wide.columns, 0);
      for (int64_t k = 0; k < pass.sums; ++k) a.sums[k] = gathered + (piece * pass.sums + k) * width;
      const Cursor cursor{pass, y.element_size()};
      cursor.place(a, [&](const at::Tensor&) { return first * width; });
      if (a.rows > 0) loop(a);
      if (piece + 1 < pieces) continue;
      cursor.place(a, [&](const at::Tensor&) { return rows * width; });
      run_rest_of(y.scalar_type(), loop, a, total - rows * width);
    }
  });
  if (pass.sums == 0) return {};
  return sums.sum(0).view({pass.sums, width / channels, channels}).sum(1);
}

// Channels-last with gaps between the pixels, for passes without sums and at least 16 channels.
void run_rows(const Pass& pass, Loop loop) {
  const auto& y = pass.y[0];
  const int64_t channels = y.size(1), rows = y.numel() / channels;
  in_parallel(rows, std::max<int64_t>(1, kPiece / channels), [&](int64_t begin, int64_t end) {
    LoopArguments a;
    a.rows = end - begin;
    a.width = channels;
    a.silu = pass.silu;
    for (size_t k = 0; k < pass.y.size(); ++k) a.y_stride[k] = pixel_stride(pass.y[k]);
    a.out_stride = pixel_stride(pass.out);
    set_columns(a, pass.columns, 0);
    const Cursor cursor{pass, y.element_size()};
    cursor.place(a, [&](const at::Tensor& t) { return begin * pixel_stride(t); });
    loop(a);
  });
}

// Contiguous planes: each is a line in which every column is the same channel.
at::Tensor run_planes(const Pass& pass, Loop loop) {
  const auto& y = pass.y[0];
  const int64_t images = y.size(0), channels = y.size(1), plane = y.size(2) * y.size(3), rows = plane / kLanes;
  std::vector<at::Tensor> columns;  // [4, C * 16]
  for (const auto& one : pass.columns)
    columns.push_back(one.unsqueeze(2).expand({4, channels, kLanes}).reshape({4, channels * kLanes}));
  at::Tensor sums;
  if (pass.sums > 0) sums = at::zeros({channels, pass.sums, kLanes}, at::kDouble);
  double* const gathered = pass.sums > 0 ? sums.mutable_data_ptr<double>() : nullptr;
  const int64_t grain = std::max<int64_t>(1, kPiece / std::max<int64_t>(1, images * plane));
  in_parallel(channels, grain, [&](int64_t begin, int64_t end) {
    for (int64_t channel = begin; channel < end; ++channel)
      for (int64_t image = 0; image < images; ++image) {
        LoopArguments a;
        a.rows = rows;
        a.width = kLanes;
        a.silu = pass.silu;
        a.y_stride[0] = a.y_stride[1] = a.grad_stride = a.out_stride = kLanes;
        set_columns(a, columns, channel * kLanes);
        for (int64_t k = 0; k < pass.sums; ++k) a.sums[k] = gathered + (channel * pass.sums + k) * kLanes;
        const Cursor cursor{pass, y.element_size()};
        const auto start = [&](const at::Tensor& t) {
          return (images > 1 ? image * t.stride(0) : 0) + channel * plane;
        };
        cursor.place(a, start);
        if (rows > 0) loop(a);
        cursor.place(a, [&](const at::Tensor& t) { return start(t) + rows * kLanes; });
        run_rest_of(y.scalar_type(), loop, a, plane - rows * kLanes);
      }
  });
  return pass.sums > 0 ? sums.sum(2).t().contiguous() : at::Tensor();
}

// Double [pass.sums, C], undefined without sums; nothing if no walk fits all tensors.
std::optional<at::Tensor> run(const Pass& pass, Loop loop) {
  bool dense = true, rows = pass.sums == 0 && !pass.grad.defined() && pass.y[0].size(1) >= kLanes, planes = true;
  for (const auto& t : pass.tensors()) {
    dense = dense && pixel_stride(t) == t.size(1);
    rows = rows && pixel_stride(t) > 0;
    planes = planes && has_planes(t);
  }
  if (dense) return run_dense(pass, loop);
  if (planes) return run_planes(pass, loop);
  if (!rows) return std::nullopt;
  run_rows(pass, loop);
  return at::Tensor();
}

// Arithmetic per channel is plain loops: a dozen operations on tensors of a few numbers cost more than a pass.

// Float [4, C] in the order of Columns.
at::Tensor columns_of(const NormBranch& b) {
  const int64_t channels = b.y.size(1);
  auto columns = at::empty({4, channels}, at::kFloat);
  float* out = columns.mutable_data_ptr<float>();
  const float *mean = b.mean.const_data_ptr<float>(), *deviation = b.deviation.const_data_ptr<float>();
  const float *gamma = b.gamma.const_data_ptr<float>(), *beta = b.beta.const_data_ptr<float>();
  for (int64_t c = 0; c < channels; ++c) {
    out[c] = mean[c];
    out[channels + c] = gamma[c] * deviation[c];
    out[2 * channels + c] = beta[c];
    out[3 * channels + c] = deviation[c];
  }
  return columns;
}

}  // namespace

bool norm_kernels_take(const torch::Tensor& y) {
  return y.device().is_cpu() && (y.scalar_type() == at::kFloat || y.scalar_type() == at::kBFloat16) && y.dim() == 4 &&
         y.numel() > 0 && (pixel_stride(y) > 0 || has_planes(y));
}

ChannelMoments channel_moments(const torch::Tensor& y) {
  Pass pass;
  pass.y = {y};
  // Sums of differences from a value of the channel lose nothing where the mean is large against the deviation.
  const auto guess = y.select(0, 0).select(1, 0).select(1, 0).to(at::kFloat);
  pass.columns = {guess.unsqueeze(0).expand({4, y.size(1)}).contiguous()};
  pass.sums = 2;
  const auto sums = run(pass, loops_for(y.scalar_type()).moments);
  TORCH_CHECK(sums, "[channel_moments] neither channels-last nor contiguous: strides ", y.strides());
  const auto count = static_cast<double>(y.numel() / y.size(1));
  const int64_t channels = y.size(1);
  ChannelMoments moments{at::empty({channels}, at::kDouble), at::empty({channels}, at::kDouble)};
  double *mean = moments.mean.mutable_data_ptr<double>(), *variance = moments.variance.mutable_data_ptr<double>();
  const double *sum = sums->const_data_ptr<double>(), *squares = sum + channels;
  const float* from = pass.columns[0].const_data_ptr<float>();
  for (int64_t c = 0; c < channels; ++c) {
    const double offset = sum[c] / count;
    mean[c] = static_cast<double>(from[c]) + offset;
    variance[c] = std::max(0.0, squares[c] / count - offset * offset);
  }
  return moments;
}

bool normalize_into(const std::vector<NormBranch>& branches, bool silu, torch::Tensor& out) {
  Pass pass;
  for (const auto& branch : branches) {
    if (branch.y.scalar_type() != out.scalar_type()) return false;
    pass.y.push_back(branch.y);
    pass.columns.push_back(columns_of(branch));
  }
  pass.out = out;
  pass.silu = silu;
  return run(pass, loops_for(out.scalar_type()).apply).has_value();
}

NormGradient activation_gradient(const std::vector<NormBranch>& branches, bool silu, const torch::Tensor& grad_out) {
  Pass pass;
  for (const auto& branch : branches) {
    pass.y.push_back(branch.y);
    pass.columns.push_back(columns_of(branch));
  }
  pass.grad = grad_out;
  pass.silu = silu;
  pass.sums = 1 + static_cast<int64_t>(branches.size());
  NormGradient gradient;
  gradient.grad = grad_out;
  if (silu) gradient.grad = pass.out = at::empty_like(branches[0].y);
  const auto sums = run(pass, loops_for(grad_out.scalar_type()).gradient_out);
  TORCH_CHECK(sums, "[activation_gradient] the gradient's layout is not that of the output");
  gradient.sum = sums->select(0, 0);
  for (int64_t k = 1; k < pass.sums; ++k) gradient.products.push_back(sums->select(0, k));
  return gradient;
}

void norm_gradient_into(const NormGradient& gradient, const std::vector<NormBranch>& branches, size_t branch,
                        torch::Tensor& out) {
  const auto& b = branches.at(branch);
  const auto count = static_cast<double>(b.y.numel() / b.y.size(1));
  Pass pass;
  pass.y = {b.y};
  pass.grad = gradient.grad;
  pass.out = out;
  auto columns = columns_of(b);
  float* out_columns = columns.mutable_data_ptr<float>();
  const int64_t channels = b.y.size(1);
  const double *sum = gradient.sum.const_data_ptr<double>(),
               *product = gradient.products.at(branch).const_data_ptr<double>();
  for (int64_t c = 0; c < channels; ++c) {
    const double deviation = out_columns[3 * channels + c];
    out_columns[2 * channels + c] = static_cast<float>(sum[c] / count);
    out_columns[3 * channels + c] = static_cast<float>(product[c] / count * deviation);
  }
  pass.columns = {columns};
  const bool done = run(pass, loops_for(b.y.scalar_type()).gradient_in).has_value();
  TORCH_CHECK(done, "[norm_gradient_into] the layouts do not agree");
}

}  // namespace yolo9
