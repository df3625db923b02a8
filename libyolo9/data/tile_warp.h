// A mosaic, or a letterboxed picture, warped straight into the output: what drawing the canvas and then warping it
// would give, without the canvas.
#pragma once

#include <cstdint>
#include <vector>

#include <yolo9/data/augment.h>
#include <yolo9/data/picture_reader.h>

namespace yolo9 {

// One picture on the canvas. Canvas coordinates are pixel centres: (0, 0) is the centre of the first pixel.
struct WarpTile {
  int64_t x1 = 0, y1 = 0, x2 = 0, y2 = 0;  // the canvas pixels that it fills; later tiles cover earlier ones
  AffineMap to_pixels;                     // canvas -> pixel centres of `pixels`
  cv::Mat pixels;                          // with new_picture's slack; empty: grey
};

// Output pixel centres -> canvas pixel centres, as (a x + b y + c) / (g x + h y + i).
class CanvasView {
 public:
  // `matrix`: canvas -> output, as warp() takes it. Throws Error(Data) if it cannot be inverted.
  CanvasView(const Matrix3& matrix, int64_t height, int64_t width);
  int64_t height() const { return height_; }
  int64_t width() const { return width_; }

  // Where a row of the output crosses the canvas: numerators at x = 0 and their growth a pixel.
  struct Row {
    double x0, dx, y0, dy, w0, dw;
  };
  Row row(int64_t y) const;

  // Those x of row `y`, as a half-open range, whose place on the canvas lies in [x1, x2] x [y1, y2]; none
  // outside, or none left out.
  struct Span {
    int64_t begin = 0, end = 0;
    bool empty() const { return end <= begin; }
  };
  Span inside(const Row& row, double x1, double y1, double x2, double y2) const;
  Span around(const Row& row, double x1, double y1, double x2, double y2) const;

  // The part of a canvas rectangle that the output shows, one pixel of margin included.
  struct Region {
    double x1, y1, x2, y2;
    bool empty() const { return x2 <= x1 || y2 <= y1; }
    Region joined(const Region& other) const;  // the smallest that holds both
  };
  Region shown(double x1, double y1, double x2, double y2) const;
  // Output pixels a canvas pixel, across and down, where it is largest within the output.
  double zoom_x() const { return zoom_x_; }
  double zoom_y() const { return zoom_y_; }

 private:
  Matrix3 inverse_;
  int64_t height_, width_;
  double zoom_x_ = 1, zoom_y_ = 1;
};

// Writes all of `out` (8-bit BGR, the view's size). Pixels whose neighbours on the canvas all belong to one tile are
// interpolated in that tile's picture; those on a border are mixed from the neighbours, as on the canvas.
void warp_tiles(const std::vector<WarpTile>& tiles, const CanvasView& view, cv::Mat& out);

}  // namespace yolo9
