// State dicts: loading what fits, copying, first values, precision, memory format.
#include <catch2/catch.hpp>

#include <cmath>

#include <yolo9/nn/conv.h>
#include <yolo9/nn/flops.h>

#include "nn/formula_state.h"

namespace {

yolo9::DetectionModel tiny(int64_t classes = 0) {
  const std::string text =
      "nc: 5\ndepth_multiple: 1\nwidth_multiple: 1\nbackbone:\n  - [-1, 1, Conv, [16, 3, 2]]\n"
      "  - [-1, 1, RepNCSPELAN4, [24, 16, 8, 1]]\n  - [-1, 1, AConv, [32]]\nhead:\n"
      "  - [[1, 2, 1, 2], 1, DualDDetect, [nc]]\n";
  yolo9::ModelOptions options;
  options.classes = classes;
  return yolo9::make_model(text, "tiny.yaml", options);
}

bool same_state(torch::nn::Module& a, torch::nn::Module& b) {
  const auto left = yolo9::state_dict(a), right = yolo9::state_dict(b);
  if (left.size() != right.size()) return false;
  for (size_t i = 0; i < left.size(); ++i)
    if (left[i].first != right[i].first || !torch::equal(left[i].second, right[i].second)) return false;
  return true;
}

}  // namespace

TEST_CASE("a state dict carries a model over", "[nn]") {
  torch::manual_seed(1);
  auto first = tiny(), second = tiny();
  CHECK(!same_state(*first, *second));
  const auto report = yolo9::load_state_dict(*second, yolo9::state_dict(*first));
  CHECK(report.complete());
  CHECK(report.loaded == static_cast<int64_t>(yolo9::state_dict(*first).size()));
  CHECK(same_state(*first, *second));
}

TEST_CASE("half precision weights are widened", "[nn]") {
  auto source = tiny(), target = tiny();
  yolo9::NamedTensors halves;
  for (const auto& [name, tensor] : yolo9::state_dict(*source))
    halves.emplace_back(name, tensor.is_floating_point() ? tensor.to(torch::kHalf) : tensor);
  CHECK(yolo9::load_state_dict(*target, halves).complete());
  for (const auto& [name, tensor] : yolo9::state_dict(*target)) {
    CAPTURE(name);
    CHECK(tensor.scalar_type() != torch::kHalf);
  }
  const auto weight = yolo9::state_dict(*target)[0].second;
  CHECK(torch::equal(weight, halves[0].second.to(torch::kFloat)));
}

TEST_CASE("weights of another class count load as far as they fit", "[nn]") {
  auto five = tiny(), seven = tiny(7);
  CHECK(seven->classes() == 7);
  const auto before = yolo9::clone_model(*seven);
  auto given = yolo9::state_dict(*five);
  given.emplace_back("model.9.extra", torch::zeros({2}));
  given.erase(given.begin());
  const auto report = yolo9::load_state_dict(*seven, given);
  CHECK(report.missing == std::vector<std::string>{"model.0.conv.weight"});
  CHECK(report.unexpected == std::vector<std::string>{"model.9.extra"});
  REQUIRE(report.mismatched.size() == 8);  // weight and bias of two levels and two branches
  for (const auto& mismatch : report.mismatched) {
    CHECK(mismatch.name.find(".2.") != std::string::npos);
    CHECK(mismatch.file_shape[0] == 5);
    CHECK(mismatch.model_shape[0] == 7);
  }
  CHECK(!report.complete());
  const auto summary = report.summary();
  CAPTURE(summary);
  CHECK(summary.find("8 with another shape (model.3.cv3.0.2.weight [5,") != std::string::npos);
  CHECK(summary.find("1 missing (model.0.conv.weight)") != std::string::npos);
  CHECK(summary.find("1 unknown (model.9.extra)") != std::string::npos);
  const auto now = yolo9::state_dict(*seven), old = yolo9::state_dict(*before), from = yolo9::state_dict(*five);
  CHECK(torch::equal(now[0].second, old[0].second));
  CHECK(torch::equal(now[6].second, from[6].second));
}

TEST_CASE("the class count of the caller wins over the file's", "[nn]") {
  yolo9::ModelOptions options;
  options.classes = 3;
  yolo9::DetectionModel model(nn_test::model_config("yolov9-t"), options);
  CHECK(model->classes() == 3);
  CHECK(model->layers().back().resolved_args == "[3, [64, 96, 128, 64, 96, 128]]");
  model->eval();
  torch::NoGradGuard guard;
  CHECK(model->forward(torch::zeros({1, 3, 64, 64})).decoded_main.size(1) == 7);
}

