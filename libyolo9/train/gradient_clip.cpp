// clip_gradients of optimizer.h.
#include <yolo9/train/optimizer.h>

#include <array>
#include <cmath>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

namespace yolo9 {
namespace {

constexpr int64_t kBlock = 1 << 15;  // values summed in one go; fixed, so that threads change no bit
constexpr int64_t kRow = 1024;       // values a GPU norm folds into one

double square_sum(const float* values, int64_t count) {
  std::array<double, 8> lanes{};  // independent sums, for instruction-level parallelism
  int64_t i = 0;
  for (; i + 8 <= count; i += 8)
    for (int64_t lane = 0; lane < 8; ++lane) {
      const double value = values[i + lane];
      lanes[static_cast<size_t>(lane)] += value * value;
    }
  double sum = 0;
  for (; i < count; ++i) sum += static_cast<double>(values[i]) * values[i];
  for (const double lane : lanes) sum += lane;
  return sum;
}

double square_sum_cpu(const torch::Tensor& gradient) {
  const int64_t count = gradient.numel();
  const float* values = gradient.const_data_ptr<float>();
  std::vector<double> sums(static_cast<size_t>((count + kBlock - 1) / kBlock));
  at::parallel_for(0, static_cast<int64_t>(sums.size()), 4, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block)
      sums[static_cast<size_t>(block)] = square_sum(values + block * kBlock, std::min(kBlock, count - block * kBlock));
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

// How many values of scratch the norm of `count` values takes: one per full row, one for the rest.
int64_t scratch_size(int64_t count) { return count / kRow + 1; }

// Folds row by row, because a reduction of a long buffer to one value would allocate device memory of its own.
double square_sum_gpu(const torch::Tensor& gradient, const torch::Tensor& scratch) {
  torch::Tensor values = gradient;
  int64_t used = 0;
  while (values.numel() > kRow) {
    const int64_t rows = values.numel() / kRow, rest = values.numel() % kRow;
    auto folded = scratch.narrow(0, used, rows + 1);
    auto head = folded.narrow(0, 0, rows), tail = folded.select(0, rows);
    at::linalg_vector_norm_out(head, values.narrow(0, 0, rows * kRow).view({rows, kRow}), 2, at::IntArrayRef{1});
    at::linalg_vector_norm_out(tail, values.narrow(0, rows * kRow, rest), 2);
    used += rows + 1;
    values = folded;
  }
  auto norm = scratch.select(0, used);
  at::linalg_vector_norm_out(norm, values, 2);
  const double result = norm.item<double>();
  return result * result;
}

void scale_cpu(const torch::Tensor& gradient, float factor) {
  float* values = gradient.mutable_data_ptr<float>();
  at::parallel_for(0, gradient.numel(), kBlock, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) values[i] *= factor;
  });
}

}  // namespace

torch::Tensor make_norm_scratch(const std::vector<ParameterGroup>& groups) {
  int64_t largest = 0;
  for (const auto& group : groups) {
    int64_t total = 1;
    for (int64_t count = group.gradient.numel(); count > kRow; count = scratch_size(count))
      total += scratch_size(count);
    largest = std::max(largest, total);
  }
  return groups.empty() ? torch::Tensor() : at::empty({largest}, groups.front().gradient.options());
}

double clip_gradients(std::vector<ParameterGroup>& groups, double max_norm, const torch::Tensor& scratch,
                      double loss_scale) {
  const at::NoGradGuard no_grad;
  double squares = 0;
  for (const auto& group : groups) {
    if (group.gradient.numel() == 0) continue;
    if (group.gradient.is_cpu())
      squares += square_sum_cpu(group.gradient);
    else
      squares += square_sum_gpu(group.gradient, scratch.defined() ? scratch : make_norm_scratch(groups));
  }
  const double norm = std::sqrt(squares) / loss_scale;
  const double factor = std::min(1.0, max_norm / (norm + 1e-6)) / loss_scale;
  if (!std::isfinite(norm) || factor == 1) return norm;
  for (auto& group : groups) {
    if (group.gradient.numel() == 0) continue;
    if (group.gradient.is_cpu())
      scale_cpu(group.gradient, static_cast<float>(factor));
    else
      group.gradient.mul_(factor);
  }
  return norm;
}

}  // namespace yolo9
