// What yolo9-plan --info says of a model: its layers, parameters and GFLOPs.
#pragma once

#include <algorithm>
#include <cstdio>
#include <string>

#include <nlohmann/json.hpp>

#include <yolo9/yolo9.h>

#include "plan_request.h"

namespace plan {

using nlohmann::ordered_json;

inline ordered_json model_info(const std::string& config, int64_t classes, int64_t size) {
  yolo9::ModelOptions options;
  options.classes = classes;
  yolo9::DetectionModel model(config, options);
  const auto strides = model->strides();
  const auto largest = static_cast<int64_t>(*std::max_element(strides.begin(), strides.end()));
  check_sizes({size}, largest);
  ordered_json out;
  out["config"] = model->graph().name;
  out["classes"] = model->classes();
  out["strides"] = model->strides();
  out["image_size"] = size;
  for (const auto& layer : model->layers())
    out["layers"].push_back({{"index", layer.index},
                             {"from", layer.from},
                             {"repeats", layer.repeats},
                             {"module", layer.type},
                             {"args", ordered_json::parse(layer.resolved_args)},
                             {"parameters", layer.parameters},
                             {"channels", layer.widths},
                             {"stride", layer.stride}});
  const auto cost = [&](yolo9::DetectionModel& form) {
    return ordered_json{{"head", form->layers().back().type},
                        {"layers", form->layers().size()},
                        {"parameters", yolo9::count_parameters(*form).total},
                        {"gflops", yolo9::count_gflops(*form, size)}};
  };
  out["training"] = cost(model);
  auto deploy = yolo9::to_single_head(*model);
  deploy->fuse();
  out["deploy"] = cost(deploy);
  return out;
}

// One line of JSON with a blank after each comma.
inline std::string spaced(const ordered_json& value) {
  std::string text;
  for (const char c : value.dump()) {
    text += c;
    if (c == ',') text += ' ';
  }
  return text;
}

inline void print_model_info(const ordered_json& info) {
  std::printf("%4s  %-24s %2s  %-14s %11s %7s  %s\n", "", "from", "n", "module", "parameters", "stride", "arguments");
  for (const auto& layer : info.at("layers")) {
    const auto& from = layer.at("from");
    std::printf("%4d  %-24s %2d  %-14s %11lld %7g  %s\n", layer.at("index").get<int>(),
                spaced(from.size() == 1 ? from.at(0) : from).c_str(), layer.at("repeats").get<int>(),
                layer.at("module").get<std::string>().c_str(), layer.at("parameters").get<long long>(),
                layer.at("stride").get<double>(), spaced(layer.at("args")).c_str());
  }
  std::printf("\n%s: %d classes, strides %s\n", info.at("config").get<std::string>().c_str(),
              info.at("classes").get<int>(), spaced(info.at("strides")).c_str());
  for (const char* form : {"training", "deploy"}) {
    const auto& cost = info.at(form);
    std::printf("%-8s  %3d layers, %s, %lld parameters (%.1f M), %.1f GFLOPs at %d px\n", form,
                cost.at("layers").get<int>(), cost.at("head").get<std::string>().c_str(),
                cost.at("parameters").get<long long>(), cost.at("parameters").get<double>() / 1e6,
                cost.at("gflops").get<double>(), info.at("image_size").get<int>());
  }
}

}  // namespace plan
