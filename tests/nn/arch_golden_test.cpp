// The structure of every model: layer table, names and shapes, counts, first values, before and after fusing.
#include <catch2/catch.hpp>

#include <cmath>
#include <set>

#include <torch/nn/modules/batchnorm.h>

#include <yolo9/nn/flops.h>

#include "nn/formula_state.h"

namespace {

using nlohmann::json;

json shapes_of(const yolo9::Maps& maps, bool list) {
  if (!list) return maps.at(0).sizes().vec();
  json shapes = json::array();
  for (const auto& map : maps) shapes.push_back(map.sizes().vec());
  return shapes;
}

json head_shapes(const yolo9::HeadOutput& out, bool dual) {
  json decoded = json::array(), raw = json::array();
  if (dual) {
    decoded.push_back(out.decoded_aux.sizes().vec());
    raw.push_back(shapes_of(out.aux, true));
  }
  decoded.push_back(out.decoded_main.sizes().vec());
  raw.push_back(shapes_of(out.main, true));
  return {{"decoded", decoded}, {"raw", raw}};
}

void check_layers(yolo9::DetectionModelImpl& model, const json& arch) {
  const auto& rows = arch.at("layers");
  REQUIRE(model.layers().size() == rows.size());
  std::map<int64_t, json> shapes;
  model.set_observer([&](int64_t layer, const yolo9::Maps& output) {
    shapes[layer] = shapes_of(output, model.layers().at(static_cast<size_t>(layer)).type == "CBLinear");
  });
  model.eval();
  torch::NoGradGuard guard;
  const auto out = model.forward(torch::zeros({1, 3, 64, 64}));
  model.set_observer({});
  shapes[model.layers().back().index] = head_shapes(out, model.is_dual());
  std::vector<int64_t> saved;
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto& row = rows[i];
    const auto& layer = model.layers()[i];
    CAPTURE(i, layer.type);
    CHECK(layer.index == row.at("index").get<int64_t>());
    const auto& from = row.at("from");
    CHECK(layer.from == (from.is_array() ? from.get<std::vector<int64_t>>() : std::vector{from.get<int64_t>()}));
    CHECK(layer.repeats == row.at("repeats").get<int64_t>());
    CHECK(layer.type == row.at("type").get<std::string>());
    CHECK(json::parse(layer.config_args) == row.at("config_args"));
    CHECK(json::parse(layer.resolved_args) == row.at("resolved_args"));
    CHECK(layer.parameters == row.at("params").get<int64_t>());
    CHECK(shapes.at(layer.index) == row.at("output_shape_64x64"));
  }
  CHECK(model.graph().saved() == arch.at("save").get<std::vector<int64_t>>());
}

void check_head(yolo9::DetectionModelImpl& model, const json& arch) {
  const auto& head = arch.at("head");
  CHECK(model.layers().back().type == head.at("type").get<std::string>());
  CHECK(model.is_dual() == (head.at("type") == "DualDDetect"));
  CHECK(model.strides() == arch.at("stride").get<std::vector<double>>());
  CHECK(static_cast<int64_t>(model.strides().size()) == head.at("nl").get<int64_t>());
  CHECK(model.reg_max() == head.at("reg_max").get<int64_t>());
  CHECK(4 * model.reg_max() + model.classes() == head.at("no").get<int64_t>());
  CHECK(model.classes() == arch.at("nc").get<int64_t>());
  CHECK(model.graph().depth_multiple == arch.at("depth_multiple").get<double>());
  CHECK(model.graph().width_multiple == arch.at("width_multiple").get<double>());
  int checked = 0;
  const std::string prefix = "model." + std::to_string(model.layers().back().index) + ".cv";
  for (const auto& [name, tensor] : yolo9::state_dict(model)) {
    if (name.rfind(prefix, 0) != 0 || name.substr(name.size() - 7) != ".2.bias") continue;
    const bool box = name[prefix.size()] == '2' || name[prefix.size()] == '4';
    const size_t level = static_cast<size_t>(name[prefix.size() + 2] - '0');
    const double expected =
        box ? head.at("bias_init_box").get<double>() : head.at("bias_init_cls").at(level).get<double>();
    CAPTURE(name);
    CHECK(fixture::excess(tensor, torch::full_like(tensor, expected), 1e-6, 1e-6) <= 0);
    ++checked;
  }
  CHECK(checked == (model.is_dual() ? 4 : 2) * head.at("nl").get<int>());
}

