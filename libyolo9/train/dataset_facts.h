// What a run needs to know of a data set as a whole.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <torch/types.h>

#include <yolo9/data/dataset.h>

namespace yolo9 {

// Classes of the labels of each picture.
std::vector<std::vector<int64_t>> classes_per_image(const Dataset& dataset);
// float [n,5] of all labels: class, centre x, centre y, width, height, normalised.
torch::Tensor all_labels(const Dataset& dataset);
// Changes when pictures are added, removed or renamed, or when a label or a class name changes (FNV-1a, 64 bit).
std::string fingerprint(const Dataset& dataset);

}  // namespace yolo9
