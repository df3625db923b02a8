// What a scan found wrong with the pictures and rows of a data set, by kind: what is skipped is counted and said.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <yolo9/data/scan.h>

namespace yolo9 {

struct FaultCount {
  bool of_pictures = false;  // skipped; or else rows, dropped
  std::string kind;          // "truncated", "class_index"
  int64_t count = 0;
  std::string text, place;  // of the first: what is wrong, and the file (of rows: file:line)
};

class FaultTally {
 public:
  // Counts what is wrong. False if the picture must be skipped: because of itself, or because its labels cannot be
  // read, which would make it look like background.
  bool add(const ScannedImage& image);
  void add(const SourceFaults& source);

  int64_t pictures() const { return total(true); }
  int64_t rows() const { return total(false); }
  int64_t count(bool of_pictures, const std::string& kind) const;
  const std::vector<FaultCount>& counts() const { return counts_; }  // in the order in which kinds came up
  const FaultCount* first_row() const;
  std::string describe() const;  // "12 rows dropped (class_index), 1 picture skipped (truncated)"
  // One warning a kind, with the first place and what can be done.
  void warn() const;
  // Throws Error(Data) naming the first, with all counts, if there is any but COCO's crowds.
  void refuse() const;

 private:
  int64_t total(bool of_pictures) const;
  void add_rows(const LabelFile& labels, const std::string& path);
  void note(bool of_pictures, const std::string& kind, int64_t count, const std::string& text,
            const std::string& place);

  std::vector<FaultCount> counts_;
};

}  // namespace yolo9