void check_state(yolo9::DetectionModelImpl& model, const json& arch) {
  const auto state = yolo9::state_dict(model);
  const auto parameters = model.named_parameters();
  const auto& rows = arch.at("state_dict");
  REQUIRE(state.size() == rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto& row = rows[i];
    const auto& [name, tensor] = state[i];
    CAPTURE(name);
    REQUIRE(name == row.at("name").get<std::string>());
    CHECK(tensor.sizes().vec() == nn_test::shape_of(row.at("shape")));
    CHECK(tensor.scalar_type() == (row.at("dtype") == "int64" ? torch::kInt64 : torch::kFloat32));
    const auto* parameter = parameters.find(name);
    CHECK((parameter != nullptr) == (row.at("kind") == "parameter"));
    if (parameter) CHECK(parameter->requires_grad() == row.at("trainable").get<bool>());
    CHECK(arch.at("formula_kind").contains(name));
  }
  const auto count = yolo9::count_parameters(model);
  CHECK(count.total == arch.at("total_params").get<int64_t>());
  CHECK(count.trainable == arch.at("total_trainable").get<int64_t>());
  CHECK(yolo9::count_gflops(model) == Approx(arch.at("gflops_640").get<double>()).epsilon(1e-9));
  CHECK(yolo9::count_gflops(model) == Approx(arch.at("gflops_640_from_stride_probe").get<double>()).epsilon(1e-9));
  std::set<std::vector<double>> norms;
  for (const auto& module : model.modules(/*include_self=*/false))
    if (auto* bn = module->as<torch::nn::BatchNorm2dImpl>())
      norms.insert({bn->options.eps(), bn->options.momentum().value()});
  CHECK(json(norms) == arch.at("batchnorm"));
}

void check_fused(yolo9::DetectionModelImpl& model, const json& fused) {
  model.fuse();
  const auto state = yolo9::state_dict(model);
  const auto& rows = fused.at("fused_state_dict");
  REQUIRE(state.size() == rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    CAPTURE(state[i].first);
    REQUIRE(state[i].first == rows[i].at(0).get<std::string>());
    CHECK(state[i].second.sizes().vec() == nn_test::shape_of(rows[i].at(1)));
  }
  CHECK(yolo9::count_parameters(model).total == fused.at("fused_params").get<int64_t>());
}

}  // namespace

TEST_CASE("models have the reference's structure", "[golden][nn]") {
  const std::string suffix = ".json", fused_suffix = ".fused.json";
  const auto files = fixture::golden_files("arch", suffix);
  if (files.empty()) WARN("no fixture in arch/");
  for (const auto& file : files) {
    if (file.size() > fused_suffix.size() && file.substr(file.size() - fused_suffix.size()) == fused_suffix) continue;
    const auto name = nn_test::ends_after(file, suffix);
    CAPTURE(name);
    const auto arch = fixture::read_json(file);
    CHECK(arch.at("model").get<std::string>() == name);
    yolo9::DetectionModel model(nn_test::model_config(name));
    check_layers(*model, arch);
    check_head(*model, arch);
    check_state(*model, arch);
    const auto fused = file.substr(0, file.size() - suffix.size()) + fused_suffix;
    if (std::filesystem::exists(fused)) check_fused(*model, fixture::read_json(fused));
    else WARN("no fused fixture for " << name);
  }
}
