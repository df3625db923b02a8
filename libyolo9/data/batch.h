// Samples that go through the network together.
#pragma once

#include <vector>

#include <yolo9/core/types.h>
#include <yolo9/data/dataset.h>

namespace yolo9 {

// At least one sample, all of one size. Copies; uses no parallel tensor operation.
Batch collate(const std::vector<Sample>& samples);

}  // namespace yolo9
