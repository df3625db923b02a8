// Four filters that are applied now and then: blur, median, grey, and contrast-limited adaptive histogram
// equalisation (CLAHE; Zuiderveld 1994) of the lightness.
#pragma once

#include <yolo9/core/random.h>

namespace cv {
class Mat;
}

namespace yolo9 {

struct FilterDraws {
  int blur_side = 0, median_side = 0;  // 3, 5 or 7 pixels; 0: left out
  bool grey = false;
  double clahe_limit = 0;  // 1..4, of 8 x 8 tiles; 0: left out
  bool any() const { return blur_side > 0 || median_side > 0 || grey || clahe_limit > 0; }
};
// Each with the given probability, in the order above.
FilterDraws draw_filters(double probability, Random& random);
void apply_filters(cv::Mat& image, const FilterDraws& draws);

}  // namespace yolo9
