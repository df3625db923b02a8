#include <catch2/catch.hpp>

#include <yolo9/nn/weights.h>
#include <yolo9/train/schedule.h>
#include <yolo9/train/training_kit.h>

#include "support/fixture.h"

using namespace yolo9;
using nlohmann::json;

namespace {

// A model with the formula's weights, its average, and everything a step needs, as a fixture describes them.
struct Recipe : TrainingKit {
  Recipe(const json& fixture, torch::MemoryFormat format);

  std::unique_ptr<Schedule> schedule;
};

void fill_with_formula(DetectionModel& model, const std::string& name) {
  const auto arch = fixture::read_json(fixture::golden_dir() + "/arch/" + name + ".json");
  for (auto& [key, tensor] : state_dict(*model)) {
    c10::NoGradGuard no_grad;
    torch::Tensor(tensor).copy_(
        fixture::formula(key, tensor.sizes().vec(), arch.at("formula_kind").at(key).get<std::string>()));
  }
}

Recipe::Recipe(const json& f, torch::MemoryFormat format) {
  const auto name = f.at("model").get<std::string>();
  const auto& hyp = f.at("hyp");
  DetectionModel trained(name);
  fill_with_formula(trained, name);

  ScheduleOptions s;
  s.epochs = f.at("epochs");
  s.batches_per_epoch = f.at("batches_per_epoch");
  s.batch = f.at("batch");
  s.nominal_batch = f.at("nominal_batch");
  s.lr0 = hyp.at("lr0");
  s.lrf = hyp.at("lrf");
  s.momentum = hyp.at("momentum");
  s.warmup_epochs = hyp.at("warmup_epochs");
  s.warmup_momentum = hyp.at("warmup_momentum");
  s.warmup_bias_lr = hyp.at("warmup_bias_lr");
  const auto options = f.value("options", json::object());
  if (options.value("cos_lr", false)) s.shape = ScheduleShape::Cosine;
  if (options.value("flat_cos_lr", false)) s.shape = ScheduleShape::FlatCosine;
  if (options.value("fixed_lr", false)) s.shape = ScheduleShape::Fixed;
  schedule = std::make_unique<Schedule>(s);

  KitOptions kit;
  kit.optimizer = parse_optimizer(options.value("optimizer", std::string("SGD")));
  kit.learning_rate = s.lr0;
  kit.momentum = s.momentum;
  kit.weight_decay = scaled_weight_decay(hyp.at("weight_decay"), s.batch, s.nominal_batch);
  kit.step.memory_format = format;
  assemble(trained, DetectionModel(name), make_memory_source(torch::kCPU), kit);
  // The fixtures begin from weights rounded to half precision, after the copy for the average was made.
  store->round_to_half();
}

Draw make_draw(const json& f, size_t index) {
  const auto& entry = f.at("batches").at(index);
  Draw draw;
  const std::vector<int64_t> shape{f.at("batch").get<int64_t>(), 3, f.at("h").get<int64_t>(), f.at("w").get<int64_t>()};
  draw.batch.images =
      (fixture::uniform(entry.at("image_name"), shape).to(torch::kFloat64) * 256).floor().to(torch::kUInt8);
  draw.batch.targets = torch::zeros({static_cast<int64_t>(entry.at("targets").size()), 6});
  for (size_t row = 0; row < entry.at("targets").size(); ++row)
    for (size_t k = 0; k < 6; ++k)
      draw.batch.targets[static_cast<int64_t>(row)][static_cast<int64_t>(k)] =
          entry.at("targets")[row][k].get<double>();
  return draw;
}

double norm_of(const torch::nn::Module& module, const std::function<bool(const std::string&)>& chosen, bool buffers) {
  double sum = 0;
  const auto add = [&](const std::string& name, const torch::Tensor& tensor) {
    if (chosen(name) && tensor.is_floating_point()) sum += tensor.to(torch::kFloat64).square().sum().item<double>();
  };
  if (buffers)
    for (const auto& item : module.named_buffers()) add(item.key(), item.value());
  else
    for (const auto& item : module.named_parameters()) add(item.key(), item.value());
  return std::sqrt(sum);
}

bool ends_with(const std::string& text, const std::string& suffix) {
  return text.size() >= suffix.size() && text.compare(text.size() - suffix.size(), suffix.size(), suffix) == 0;
}

void check_norms(Recipe& recipe, const json& row, double rel) {
  const auto close = [&](double actual, double expected) { CHECK(actual == Approx(expected).epsilon(rel)); };
  const auto all = [](const std::string&) { return true; };
  close(norm_of(*recipe.model, all, false), row.at("param_norm"));
  close(norm_of(*recipe.ema_model, all, false), row.at("ema_param_norm"));
  for (const auto& [key, which] :
       {std::pair("param_norms", &recipe.model), std::pair("ema_param_norms", &recipe.ema_model)})
    for (const auto& [name, expected] : row.at(key).items()) {
      CAPTURE(key, name);
      close(norm_of(
                **which, [n = name](const std::string& other) { return n == other; }, false),
            expected);
    }
}

// BatchNorm follows the activations, which are noisier than the parameters.
void check_statistics(Recipe& recipe, const json& row, double rel) {
  for (const auto& [prefix, which] :
       {std::pair(std::string(), &recipe.model), std::pair(std::string("ema_"), &recipe.ema_model)}) {
    CHECK(norm_of(
              **which, [](const std::string& n) { return ends_with(n, "running_mean"); }, true) ==
          Approx(row.at(prefix + "bn_mean_norm").get<double>()).epsilon(rel));
    CHECK(norm_of(
              **which, [](const std::string& n) { return ends_with(n, "running_var"); }, true) ==
          Approx(row.at(prefix + "bn_var_norm").get<double>()).epsilon(rel));
  }
}

void check_groups(Recipe& recipe, const json& groups) {
  const auto names = parameter_groups(*recipe.model);
  REQUIRE(groups.size() == 3);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(names[i] == groups[i].at("names").get<std::vector<std::string>>());
    CHECK(recipe.optimizer->groups()[i].weight_decay ==
          Approx(groups[i].at("weight_decay").get<double>()).epsilon(1e-12));
  }
}

