// Building blocks against the reference: outputs in evaluation, training and fused form, gradients, statistics.
#include <catch2/catch.hpp>

#include <map>

#include <yolo9/core/safetensors.h>
#include <yolo9/nn/blocks.h>
#include <yolo9/nn/heads.h>
#include <yolo9/nn/links.h>

#include "nn/formula_state.h"

namespace {

using yolo9::Maps;
using nlohmann::json;

// An argument of `construct`: by position, or written "name=value".
std::string named_argument(const json& construct, const std::string& name, const std::string& absent) {
  for (const auto& item : construct)
    if (item.is_string() && item.get<std::string>().rfind(name + "=", 0) == 0)
      return item.get<std::string>().substr(name.size() + 1);
  return absent;
}

struct Block {
  std::shared_ptr<torch::nn::Module> module;
  std::function<Maps(const std::vector<Maps>&)> run;
};

Block of_block(const std::shared_ptr<yolo9::BlockImpl>& block) {
  return {block, [block](const std::vector<Maps>& in) -> Maps { return {block->forward(in.at(0).at(0))}; }};
}

Block of_layer(const std::shared_ptr<yolo9::LayerImpl>& layer) {
  return {layer, [layer](const std::vector<Maps>& in) {
            std::vector<const Maps*> sources;
            for (const auto& maps : in) sources.push_back(&maps);
            return layer->run(sources);
          }};
}

Block make_block(const json& c) {
  const auto type = c.at(0).get<std::string>();
  const auto n = [&](size_t i) { return c.at(i).get<int64_t>(); };
  if (type == "Conv") {
    yolo9::ConvOptions options;
    options.kernel = n(3);
    options.stride = n(4);
    options.groups = std::stoll(named_argument(c, "g", "1"));
    options.dilation = std::stoll(named_argument(c, "d", "1"));
    if (named_argument(c, "act", "True") == "False") options.activation.kind = yolo9::Activation::Kind::Identity;
    return of_block(yolo9::Conv(n(1), n(2), options).ptr());
  }
  if (type == "AConv") return of_block(yolo9::AConv(n(1), n(2)).ptr());
  if (type == "ADown") return of_block(yolo9::ADown(n(1), n(2)).ptr());
  if (type == "RepConvN") return of_block(yolo9::RepConvN(n(1), n(2)).ptr());
  if (type == "RepNBottleneck") {
    yolo9::BottleneckOptions options;
    options.shortcut = named_argument(c, "shortcut", "True") == "True";
    options.expansion = std::stod(named_argument(c, "e", "0.5"));
    return of_block(yolo9::RepNBottleneck(n(1), n(2), options).ptr());
  }
  if (type == "RepNCSP") return of_block(yolo9::RepNCSP(n(1), n(2), n(3)).ptr());
  if (type == "RepNCSPELAN4") return of_block(yolo9::RepNCSPELAN4(n(1), n(2), n(3), n(4), n(5)).ptr());
  if (type == "ELAN1") return of_block(yolo9::ELAN1(n(1), n(2), n(3), n(4)).ptr());
  if (type == "SPPELAN") return of_block(yolo9::SPPELAN(n(1), n(2), n(3)).ptr());
  if (type == "Silence") return of_block(yolo9::Silence().ptr());
  if (type == "Upsample") return of_block(yolo9::Upsample(n(1)).ptr());
  if (type == "Concat") return of_layer(yolo9::Concat().ptr());
  if (type == "CBLinear") return of_layer(yolo9::CBLinear(n(1), c.at(2).get<std::vector<int64_t>>()).ptr());
  if (type == "CBFuse") return of_layer(yolo9::CBFuse(c.at(1).get<std::vector<int64_t>>()).ptr());
  if (type == "DFL") {
    auto dfl = yolo9::DFL();
    return {dfl.ptr(), [dfl](const std::vector<Maps>& in) mutable -> Maps { return {dfl->forward(in.at(0).at(0))}; }};
  }
  FAIL("no block for " << type);
  return {};
}

// Inputs as the fixture lists them: a shape, or a list of shapes for what comes from a CBLinear.
std::vector<Maps> make_inputs(const std::string& name, const json& shapes, std::vector<torch::Tensor>& flat) {
  std::vector<Maps> inputs;
  const auto add = [&](const json& shape) {
    const auto key = "block:" + name + ":" + std::to_string(flat.size());
    auto x = fixture::uniform(key, nn_test::shape_of(shape)) * 4.0f - 2.0f;
    flat.push_back(x.set_requires_grad(true));
    inputs.back().push_back(flat.back());
  };
  for (const auto& item : shapes) {
    inputs.emplace_back();
    if (item.at(0).is_array()) {
      for (const auto& shape : item) add(shape);
    } else {
      add(item);
    }
  }
  return inputs;
}

void fill(torch::nn::Module& module, const std::string& name, const json& entry) {
  std::map<std::string, std::string> kinds;
  for (const auto& row : entry.at("state_dict")) kinds[row.at(0)] = row.at(2);
  nn_test::fill_formula(module, name + ".", [&](const std::string& full) { return kinds.at(full); });
}

void compare(const std::map<std::string, torch::Tensor>& golden, std::map<std::string, int>& used,
             const std::string& key, const torch::Tensor& actual, double abs, double rel) {
  CAPTURE(key);
  REQUIRE(golden.count(key) == 1);
  ++used[key];
  CHECK(fixture::excess(actual, golden.at(key), abs, rel) <= 0);
}

void check_training(const std::string& name, const json& entry, const std::map<std::string, torch::Tensor>& golden,
                    std::map<std::string, int>& used) {
  auto block = make_block(entry.at("construct"));
  fill(*block.module, name, entry);
  block.module->train();
  std::vector<torch::Tensor> flat;
  const auto inputs = make_inputs(name, entry.at("inputs"), flat);
  const auto outputs = block.run(inputs);
  auto loss = torch::zeros({});
  for (size_t o = 0; o < outputs.size(); ++o) {
    compare(golden, used, name + ".train." + std::to_string(o), outputs[o], 1e-5, 1e-4);
    const auto weights =
        fixture::uniform("blockgrad:" + name + ":" + std::to_string(o), outputs[o].sizes().vec()) - 0.5f;
    loss = loss + (outputs[o] * weights).sum();
  }
  loss.backward();
  for (size_t i = 0; i < flat.size(); ++i) {
    const auto key = name + ".grad_input." + std::to_string(i);
    CAPTURE(key);
    if (golden.count(key)) compare(golden, used, key, flat[i].grad(), 1e-4, 1e-3);
    else CHECK((!flat[i].grad().defined() || flat[i].grad().abs().max().item<float>() == 0));
  }
  for (const auto& item : block.module->named_parameters()) {
    const auto key = name + ".grad." + name + "." + item.key();
    CAPTURE(key);
    CHECK(item.value().requires_grad() == (golden.count(key) == 1));
    if (golden.count(key)) compare(golden, used, key, item.value().grad(), 1e-4, 1e-3);
  }
  for (const auto& item : block.module->named_buffers()) {
    const auto key = name + ".after." + name + "." + item.key();
    if (golden.count(key)) compare(golden, used, key, item.value(), 1e-5, 1e-4);
  }
}

}  // namespace

