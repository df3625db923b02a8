// Drawing pictures of poorly detected classes more often.
#pragma once

#include <cstdint>
#include <vector>

#include <yolo9/core/random.h>

namespace yolo9 {

// A picture weighs the sum over its labels of w(class) * (1 - mAP(class))^2, where w is the inverse of the class's
// label count, scaled to a mean of one. Pictures without labels weigh nothing unless all do.
// labels_per_image[i]: classes of the labels of picture i. class_maps may be empty (all zero).
std::vector<double> image_weights(const std::vector<std::vector<int64_t>>& labels_per_image, int64_t classes,
                                  const std::vector<double>& class_maps);

// `count` indices drawn with replacement in proportion to `weights`.
std::vector<int64_t> draw_weighted(const std::vector<double>& weights, int64_t count, Random& random);

}  // namespace yolo9
