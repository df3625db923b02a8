// YOLO label files: one object a row, "class cx cy w h" or "class x1 y1 x2 y2 x3 y3 ...", normalised to 0..1.
// Every row is read by itself, so that boxes and polygons may share a file.
#pragma once

#include <array>
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

// What is wrong with a row, or was done to it. A fault is a mistake in the file; a note is something to know. Rows of
// most kinds are dropped, and the picture keeps its other rows.
enum class LabelFaultKind : uint8_t {
  Unreadable,       // fault: the whole file cannot be read, or is not of its format
  TokenCount,       // fault, dropped: neither 5 tokens nor a class with three or more points
  NotANumber,       // fault, dropped: text, NaN, infinity, nothing at all
  ClassIndex,       // fault, dropped: not a whole number, negative, or not below the number of classes
  OutsidePicture,   // fault, dropped: a value of a box below 0 or above 1; nothing of a polygon or pixel box inside
  Duplicate,        // note, dropped: the row is there twice
  EmptyBox,         // note, dropped: width or height 0
  ClippedPolygon,   // note: a polygon leaves the picture and was cut at its edges
  ClippedBox,       // note: the same of a box that is given in pixels (VOC, COCO)
  Crowd,            // note, dropped: COCO's iscrowd, a group of things that nobody counted
  UnknownCategory,  // fault, dropped: VOC or COCO name a class that the data set does not have
  InvertedBox,      // fault, dropped: a negative width or height, or the right corner left of the left one
  Segmentation,     // note: COCO's outline cannot be understood; the box was taken
  SizeDiffers,      // note: VOC or COCO give another size than the picture has
  SizeUnknown,      // fault, dropped: pixels cannot be made shares, because nothing gives the picture's size
  UnknownImage,     // fault, dropped: a COCO annotation of a picture that is not listed, or a listed one without name
  DuplicateImage,   // fault: two COCO pictures have one id; the first counts
  DuplicateId,      // note: two COCO annotations have one id; both count
};
constexpr int kLabelFaultKinds = 18;
// Whether this makes the file wrong, rather than being something to note.
bool is_error(LabelFaultKind kind);
// Whether a row with this fault is left out of LabelFile::rows.
bool drops_row(LabelFaultKind kind);
std::string to_string(LabelFaultKind kind);  // "token_count"

struct LabelFault {
  LabelFaultKind kind;
  int64_t line;  // from 1; 0: the whole file
  std::string text;
};

struct LabelFile {
  std::vector<LabelRow> rows;      // of the good rows; sorted by class, centre and size if duplicates were dropped
  std::vector<LabelFault> faults;  // by line; if there are very many only some, but the first of every kind
  std::array<int64_t, kLabelFaultKinds> counts{};  // of all

  int64_t count(LabelFaultKind kind) const { return counts[static_cast<size_t>(kind)]; }
  const LabelFault* first_error() const;  // nullptr if none
};

// So many faults of a file are kept with their text, so that a file of nothing else stays small.
constexpr int64_t kMostListedFaults = 100;
constexpr int64_t kListAllFaults = int64_t{1} << 62;

// Lines may end in LF, CR LF or CR, and a byte order mark may stand in front. class_count < 0: any class index from 0
// up is accepted.
LabelFile parse_labels(const std::string& text, int64_t class_count = -1,
                       int64_t most_listed_faults = kMostListedFaults);
// What cannot be read at all.
LabelFile unreadable_labels(int64_t line, std::string text);
// The row as parse_labels() reads it, to the last bit, without a line end.
std::string format_row(const LabelRow& row);

CenterBox center_box(const LabelRow& row);
Polygon polygon_points(const LabelRow& row);  // normalised

}  // namespace yolo9
