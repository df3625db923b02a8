#include <yolo9/train/schedule.h>

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include <yolo9/core/error.h>

namespace yolo9 {
namespace {

constexpr int64_t kLeastWarmup = 100;

// Half to even, whatever the rounding mode of the process.
int64_t round_half_even(double value) {
  const double low = std::floor(value), rest = value - low;
  const auto whole = static_cast<int64_t>(low);
  if (rest != 0.5) return rest < 0.5 ? whole : whole + 1;
  return whole % 2 == 0 ? whole : whole + 1;
}

double cosine(double progress, double last) { return (1 - std::cos(progress * M_PI)) / 2 * (last - 1) + 1; }

}  // namespace

Schedule::Schedule(const ScheduleOptions& options)
    : options_(options),
      warmup_iterations_(std::max(
          round_half_even(options.warmup_epochs * static_cast<double>(options.batches_per_epoch)), kLeastWarmup)) {
  TORCH_CHECK(options.epochs > 0 && options.batch > 0, "[Schedule] needs epochs and a batch");
  learning_rates_.fill(options_.lr0 * factor(0));
}

double Schedule::factor(int64_t epoch) const {
  const double last = options_.lrf, epochs = static_cast<double>(options_.epochs), e = static_cast<double>(epoch);
  switch (options_.shape) {
    case ScheduleShape::Linear: return (1 - e / epochs) * (1 - last) + last;
    case ScheduleShape::Cosine: return cosine(e / epochs, last);
    case ScheduleShape::FlatCosine: {
      const int64_t half = options_.epochs / 2;
      // A run of a single epoch has no second half.
      if (epoch <= half || half == 0) return 1;
      return cosine(static_cast<double>(epoch - half) / static_cast<double>(half), last);
    }
    case ScheduleShape::Fixed: return 1;
  }
  TORCH_CHECK(false, "[Schedule] unknown shape");
}

StepPlan Schedule::plan(int64_t iteration, int64_t epoch) {
  StepPlan plan;
  plan.warming_up = iteration <= warmup_iterations_;
  plan.momentum = options_.momentum;
  if (plan.warming_up) {
    const double progress = static_cast<double>(iteration) / static_cast<double>(warmup_iterations_);
    const auto between = [&](double from, double to) { return from + (to - from) * progress; };
    const double rate = options_.lr0 * factor(epoch);
    learning_rates_ = {between(options_.warmup_bias_lr, rate), between(0, rate), between(0, rate)};
    plan.momentum = between(options_.warmup_momentum, options_.momentum);
    const double draws = static_cast<double>(options_.nominal_batch) / static_cast<double>(options_.batch);
    accumulate_ = std::max<int64_t>(1, round_half_even(between(1, draws)));
  }
  plan.learning_rates = learning_rates_;
  plan.accumulate = accumulate_;
  return plan;
}

void Schedule::end_epoch(int64_t epoch) {
  learning_rates_.fill(options_.lr0 * factor(options_.modern ? epoch + 1 : epoch));
}

std::vector<std::pair<std::string, torch::Tensor>> Schedule::state() const {
  return {{"learning_rates", at::tensor(at::ArrayRef<double>(learning_rates_), at::kDouble)},
          {"accumulate", at::tensor({accumulate_}, at::kLong)}};
}

void Schedule::load_state(const std::vector<std::pair<std::string, torch::Tensor>>& saved) {
  torch::Tensor rates, accumulate;
  for (const auto& [name, tensor] : saved) {
    if (name == "learning_rates" && tensor.numel() == 3) rates = tensor.to(at::kDouble).contiguous();
    if (name == "accumulate" && tensor.numel() == 1) accumulate = tensor;
  }
  if (!rates.defined() || !accumulate.defined())
    throw Error(ErrorKind::Weights, "the checkpoint holds no usable state of the schedule", "",
                "start again from its weights");
  std::copy_n(rates.const_data_ptr<double>(), 3, learning_rates_.begin());
  accumulate_ = accumulate.item<int64_t>();
}

int64_t nominal_accumulation(int64_t batch, int64_t nominal_batch) {
  return std::max<int64_t>(1, round_half_even(static_cast<double>(nominal_batch) / static_cast<double>(batch)));
}

double scaled_weight_decay(double weight_decay, int64_t batch, int64_t nominal_batch) {
  const int64_t images = batch * nominal_accumulation(batch, nominal_batch);
  return weight_decay * (static_cast<double>(images) / static_cast<double>(nominal_batch));
}

}  // namespace yolo9
