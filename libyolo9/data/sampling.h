// The order in which an epoch visits a data set.
#pragma once

#include <cstdint>
#include <vector>

#include <yolo9/core/random.h>
#include <yolo9/data/dataset.h>

namespace yolo9 {

// A new order for every epoch, from the seed alone.
std::vector<int64_t> shuffled_order(int64_t count, uint64_t seed, int64_t epoch);

// Inverse frequencies that sum to 1; a class without objects counts as one.
std::vector<double> class_weights(const std::vector<int64_t>& class_counts);
// Of each picture: the weights of its objects' classes, summed.
std::vector<double> image_weights(const Dataset& dataset, const std::vector<double>& class_weights);
// `count` positions, each drawn with a probability proportional to its weight; uniform if all weights are 0.
std::vector<int64_t> weighted_order(const std::vector<double>& weights, int64_t count, Random& random);

}  // namespace yolo9