TEST_CASE("a clone is equal and independent", "[nn]") {
  auto model = tiny();
  model->eval();
  for (const bool fused : {false, true}) {
    CAPTURE(fused);
    if (fused) model->fuse();
    auto copy = yolo9::clone_model(*model);
    CHECK(copy->is_fused() == fused);
    CHECK(!copy->is_training());
    CHECK(same_state(*model, *copy));
    torch::NoGradGuard guard;
    const auto x = torch::rand({1, 3, 32, 32});
    CHECK(torch::equal(model->forward(x).decoded_main, copy->forward(x).decoded_main));
    copy->parameters()[0].zero_();
    CHECK(!same_state(*model, *copy));
  }
}

TEST_CASE("first values have the documented bounds", "[nn]") {
  auto model = tiny();
  {
    torch::NoGradGuard guard;
    for (auto& [name, tensor] : yolo9::state_dict(*model)) tensor.fill_(7);
  }
  torch::manual_seed(3);
  yolo9::initialize(*model);
  for (const auto& [name, tensor] : yolo9::state_dict(*model)) {
    CAPTURE(name);
    const auto ends = [&, &text = name](const std::string& suffix) {
      return text.size() >= suffix.size() && text.substr(text.size() - suffix.size()) == suffix;
    };
    if (ends("bn.weight") || ends("running_var")) CHECK(torch::equal(tensor, torch::ones_like(tensor)));
    else if (ends("bn.bias") || ends("running_mean") || ends("num_batches_tracked"))
      CHECK(torch::equal(tensor, torch::zeros_like(tensor)));
    else if (name.find(".dfl") != std::string::npos)
      CHECK(torch::equal(tensor.flatten(), torch::arange(16, torch::kFloat)));
    else if (tensor.dim() == 4) {
      const double bound = 1 / std::sqrt(static_cast<double>(tensor[0].numel()));
      CHECK(tensor.abs().max().item<double>() <= bound);
      CHECK(tensor.abs().max().item<double>() > 0.5 * bound);
    } else {
      CHECK(tensor.max().item<double>() < 1.5);
    }
  }
  for (const auto& item : model->named_parameters())
    CHECK(item.value().requires_grad() == (item.key().find(".dfl") == std::string::npos));
}

TEST_CASE("channels-last pictures stay channels-last through the network", "[nn]") {
  yolo9::DetectionModel model(nn_test::model_config("yolov9-t"));
  model->eval();
  torch::NoGradGuard guard;
  const auto x = torch::rand({2, 3, 64, 64});
  const auto expected = model->forward(x);
  for (auto& parameter : model->parameters())
    if (parameter.dim() == 4) parameter.set_data(parameter.contiguous(torch::MemoryFormat::ChannelsLast));
  int64_t checked = 0;
  model->set_observer([&](int64_t layer, const yolo9::Maps& output) {
    CAPTURE(layer);
    if (output[0].size(2) > 1) CHECK(output[0].is_contiguous(torch::MemoryFormat::ChannelsLast));
    ++checked;
  });
  const auto out = model->forward(x.contiguous(torch::MemoryFormat::ChannelsLast));
  CHECK(checked == 29);
  CHECK(fixture::excess(out.decoded_main, expected.decoded_main, 5e-3, 1e-4) <= 0);
  CHECK(out.main[0].is_contiguous(torch::MemoryFormat::ChannelsLast));
}

TEST_CASE("maps are freed once no later layer reads them", "[nn]") {
  // Without the release, all 22 maps of the single-head model would be alive at the end.
  yolo9::DetectionModel model(nn_test::model_config("gelan-t"));
  model->eval();
  torch::NoGradGuard guard;
  std::vector<c10::weak_intrusive_ptr<c10::TensorImpl>> seen;
  size_t most = 0;
  model->set_observer([&](int64_t, const yolo9::Maps& output) {
    seen.emplace_back(output[0].getIntrusivePtr());
    const auto alive = std::count_if(seen.begin(), seen.end(), [](const auto& weak) { return !weak.expired(); });
    most = std::max(most, static_cast<size_t>(alive));
  });
  model->forward(torch::zeros({1, 3, 64, 64}));
  CHECK(seen.size() == 22);
  CHECK(most >= 4);
  CHECK(most <= 7);
}
