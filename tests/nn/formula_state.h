// Models and modules under the golden formula weights.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include <yolo9/nn/weights.h>

#include "support/fixture.h"

namespace nn_test {

// Fills every tensor of `module` with its formula; `kind_of` maps the full name to its kind.
template <class KindOf>
void fill_formula(torch::nn::Module& module, const std::string& prefix, KindOf kind_of) {
  torch::NoGradGuard guard;
  for (auto& [name, tensor] : yolo9::state_dict(module))
    tensor.copy_(fixture::formula(prefix + name, tensor.sizes().vec(), kind_of(prefix + name)));
}

inline std::string ends_after(const std::string& path, const std::string& suffix) {
  const std::string name = std::filesystem::path(path).filename().string();
  return name.substr(0, name.size() - suffix.size());
}

inline std::string model_config(const std::string& model) {
  return fixture::source_dir() + "/models/" + model + ".yaml";
}

inline std::vector<int64_t> shape_of(const nlohmann::json& shape) { return shape.get<std::vector<int64_t>>(); }

}  // namespace nn_test
