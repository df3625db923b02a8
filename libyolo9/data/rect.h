// Rectangular batches: pictures of like aspect together, so that less of a batch is border.
#pragma once

#include <cstdint>
#include <vector>

#include <yolo9/data/mosaic.h>

namespace yolo9 {

// Positions in the order of height / width.
std::vector<int64_t> rect_order(const std::vector<PixelSize>& sizes);
// One shape a batch of `batch_size` pictures in the given (ordered) sizes: from the batch's most extreme aspect, as a
// share of image_size, plus `pad` strides, up to whole strides.
std::vector<PixelSize> rect_shapes(const std::vector<PixelSize>& ordered_sizes, int64_t batch_size, int64_t image_size,
                                   int64_t stride, double pad);

}  // namespace yolo9
