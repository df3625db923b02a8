// Augmentations as pure functions of their input and their draws; draw_* makes the draws.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <yolo9/core/random.h>
#include <yolo9/data/objects.h>

namespace cv {
class Mat;
}

namespace yolo9 {

// Keys, meaning and defaults of the usual hyper-parameter files.
struct AugmentOptions {
  double hsv_h = 0.015, hsv_s = 0.7, hsv_v = 0.4;  // largest relative change
  double degrees = 0;                              // rotation, +-
  double translate = 0.1;                          // +- fraction of the output size
  double scale = 0.9;                              // 1 +- this
  double shear = 0;                                // degrees, +-
  double perspective = 0;                          // +-, sensible up to 0.001
  double flipud = 0, fliplr = 0.5;                 // probabilities
  double mosaic = 1;                               // probability
  double mosaic9 = 0;                              // share of mosaics that have nine pictures instead of four
  double mixup = 0.15;                             // probability, only on mosaics
  double copy_paste = 0.3;                         // share of the eligible polygons that are pasted, only on mosaics
  double filters = 0.01;                           // probability of each of blur, median, grey and CLAHE
};

// ---- geometry

struct PerspectiveDraws {
  double perspective_x = 0, perspective_y = 0;
  double angle_degrees = 0;
  double scale = 1;
  double shear_x_degrees = 0, shear_y_degrees = 0;
  double translate_x = 0.5, translate_y = 0.5;  // where the picture's centre goes, as a fraction of the output
};
PerspectiveDraws draw_perspective(const AugmentOptions& options, Random& random);

// Row-major 3x3: translation * shear * rotation and scale * perspective * centre.
using Matrix3 = std::array<double, 9>;
Matrix3 perspective_matrix(const PerspectiveDraws& draws, int64_t height, int64_t width, int64_t out_height,
                           int64_t out_width);

// The output is the picture plus `border` on every side; a negative border cuts.
struct Border {
  int64_t height = 0, width = 0;
};
// `divide`: whether points are divided by their third coordinate, that is, whether the hyper-parameter perspective is
// not 0. Returns the picture itself if nothing moves.
cv::Mat warp(const cv::Mat& image, const Matrix3& matrix, bool divide, Border border);
// Where each object goes, before any is dropped: boxes by their four corners, clipped to the output; polygons
// resampled to 1000 points, and the box of those inside the output.
std::vector<Corners> warp_boxes(const Objects& objects, const Matrix3& matrix, bool divide, int64_t out_height,
                                int64_t out_width);
// Those objects that survive, with their new boxes; polygons end here.
Objects warp_objects(const Objects& objects, const Matrix3& matrix, double scale, bool divide, int64_t out_height,
                     int64_t out_width);
// All of it: picture and objects, in place.
void apply_perspective(cv::Mat& image, Objects& objects, const PerspectiveDraws& draws, bool divide, Border border);

void flip_left_right(cv::Mat& image, Objects& objects);
void flip_up_down(cv::Mat& image, Objects& objects);

// ---- colour and blending

struct HsvGains {
  double hue = 1, saturation = 1, value = 1;
};
HsvGains draw_hsv(const AugmentOptions& options, Random& random);

// a*ratio + b*(1-ratio), truncated. Same size.
cv::Mat mix(const cv::Mat& a, const cv::Mat& b, double ratio);
double draw_mixup_ratio(Random& random);  // Beta(32, 32): near one half

// ---- copy-paste: mirrored copies of polygons, where they hide little

// Indices of the objects with a polygon whose mirrored box covers less than 0.30 of every box in the picture.
std::vector<int64_t> paste_candidates(const Objects& objects, int64_t width);
// round(share * candidates) of them, in drawn order.
std::vector<int64_t> draw_pasted(const std::vector<int64_t>& candidates, double share, Random& random);
Object mirrored(const Object& object, double width);
// Pastes the mirrored pixels of the outlines.
void paste_mirrored(cv::Mat& image, const std::vector<Polygon>& outlines);
// Appends the mirrored objects and pastes their pixels.
void copy_paste(cv::Mat& image, Objects& objects, const std::vector<int64_t>& chosen);

}  // namespace yolo9
