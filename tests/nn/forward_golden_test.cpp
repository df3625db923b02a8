// Whole models under formula weights: every layer, the heads, the fused form, and training mode.
#include <catch2/catch.hpp>

#include <map>

#include <yolo9/core/safetensors.h>

#include "nn/formula_state.h"

namespace {

using nlohmann::json;
using TensorMap = std::map<std::string, torch::Tensor>;

struct Case {
  TensorMap golden;
  std::map<std::string, int> used;
  std::string model;

  // A whole tensor or its probes, under `key`.
  void compare(const std::string& key, const torch::Tensor& actual, double abs, double rel) {
    CAPTURE(key);
    if (golden.count(key)) {
      ++used[key];
      CHECK(fixture::excess(actual, golden.at(key), abs, rel) <= 0);
      return;
    }
    REQUIRE(golden.count(key + ".idx") == 1);
    ++used[key + ".idx"];
    ++used[key + ".val"];
    const auto picked = actual.detach().contiguous().view(-1).index_select(0, golden.at(key + ".idx"));
    CHECK(fixture::excess(picked, golden.at(key + ".val"), abs, rel) <= 0);
  }

  // Shape, and mean, standard deviation and largest magnitude of the whole tensor.
  void compare_statistics(const std::string& key, const json& entry, const torch::Tensor& actual, double abs,
                          double rel) {
    CAPTURE(key);
    REQUIRE(actual.sizes().vec() == nn_test::shape_of(entry.at("shape")));
    const auto whole = actual.detach().to(torch::kFloat64);
    const auto near = [&](double a, const json& b) {
      CHECK(std::abs(a - fixture::number(b)) <= abs + rel * std::abs(fixture::number(b)));
    };
    near(whole.mean().item<double>(), entry.at("mean"));
    near(whole.std(/*unbiased=*/false).item<double>(), entry.at("std"));
    near(whole.abs().max().item<double>(), entry.at("absmax"));
  }
};

std::map<std::string, torch::Tensor> head_tensors(const yolo9::HeadOutput& out) {
  std::map<std::string, torch::Tensor> named;
  for (size_t i = 0; i < out.aux.size(); ++i) named["raw.aux." + std::to_string(i)] = out.aux[i];
  for (size_t i = 0; i < out.main.size(); ++i) named["raw.main." + std::to_string(i)] = out.main[i];
  if (out.decoded_aux.defined()) named["decoded.aux"] = out.decoded_aux;
  if (out.decoded_main.defined()) named["decoded.main"] = out.decoded_main;
  return named;
}

void check_head(Case& test, const std::string& form, const json& entries, const yolo9::HeadOutput& out) {
  const auto named = head_tensors(out);
  REQUIRE(named.size() == entries.size());
  const bool large = test.model.size() > 2 && test.model.substr(test.model.size() - 2) == "-e";
  for (const auto& [key, tensor] : named) {
    REQUIRE(entries.contains(key));
    const bool decoded = key.rfind("decoded", 0) == 0;
    double abs = decoded ? 5e-3 : 2e-4, rel = 1e-4;
    if (form == "train") {
      abs = 5e-3;
      rel = large ? 2e-2 : 5e-3;
    }
    test.compare(form + "." + key, tensor, abs, rel);
    test.compare_statistics(form + "." + key, entries.at(key), tensor, abs, rel);
  }
}

// `named`: the tensor of a fused parameter or a BN buffer.
torch::Tensor find(const yolo9::NamedTensors& state, const std::string& name) {
  for (const auto& [key, tensor] : state)
    if (key == name) return tensor;
  FAIL("no tensor " << name);
  return {};
}

void check_eval(Case& test, yolo9::DetectionModel& model, const json& fixture_case, const torch::Tensor& image) {
  torch::NoGradGuard guard;
  model->eval();
  std::map<std::string, torch::Tensor> seen;
  model->set_observer([&](int64_t layer, const yolo9::Maps& output) {
    for (size_t part = 0; part < output.size(); ++part)
      seen["layer." + std::to_string(layer) + "." + std::to_string(part)] = output[part].clone();
  });
  const auto out = model->forward(image);
  model->set_observer({});
  const auto& layers = fixture_case.at("layers");
  REQUIRE(seen.size() == layers.size());
  for (const auto& [key, entry] : layers.items()) {
    CAPTURE(key);
    REQUIRE(seen.count(key) == 1);
    test.compare("eval." + key, seen.at(key), 1e-4, 1e-4);
    test.compare_statistics("eval." + key, entry, seen.at(key), 1e-4, 1e-4);
    CHECK(model->layers().at(std::stoul(key.substr(6))).type == entry.at("type").get<std::string>());
  }
  check_head(test, "eval", fixture_case.at("head"), out);
  // Skipping the auxiliary branch changes nothing in the main one.
  model->set_auxiliary(false);
  const auto main_only = model->forward(image);
  model->set_auxiliary(true);
  CHECK(main_only.aux.empty());
  CHECK(!main_only.decoded_aux.defined());
  CHECK(torch::equal(main_only.decoded_main, out.decoded_main));
}

void check_fused(Case& test, yolo9::DetectionModel& model, const json& fixture_case, const torch::Tensor& image) {
  torch::NoGradGuard guard;
  model->fuse();
  check_head(test, "eval_fused", fixture_case.at("head"), model->forward(image));
  const auto state = yolo9::state_dict(*model);
  for (const auto& [name, entry] : fixture_case.at("params").items()) {
    const auto value = find(state, name);
    test.compare("fused_param." + name, value, 1e-5, 1e-4);
    test.compare_statistics("fused_param." + name, entry, value, 1e-5, 1e-4);
  }
}

void check_train(Case& test, yolo9::DetectionModel& model, const json& fixture_case, const torch::Tensor& images) {
  model->train();
  check_head(test, "train", fixture_case.at("head"), model->forward(images));
  const auto state = yolo9::state_dict(*model);
  for (const auto& [path, entry] : fixture_case.at("bn_after_one_forward").items()) {
    CAPTURE(path);
    for (const std::string which : {".running_mean", ".running_var"}) {
      const auto buffer = find(state, path + which);
      CHECK(buffer.numel() == entry.at("channels").get<int64_t>());
      test.compare("train_bn." + path + which, buffer, 1e-5, 1e-4);
    }
    CHECK(find(state, path + ".num_batches_tracked").item<int64_t>() == entry.at("num_batches_tracked").get<int64_t>());
  }
}

// "input:2x3x64x96" -> [2,3,64,96]
std::vector<int64_t> shape_in_name(const std::string& name) {
  std::vector<int64_t> shape;
  std::string digits;
  for (const char c : name.substr(name.find(':') + 1) + "x") {
    if (c == 'x') shape.push_back(std::stoll(digits)), digits.clear();
    else digits += c;
  }
  return shape;
}

torch::Tensor input_of(const std::string& name) { return fixture::uniform(name, shape_in_name(name)); }

yolo9::DetectionModel formula_model(const std::string& name, const json& kinds) {
  yolo9::DetectionModel model(nn_test::model_config(name));
  nn_test::fill_formula(*model, "", [&](const std::string& full) { return kinds.at(full).get<std::string>(); });
  return model;
}

}  // namespace

