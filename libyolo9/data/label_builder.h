// What the readers of all label formats share: rows and faults gathered into a LabelFile.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <yolo9/data/labels.h>
#include <yolo9/data/mosaic.h>

namespace yolo9 {

class LabelBuilder {
 public:
  explicit LabelBuilder(int64_t most_listed_faults) : most_listed_(most_listed_faults) {}

  void fault(LabelFaultKind kind, int64_t line, std::string text);
  // What the rows and faults that follow belong to, where a line number tells little ("annotation 17 of image 3").
  void set_name(std::string name) { name_ = std::move(name); }
  // Drops boxes without width or height, with a note.
  void add(LabelRow row, int64_t line);
  // A box by its corners as shares of the picture, cut at the picture's edges. What hangs over by no more than the
  // tolerances (rounding in the tool that wrote it) is cut without a note.
  void add_box(int64_t class_index, const Corners& box, double tolerance_x, double tolerance_y, int64_t line);
  // The same for a polygon (x1, y1, x2, y2, ...; three points or more). Its box is that of the points that are left.
  void add_polygon(int64_t class_index, const std::vector<double>& points, double tolerance_x, double tolerance_y,
                   int64_t line);
  // Drops all but the first of equal rows, and ends the building.
  LabelFile finish();

 private:
  void drop_duplicates();

  int64_t most_listed_;
  LabelFile file_;
  std::string name_;                // of what comes now
  std::vector<int64_t> lines_;      // of the rows
  std::vector<std::string> names_;  // of the rows
};

// The size by which pixels become shares, or 0 x 0. `given`: by the label file, `picture`: of the picture as it is
// read; either may be 0 x 0. Labels are in pixels of the size that goes with them, even if the picture was scaled
// since. But a size given with width and height swapped is a slip, or that of a picture before it was turned upright:
// then the picture's own is right. Notes a difference.
PixelSize reference_size(PixelSize given, PixelSize picture, int64_t line, LabelBuilder& builder);

// Sutherland and Hodgman (1974): what of the polygon lies in the unit square. Parts of a concave polygon may stay
// connected by edges of no width along the square's sides.
std::vector<double> clip_to_unit_square(std::vector<double> points);

// A word of a file for a message: short, printable, in quotation marks.
std::string quote_word(std::string_view word);

}  // namespace yolo9
