// Golden fixtures: formula tensors, JSON with non-finite numbers, safetensors, discovery of files.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <torch/types.h>

namespace fixture {

// YOLO9_GOLDEN_DIR if set, else tests/golden of the source tree.
std::string golden_dir();
// Sorted paths below golden_dir()/folder whose file name ends with `suffix`.
std::vector<std::string> golden_files(const std::string& folder, const std::string& suffix);
std::string source_dir();  // the repository's root
std::string binary_dir();  // the build folder (programs are in bin/)
// A fresh empty folder, removed when the program ends.
std::string temporary_dir(const std::string& name);

nlohmann::json read_json(const std::string& path);
// A JSON number, or {"nonfinite": "nan" | "inf" | "-inf"}.
double number(const nlohmann::json& value);

// Formula tensors (golden README, section 1). Bit-exact.
uint64_t fnv1a64(const std::string& name);
uint64_t mixed_u64(const std::string& name, uint64_t index);
// kind: weight, bn_weight, bn_bias, running_var, bias, box_bias, cls_bias, zero (int64), frozen, uniform.
torch::Tensor formula(const std::string& name, const std::vector<int64_t>& shape, const std::string& kind);
// scale*u + offset with one float32 rounding per operation: multiply first, then add.
torch::Tensor uniform(const std::string& name, const std::vector<int64_t>& shape);

// The largest excess of |a-b| over abs + rel*|b|; <= 0 means within tolerance. Shapes must agree.
double excess(const torch::Tensor& actual, const torch::Tensor& expected, double abs, double rel);

}  // namespace fixture