TEST_CASE("whole models agree with the reference", "[golden][nn]") {
  const auto files = fixture::golden_files("forward", ".json");
  if (files.empty()) WARN("no fixture in forward/");
  for (const auto& file : files) {
    const auto data = fixture::read_json(file);
    const auto name = data.at("model").get<std::string>();
    const auto arch = fixture::golden_dir() + "/arch/" + name + ".json";
    CAPTURE(file);
    if (!std::filesystem::exists(arch)) {
      WARN("no kinds of formula tensors: " << arch << " is missing");
      continue;
    }
    const auto kinds = fixture::read_json(arch).at("formula_kind");
    Case test{yolo9::read_safetensors_map(file.substr(0, file.size() - 5) + ".safetensors"), {}, name};
    const auto& cases = data.at("cases");
    auto model = formula_model(name, kinds);
    const auto image = input_of(data.at("input").get<std::string>());
    check_eval(test, model, cases.at("eval"), image);
    check_fused(test, model, cases.at("eval_fused"), image);
    if (cases.contains("train")) {
      auto fresh = formula_model(name, kinds);
      check_train(test, fresh, cases.at("train"), input_of(cases.at("train").at("input").get<std::string>()));
    }
    for (const auto& [key, tensor] : test.golden) {
      CAPTURE(key);
      CHECK(test.used.count(key) == 1);
    }
  }
}
