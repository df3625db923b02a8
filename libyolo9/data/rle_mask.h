// Masks as run lengths, as COCO keeps them: pixels in columns from the left, each from the top, and the lengths of
// alternating runs of background and thing. Everything here costs memory by the runs, never by the pixels.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <yolo9/data/objects.h>

namespace yolo9 {

constexpr int64_t kLongestMaskSide = 65536;

// The lengths behind the compressed text: each in groups of five bits, the lowest first, a sixth bit saying that more
// follow, the last group's fifth bit being the sign, in characters from '0' up; from the fourth on the difference to
// the length before the last. Nothing if the text is none.
std::optional<std::vector<int64_t>> decode_run_lengths(const std::string& text);

class RunMask {
 public:
  // Nothing if a side is not in 1..kLongestMaskSide, a length is negative, or they exceed the picture.
  static std::optional<RunMask> make(int64_t height, int64_t width, const std::vector<int64_t>& lengths);

  int64_t area() const { return area_; }
  Corners box() const;  // in pixels, of all that is set; empty if nothing is
  // The outer outline of each part, parts being pixels that touch along edges, in pixels along pixel edges: the largest
  // first, at most `most_parts`. Holes are filled. Nothing if the outlines are longer than kLongestOutline.
  std::optional<std::vector<std::vector<double>>> outlines(size_t most_parts) const;
  static constexpr int64_t kLongestOutline = int64_t{1} << 22;  // pixel edges

 private:
  struct Run {
    int64_t x, y1, y2;  // pixels y1 .. y2-1 of column x
  };
  struct Part {
    size_t first_run;
    int64_t area;
  };
  bool is_set(int64_t x, int64_t y) const;
  std::vector<Part> find_parts() const;
  std::optional<std::vector<double>> trace(int64_t x, int64_t y, int64_t& edges_left) const;

  int64_t area_ = 0;
  std::vector<Run> runs_;             // by column, then from the top
  std::vector<size_t> column_begin_;  // into runs_; one more than there are columns
};

// One polygon from several, each joined to those before at the nearest corners by a bridge without width. With very
// many corners the nearest of some of them.
std::vector<double> join_polygons(const std::vector<std::vector<double>>& parts);

}  // namespace yolo9
