// Boxes and polygons of one picture, and the arithmetic on them. No pixels here.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace yolo9 {

struct Point {
  double x = 0, y = 0;
};
using Polygon = std::vector<Point>;

// Corners, x to the right and y down.
struct Corners {
  double x1 = 0, y1 = 0, x2 = 0, y2 = 0;
};

// Centre and size.
struct CenterBox {
  double cx = 0, cy = 0, w = 0, h = 0;
};

// An annotated thing in pixels of the picture at hand. `polygon` is empty for a plain box.
struct Object {
  int64_t class_index = 0;
  Corners box;
  Polygon polygon;
};
using Objects = std::vector<Object>;

// What may be taken off the right and bottom edge when normalising, so that no box touches it.
constexpr double kClipMargin = 1e-3;

CenterBox to_center(const Corners& box);
Corners to_corners(const CenterBox& box);
// Normalised centre box -> corners in pixels of a width x height picture that stands at (pad_x, pad_y).
Corners denormalise(const CenterBox& box, double width, double height, double pad_x = 0, double pad_y = 0);
Polygon denormalise(const Polygon& polygon, double width, double height, double pad_x = 0, double pad_y = 0);
CenterBox normalise(const Corners& box, double width, double height);
// To [0, width] x [0, height].
Corners clip(const Corners& box, double width, double height);

// The bounding box of the points that lie inside [0, width] x [0, height]. Points outside are dropped, not
// projected; the result is all zero when none is left, or when every remaining x is 0.
Corners box_of_inside_points(const Polygon& polygon, double width, double height);
// The bounding box of all points; the polygon must not be empty.
Corners box_of_points(const Polygon& polygon);
// `count` points evenly spaced in vertex number along the closed polygon, linear between vertices.
Polygon resample(const Polygon& polygon, int64_t count);

// What share of each box of `others` is covered by `box`.
std::vector<double> covered_shares(const Corners& box, const std::vector<Corners>& others);

// Whether a box survives an augmentation: larger than `min_side` both ways, keeps more than `min_area_share` of its
// area, and is not a sliver. `before` must be in the scale of `after`.
struct CandidateRule {
  double min_side_pixels = 2;
  double max_aspect = 100;
  double min_area_share = 0.1;
};
bool is_candidate(const Corners& before, const Corners& after, const CandidateRule& rule);

// Network pixels -> picture pixels: undoes a letterbox, then clips to the picture. `ratio` is network pixels per
// picture pixel, pads in network pixels.
Corners undo_letterbox(const Corners& box, double ratio, double pad_x, double pad_y, double width, double height);
// Ratio and pads of a centred letterbox that is known only by the two sizes.
struct CenteredLetterbox {
  double ratio, pad_x, pad_y;
};
CenteredLetterbox centered_letterbox(int64_t network_height, int64_t network_width, int64_t height, int64_t width);

// The smallest multiple of `divisor` that is not below `value`.
int64_t round_up(double value, int64_t divisor);

}  // namespace yolo9
