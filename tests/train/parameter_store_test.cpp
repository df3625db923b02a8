#include <catch2/catch.hpp>

#include <yolo9/nn/model.h>
#include <yolo9/train/parameter_store.h>

#include "support/fixture.h"

using namespace yolo9;

TEST_CASE("a model in a parameter store computes what it computed before") {
  torch::manual_seed(0);
  DetectionModel model("gelan-t");
  model->eval();
  const auto input = fixture::uniform("input", {1, 3, 64, 64});
  c10::NoGradGuard no_grad;
  const auto before = model->forward(input).decoded_main.clone();
  ParameterStore store(*model);
  CHECK(torch::allclose(model->forward(input).decoded_main, before, 1e-5, 1e-4));
  // The model reads the flat buffers: there is one copy of each value.
  for (auto& group : store.groups()) group.values.zero_();
  CHECK_FALSE(torch::allclose(model->forward(input).decoded_main, before, 1e-3, 1e-3));
}

TEST_CASE("gradients gather in the flat buffers, as views") {
  torch::manual_seed(0);
  DetectionModel model("gelan-t");
  ParameterStore store(*model);
  model->train();
  const auto output = model->forward(fixture::uniform("input", {2, 3, 64, 64}));
  torch::Tensor sum = output.main[0].square().sum() + output.main[1].square().sum() + output.main[2].square().sum();
  sum.backward();
  double square = 0;
  for (const auto& item : model->named_parameters())
    if (item.value().requires_grad() && item.value().grad().defined())
      square += item.value().grad().square().sum().item<double>();
  double flat = 0;
  for (const auto& group : store.groups()) flat += group.gradients.square().sum().item<double>();
  CHECK(flat > 0);
  CHECK(flat == Approx(square).epsilon(1e-5));
  store.zero_gradients();
  for (const auto& item : model->parameters())
    if (item.grad().defined()) CHECK(item.grad().abs().max().item<double>() == 0.0);
}

TEST_CASE("frozen parameters stay outside the groups; layouts of twins agree") {
  DetectionModel model("gelan-t"), twin("gelan-t");
  for (auto& parameter : model->layer_module(0).parameters()) parameter.requires_grad_(false);
  for (auto& parameter : twin->layer_module(0).parameters()) parameter.requires_grad_(false);
  ParameterStore store(*model), copy(*twin);
  for (const auto& group : store.groups())
    for (const auto& name : group.names) CHECK(name.rfind("model.0.", 0) != 0);
  copy.copy_from(store);
  const auto a = store.floating_state(), b = copy.floating_state();
  for (size_t i = 0; i < a.size(); ++i) CHECK(torch::equal(a[i], b[i]));
  // 464 parameters of the first layer and the 16 weights of the frozen distribution.
  CHECK(store.fixed().numel() == 464 + 16);
}
