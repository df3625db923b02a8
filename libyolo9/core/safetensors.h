// The safetensors container: little-endian length, JSON header, raw tensors.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <torch/types.h>

namespace yolo9 {

// Tensors in the order of their names in the file, on the CPU, owning their memory.
// Throws Error(Weights) for anything malformed: header past the end, overlapping or missing bytes, unknown type,
// duplicate name, a shape that does not match its bytes.
std::vector<std::pair<std::string, torch::Tensor>> read_safetensors(const std::string& path);
std::map<std::string, torch::Tensor> read_safetensors_map(const std::string& path);

// Writes contiguous copies in the given order, atomically (temporary file, then rename).
void write_safetensors(const std::string& path, const std::vector<std::pair<std::string, torch::Tensor>>& tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace yolo9
