// The order in which an epoch visits a data set.
#pragma once

#include <cstdint>
#include <vector>

namespace yolo9 {

// A new order for every epoch, from the seed alone.
std::vector<int64_t> shuffled_order(int64_t count, uint64_t seed, int64_t epoch);

}  // namespace yolo9
