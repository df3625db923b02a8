#include <yolo9/nn/norm.h>

namespace yolo9 {

namespace {

thread_local bool composite_only = false;

bool has_kernels(const torch::Tensor& y) { return !composite_only && norm_kernels_take(y); }

at::ScalarType statistics_type(const torch::Tensor& y) {
  return y.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

torch::Tensor per_channel(const torch::Tensor& values) { return values.view({1, -1, 1, 1}); }

ChannelMoments moments_of(const torch::Tensor& y) {
  if (has_kernels(y)) return channel_moments(y);
  if (y.is_cuda()) {  // without a copy of y in a wider type
    const auto [mean, variance] = at::batch_norm_update_stats(y, {}, {}, 0.0);
    return {mean.to(at::kDouble), variance.to(at::kDouble)};
  }
  const auto [variance, mean] = at::var_mean(y.to(statistics_type(y)), at::IntArrayRef{0, 2, 3}, /*correction=*/0);
  return {mean.to(at::kDouble), variance.to(at::kDouble)};
}

// In the statistics' type, but on CUDA, where one operation does it, in the type of y.
torch::Tensor normalize_branch(const NormBranch& b) {
  if (b.y.is_cuda()) return at::batch_norm_elemt(b.y, b.gamma, b.beta, b.mean, b.deviation, /*eps=*/0.0);
  auto u = b.y.to(statistics_type(b.y)) - per_channel(b.mean);
  return u.mul_(per_channel(b.deviation * b.gamma)).add_(per_channel(b.beta));
}

torch::Tensor normalized_sum(const std::vector<NormBranch>& branches) {
  auto u = normalize_branch(branches.at(0));
  for (size_t k = 1; k < branches.size(); ++k) u.add_(normalize_branch(branches[k]));
  return u;
}

torch::Tensor normalize_composite(const std::vector<NormBranch>& branches, bool silu) {
  auto u = normalized_sum(branches);
  if (silu) at::silu_(u);
  return u.to(branches[0].y.scalar_type());
}

std::vector<NormBranch> narrow(std::vector<NormBranch> branches, int64_t first, int64_t count) {
  for (auto& b : branches) {
    b.y = b.y.narrow(1, first, count);
    for (auto* values : {&b.mean, &b.deviation, &b.gamma, &b.beta}) *values = values->narrow(0, first, count);
  }
  return branches;
}

NormBackward backward_composite(const std::vector<NormBranch>& branches, bool silu, const torch::Tensor& grad,
                                bool need_y) {
  auto inner = grad;
  if (silu) {
    const auto u = normalized_sum(branches);
    inner = at::silu_backward(grad.to(u.scalar_type()), u).to(grad.scalar_type());
  }
  NormBackward out;
  for (const auto& b : branches) {
    auto [y, gamma, beta] = at::native_batch_norm_backward(inner, b.y, b.gamma, {}, {}, b.mean, b.deviation,
                                                           /*train=*/true, /*eps=*/0.0, {need_y, true, true});
    out.y.push_back(y);
    out.gamma.push_back(gamma);
    out.beta.push_back(beta);
  }
  return out;
}

}  // namespace

CompositeNormScope::CompositeNormScope() : before_(composite_only) { composite_only = true; }
CompositeNormScope::~CompositeNormScope() { composite_only = before_; }

NormBranch take_statistics(const torch::Tensor& y, torch::nn::BatchNorm2dImpl& bn) {
  const int64_t count = y.numel() / std::max<int64_t>(1, y.size(1));
  TORCH_CHECK(count > 1,
              "[take_statistics] batch normalisation needs more than one value per channel in training, got ",
              y.sizes());
  const auto moments = moments_of(y);
  const double momentum = bn.options.momentum().value(), eps = bn.options.eps();
  const double unbias = static_cast<double>(count) / static_cast<double>(count - 1);
  const auto type = statistics_type(y);
  if (has_kernels(y) && bn.running_mean.scalar_type() == at::kFloat) {
    const int64_t channels = y.size(1);
    NormBranch branch{y, at::empty({channels}, at::kFloat), at::empty({channels}, at::kFloat), bn.weight, bn.bias};
    float *mean = branch.mean.mutable_data_ptr<float>(), *deviation = branch.deviation.mutable_data_ptr<float>();
    float* running_mean = bn.running_mean.mutable_data_ptr<float>();
    float* running_variance = bn.running_var.mutable_data_ptr<float>();
    const double *exact_mean = moments.mean.const_data_ptr<double>(),
                 *exact_variance = moments.variance.const_data_ptr<double>();
    for (int64_t c = 0; c < channels; ++c) {
      mean[c] = static_cast<float>(exact_mean[c]);
      deviation[c] = static_cast<float>(1 / std::sqrt(exact_variance[c] + eps));
      running_mean[c] = static_cast<float>(running_mean[c] * (1 - momentum) + exact_mean[c] * momentum);
      running_variance[c] =
          static_cast<float>(running_variance[c] * (1 - momentum) + exact_variance[c] * (momentum * unbias));
    }
    bn.num_batches_tracked.add_(1);
    return branch;
  }
  NormBranch branch{y, moments.mean.to(type), (moments.variance + eps).rsqrt().to(type), bn.weight, bn.bias};
  const auto mean = bn.running_mean.to(at::kDouble).mul_(1 - momentum).add_(moments.mean, momentum);
  const auto variance = bn.running_var.to(at::kDouble).mul_(1 - momentum).add_(moments.variance, momentum * unbias);
  bn.running_mean.copy_(mean);
  bn.running_var.copy_(variance);
  bn.num_batches_tracked.add_(1);
  return branch;
}

torch::Tensor normalize(const std::vector<NormBranch>& branches, bool silu) {
  const auto& y = branches.at(0).y;
  if (has_kernels(y)) {
    auto out = at::empty_like(y);
    if (normalize_into(branches, silu, out)) return out;
  }
  return normalize_composite(branches, silu);
}

void normalize_again(const std::vector<NormBranch>& branches, bool silu, int64_t first, torch::Tensor& out) {
  const auto part = narrow(branches, first, out.size(1));
  if (has_kernels(branches.at(0).y)) {
    if (normalize_into(part, silu, out)) return;
    // A layout that the loops do not walk: the whole map, as at first.
    auto whole = at::empty_like(branches[0].y);
    if (normalize_into(branches, silu, whole)) {
      out.copy_(whole.narrow(1, first, out.size(1)));
      return;
    }
  }
  out.copy_(normalize_composite(part, silu));
}

NormBackward normalize_backward(const std::vector<NormBranch>& branches, bool silu, const torch::Tensor& grad,
                                bool need_y) {
  const auto& y = branches.at(0).y;
  // A map with one channel or one pixel may count as both layouts; the kernels see through that.
  const auto format = y.is_contiguous() ? at::MemoryFormat::Contiguous : at::MemoryFormat::ChannelsLast;
  const auto dense = grad.to(y.scalar_type()).contiguous(format);
  bool kernels = true;
  for (const auto& b : branches) kernels = kernels && has_kernels(b.y) && b.y.is_contiguous(format);
  if (!kernels) return backward_composite(branches, silu, dense, need_y);
  auto gradient = activation_gradient(branches, silu, dense);
  NormBackward out;
  for (size_t k = 0; k < branches.size(); ++k) {
    const auto type = branches[k].gamma.scalar_type();
    out.gamma.push_back(gradient.products[k].to(type));
    out.beta.push_back(gradient.sum.to(type));
    out.y.emplace_back();
    if (!need_y) continue;
    // The last branch may use up the gradient, unless that is the caller's.
    const bool in_place = k + 1 == branches.size() && silu;
    out.y[k] = in_place ? gradient.grad : at::empty_like(branches[k].y);
    norm_gradient_into(gradient, branches, k, out.y[k]);
  }
  return out;
}

}  // namespace yolo9