// Parameters are compared where a step ends: the draws of one step run together. Losses are compared in every row of
// a `calm` run. Others are chaotic: rounding alone moves later losses by up to a fifth, so that only their first five
// rows are compared, and their norms more loosely.
void follow(const json& f, torch::MemoryFormat format, bool calm) {
  Recipe recipe(f, format);
  check_groups(recipe, f.at("groups"));
  CHECK(recipe.schedule->warmup_iterations() == f.at("nw").get<int64_t>());
  const auto& rows = f.at("iterations");
  std::vector<Draw> draws;
  std::vector<size_t> pending;
  int64_t last_step = -1, epoch = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const json& row = rows[i];
    const auto ni = row.at("ni").get<int64_t>();
    CAPTURE(ni);
    if (row.at("epoch").get<int64_t>() != epoch) {
      recipe.schedule->end_epoch(epoch);
      epoch = row.at("epoch").get<int64_t>();
    }
    const StepPlan plan = recipe.schedule->plan(ni, epoch);
    CHECK(static_cast<double>(plan.accumulate) == row.at("accumulate").get<double>());
    for (size_t k = 0; k < 3; ++k) CHECK(plan.learning_rates[k] == Approx(row.at("lr")[k].get<double>()).epsilon(1e-9));
    if (recipe.optimizer->has_momentum())
      CHECK(plan.momentum == Approx(row.at("momentum")[0].get<double>()).epsilon(1e-9));
    draws.push_back(make_draw(f, row.at("batch")));
    pending.push_back(i);
    const bool steps = ni - last_step >= plan.accumulate;
    REQUIRE(steps == row.at("stepped").get<bool>());
    const bool epoch_ends = i + 1 == rows.size() || rows[i + 1].at("epoch").get<int64_t>() != epoch;
    if (!steps && !epoch_ends) continue;
    for (size_t k = 0; k < 3; ++k) recipe.optimizer->groups()[k].learning_rate = plan.learning_rates[k];
    if (recipe.optimizer->has_momentum()) recipe.optimizer->set_momentum(plan.momentum);
    const StepReport report = recipe.step->run(draws, steps);
    CHECK(report.commit_allocations == 0);
    for (size_t d = 0; d < pending.size(); ++d) {
      const json& drawn = rows[pending[d]];
      if (!calm && pending[d] >= 5) break;
      const double rel = std::max(2e-3, 10 * drawn.at("noise_loss_rel").get<double>());
      CHECK(report.draws[d].total == Approx(drawn.at("loss").get<double>()).epsilon(rel));
      for (size_t k = 0; k < 3; ++k)
        CHECK(report.draws[d].items[k] == Approx(drawn.at("items")[k].get<double>()).epsilon(rel));
    }
    if (steps) {
      last_step = ni;
      CHECK(recipe.ema->updates() == row.at("ema_updates").get<int64_t>());
      if (calm || i < 5)
        CHECK(report.gradient_norm ==
              Approx(row.at("grad_norm_before_clip").get<double>()).epsilon(calm ? 2e-2 : 5e-3));
    }
    check_norms(recipe, row, calm ? 1e-5 : 2e-4);
    check_statistics(recipe, row, calm ? 1e-3 : 5e-3);
    draws.clear();
    pending.clear();
  }
  CHECK(recipe.store->counters().max().item<int64_t>() == f.at("model_batches_tracked").back().get<int64_t>());
}

bool is_gentle(const std::string& file) { return file.find("gentle") != std::string::npos; }

}  // namespace

TEST_CASE("training trajectories follow the reference", "[golden]") {
  const auto files = fixture::golden_files("train", "_trajectory.json");
  if (files.empty()) WARN("no trajectory fixtures");
  for (const auto& file : files) {
    CAPTURE(file);
    follow(fixture::read_json(file), torch::MemoryFormat::Contiguous, is_gentle(file));
  }
}

// As runs have it.
TEST_CASE("training trajectories follow the reference in channels-last layout", "[golden]") {
  for (const auto& file : fixture::golden_files("train", "_trajectory.json")) {
    CAPTURE(file);
    follow(fixture::read_json(file), torch::MemoryFormat::ChannelsLast, is_gentle(file));
  }
}
