#include <yolo9/data/finish.h>

#include <yolo9/data/colour_row.h>
#include <opencv2/core.hpp>

namespace yolo9 {
namespace {

// Without colour changes only the flips and the planes are left; the way to HSV and back would not be exact.
void flip_into_planes(const cv::Mat& image, const FinishDraws& draws, uint8_t* planes) {
  const auto width = static_cast<size_t>(image.cols), plane = width * static_cast<size_t>(image.rows);
  cv::Mat flipped;
  if (draws.flip_up_down || draws.flip_left_right) {
    const int code = draws.flip_up_down && draws.flip_left_right ? -1 : draws.flip_left_right ? 1 : 0;
    cv::flip(image, flipped, code);
  } else {
    flipped = image;
  }
  cv::Mat bgr[3];
  for (size_t c = 0; c < 3; ++c) bgr[c] = cv::Mat(image.rows, image.cols, CV_8UC1, planes + (2 - c) * plane);
  cv::split(flipped, bgr);  // into the memory that the three stand on
}

}  // namespace

void finish_picture(const cv::Mat& image, const FinishDraws& draws, uint8_t* planes) {
  const HsvGains& hsv = draws.hsv;
  if (hsv.hue == 1 && hsv.saturation == 1 && hsv.value == 1) return flip_into_planes(image, draws, planes);
  const ColourTables tables(hsv.hue, hsv.saturation, hsv.value);
  const int64_t width = image.cols, plane = width * image.rows;
  for (int y = 0; y < image.rows; ++y) {
    uint8_t* red = planes + width * (draws.flip_up_down ? image.rows - 1 - y : y);
    colour_row(image.ptr(y), width, tables, draws.flip_left_right, {red, red + plane, red + 2 * plane});
  }
}

}  // namespace yolo9
