#include <catch2/catch.hpp>

#include <cmath>
#include <set>

#include <yolo9/loss/detection_loss.h>
#include <yolo9/nn/model.h>
#include <yolo9/nn/weights.h>

#include "loss/assigned.h"
#include "support/fixture.h"

namespace {

void fill_with_formula(yolo9::DetectionModel& model, const nlohmann::json& kinds) {
  const torch::NoGradGuard no_grad;
  for (auto& [name, tensor] : yolo9::state_dict(*model))
    tensor.copy_(fixture::formula(name, tensor.sizes().vec(), kinds.at(name).get<std::string>()));
}

yolo9::DetectionLoss loss_for(yolo9::DetectionModel& model, const nlohmann::json& overrides) {
  yolo9::LossOptions options;
  options.classes = model->classes();
  options.reg_max = model->reg_max();
  options.strides = model->strides();
  for (const auto& [key, value] : overrides.items()) {
    if (key == "fl_gamma") options.fl_gamma = value;
    else if (key == "cls_pw") options.cls_pw = value;
    else FAIL("unknown override " << key);
  }
  return yolo9::DetectionLoss(options);
}

void check_gradients(yolo9::DetectionModel& model, const nlohmann::json& entry) {
  std::set<std::string> without;
  double squares = 0;
  int64_t zeros = 0;
  for (const auto& parameter : model->named_parameters()) {
    const auto& grad = parameter.value().grad();
    if (!grad.defined()) {
      without.insert(parameter.key());
      CHECK_FALSE(entry.at("grad_norms").contains(parameter.key()));
      continue;
    }
    const double norm = grad.to(torch::kFloat64).norm().item<double>();
    squares += norm * norm;
    zeros += norm == 0;
    if (!entry.at("grad_norms").contains(parameter.key())) continue;
    CAPTURE(parameter.key());
    CHECK(norm == Approx(fixture::number(entry.at("grad_norms").at(parameter.key()))).epsilon(5e-3).margin(1e-9));
  }
  CHECK(without == entry.at("no_grad").get<std::set<std::string>>());
  CHECK(zeros == entry.at("zero_grad_count").get<int64_t>());
  CHECK(std::sqrt(squares) == Approx(fixture::number(entry.at("grad_global_norm"))).epsilon(5e-3));
}

void check_model(const std::string& file) {
  const auto info = fixture::read_json(file);
  const auto name = info.at("model").get<std::string>();
  yolo9::DetectionModel model(fixture::source_dir() + "/models/" + name + ".yaml");
  fill_with_formula(model, fixture::read_json(fixture::golden_dir() + "/arch/" + name + ".json").at("formula_kind"));
  model->train();
  const auto images =
      fixture::uniform(info.at("input"), {info.at("batch"), 3, info.at("h"), info.at("w")});
  for (const auto& [title, entry] : info.at("cases").items()) {
    CAPTURE(file, title);
    const auto loss = loss_for(model, entry.at("hyp_override"));
    const auto targets = golden::target_rows(entry.at("targets"));
    model->zero_grad(/*set_to_none=*/true);
    const auto maps = model->forward(images);
    const auto result = loss(maps, targets);
    CHECK(result.total.item<double>() == Approx(fixture::number(entry.at("total"))).epsilon(2e-3));
    for (int64_t i = 0; i < 3; ++i)
      CHECK(result.items[i].item<double>() ==
            Approx(fixture::number(entry.at("items")[static_cast<size_t>(i)])).epsilon(2e-3).margin(1e-9));
    for (const auto& [branch, expected] : entry.at("assign").items()) {
      CAPTURE(branch);
      golden::check_assignment(loss.assign(branch == "aux" ? maps.aux : maps.main, targets), expected, 1e-3);
    }
    result.total.backward();
    check_gradients(model, entry);
  }
}

}  // namespace

TEST_CASE("losses, assignments and gradients of whole models agree with the fixtures", "[golden]") {
  int found = 0;
  for (const auto& file : fixture::golden_files("loss", ".json")) {
    if (!fixture::read_json(file).contains("model")) continue;
    check_model(file);
    ++found;
  }
  if (found == 0) WARN("no whole-model loss fixtures");
}
