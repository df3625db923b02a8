// The last pass over a sample's pixels: colour, flips and the way into planes, all at once.
#pragma once

#include <cstdint>

#include <yolo9/data/augment.h>

namespace cv {
class Mat;
}

namespace yolo9 {

struct FinishDraws {
  HsvGains hsv;
  bool flip_up_down = false, flip_left_right = false;
};

// `planes`: 3 x height x width bytes, R, G, B. What scale_hsv, the flips and copy_to_planes would give one after the
// other, the colour to within one level.
void finish_picture(const cv::Mat& image, const FinishDraws& draws, uint8_t* planes);

}  // namespace yolo9