TEST_CASE("building blocks agree with the reference", "[golden][nn]") {
  const auto files = fixture::golden_files("modules", "modules.json");
  if (files.empty()) WARN("no fixture in modules/");
  for (const auto& file : files) {
    const auto blocks = fixture::read_json(file).at("blocks");
    const auto golden = yolo9::read_safetensors_map(file.substr(0, file.size() - 5) + ".safetensors");
    std::map<std::string, int> used;
    for (const auto& [name, entry] : blocks.items()) {
      CAPTURE(name);
      auto block = make_block(entry.at("construct"));
      const auto state = yolo9::state_dict(*block.module);
      REQUIRE(state.size() == entry.at("state_dict").size());
      for (size_t i = 0; i < state.size(); ++i) {
        CHECK(name + "." + state[i].first == entry.at("state_dict").at(i).at(0).get<std::string>());
        CHECK(state[i].second.sizes().vec() == nn_test::shape_of(entry.at("state_dict").at(i).at(1)));
      }
      fill(*block.module, name, entry);
      block.module->eval();
      std::vector<torch::Tensor> flat;
      const auto inputs = make_inputs(name, entry.at("inputs"), flat);
      const auto check_outputs = [&](const std::string& form) {
        const auto outputs = block.run(inputs);
        REQUIRE(outputs.size() == entry.at("outputs").size());
        for (size_t o = 0; o < outputs.size(); ++o) {
          CHECK(outputs[o].sizes().vec() == nn_test::shape_of(entry.at("outputs").at(o)));
          compare(golden, used, name + "." + form + "." + std::to_string(o), outputs[o], 1e-5, 1e-4);
        }
      };
      check_outputs("eval");
      {
        torch::NoGradGuard guard;
        check_outputs("eval");
        if (entry.at("has_fused").get<bool>()) {
          yolo9::fuse_convolutions(*block.module);
          check_outputs("fused");
          yolo9::fuse_convolutions(*block.module);
          check_outputs("fused");
        }
      }
      check_training(name, entry, golden, used);
    }
    for (const auto& [key, tensor] : golden) {
      CAPTURE(key);
      CHECK(used.count(key) == 1);
    }
  }
}
