// Axes with ticks and labels, and line charts in them. Internal to this layer: it shows OpenCV.
#pragma once

#include <string>
#include <vector>

#include <yolo9/monitor/canvas.h>

namespace yolo9 {

struct Range {
  double low = 0, high = 1;
};

// The range of the finite values, widened by a little; {0, 1} without any.
Range range_of(const std::vector<double>& values, bool from_zero = false);
// Round values inside the range, about `count` of them; none for a count of 0 or a range that does not rise.
std::vector<double> round_ticks(const Range& range, int count);
std::string tick_text(double value, double step);

// The plotting area inside `area` with frame, grid, ticks and labels drawn.
class Axes {
 public:
  struct Options {
    std::string title, x_label, y_label;
    Range x, y;
    int x_ticks = 6, y_ticks = 6;
    bool grid = true;
    double text_size = 9;
  };
  Axes(Canvas& canvas, const cv::Rect2d& area, const Options& options);

  const cv::Rect2d& inner() const { return inner_; }
  cv::Point2d at(double x, double y) const;
  void curve(const std::vector<double>& x, const std::vector<double>& y, const cv::Scalar& colour, double thickness);
  void dots(const std::vector<double>& x, const std::vector<double>& y, const cv::Scalar& colour, double radius);

 private:
  Canvas& canvas_;
  cv::Rect2d inner_;
  Range x_, y_;
};

struct LegendEntry {
  std::string text;
  cv::Scalar colour;
  double thickness = 2;
};
// A column of entries with its top left corner at `corner`; entries that do not fit `height` are summed up in a
// last line "and N more".
void draw_legend(Canvas& canvas, cv::Point2d corner, double height, const std::vector<LegendEntry>& entries,
                 double text_size = 9);

}  // namespace yolo9
