// YOLO label files: one object a row, "class cx cy w h" or "class x1 y1 x2 y2 x3 y3 ...", normalised to 0..1.
// Every row is read by itself, so that boxes and polygons may share a file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <yolo9/data/objects.h>

namespace yolo9 {

// One row, in the single precision that the values are given in. Kept small: a large set has millions of them.
struct LabelRow {
  int64_t class_index = 0;
  float cx = 0, cy = 0, w = 0, h = 0;
  std::vector<float> polygon;  // x1, y1, x2, y2, ...; empty for a box
};

enum class LabelFaultKind {
  Unreadable,       // the file cannot be read
  TokenCount,       // neither 5 tokens nor a class with three or more points
  NotANumber,       // text, NaN or infinity
  ClassIndex,       // not a whole number, negative, or not below the number of classes
  OutsidePicture,   // a coordinate below 0 or above 1
  Duplicate,        // note: the row is there twice, the second is dropped
  EmptyBox,         // note: width or height 0; kept
};
// Whether this makes the file wrong, rather than being something to note.
bool is_error(LabelFaultKind kind);
std::string to_string(LabelFaultKind kind);

struct LabelFault {
  LabelFaultKind kind;
  int64_t line;  // from 1
  std::string text;
};

struct LabelFile {
  std::vector<LabelRow> rows;  // of the good rows; sorted by class, centre and size if duplicates were dropped
  std::vector<LabelFault> faults;
  int64_t duplicates = 0;

  const LabelFault* first_error() const;  // nullptr if none
};

// class_count < 0: any class index from 0 up is accepted.
LabelFile parse_labels(const std::string& text, int64_t class_count = -1);

CenterBox center_box(const LabelRow& row);
Polygon polygon_points(const LabelRow& row);  // normalised

}  // namespace yolo9
