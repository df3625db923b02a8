#include <yolo9/data/label_builder.h>

#include <algorithm>
#include <cmath>
#include <tuple>

namespace yolo9 {
namespace {

// Polygons are equal if their boxes are, as in the trainers whose data sets these are.
using RowKey = std::tuple<int64_t, float, float, float, float>;
RowKey key_of(const LabelRow& row) { return {row.class_index, row.cx, row.cy, row.w, row.h}; }

void finish_polygon_box(LabelRow& row) {
  float x1 = row.polygon[0], y1 = row.polygon[1], x2 = x1, y2 = y1;
  for (size_t i = 0; i < row.polygon.size(); i += 2) {
    x1 = std::min(x1, row.polygon[i]);
    x2 = std::max(x2, row.polygon[i]);
    y1 = std::min(y1, row.polygon[i + 1]);
    y2 = std::max(y2, row.polygon[i + 1]);
  }
  row.cx = (x1 + x2) / 2;
  row.cy = (y1 + y2) / 2;
  row.w = x2 - x1;
  row.h = y2 - y1;
}

// Keeps the side of a line where `sign` * coordinate <= `limit`. `axis`: 0 for x, 1 for y.
std::vector<double> clip_side(const std::vector<double>& points, size_t axis, double sign, double limit) {
  std::vector<double> kept;
  kept.reserve(points.size());
  const size_t count = points.size() / 2;
  for (size_t i = 0; i < count; ++i) {
    const double* here = &points[2 * i];
    const double* next = &points[2 * ((i + 1) % count)];
    const bool here_in = sign * here[axis] <= limit, next_in = sign * next[axis] <= limit;
    if (here_in) kept.insert(kept.end(), here, here + 2);
    if (here_in == next_in) continue;
    double crossing[2];
    crossing[axis] = sign * limit;
    const double share = (sign * limit - here[axis]) / (next[axis] - here[axis]);
    crossing[1 - axis] = here[1 - axis] + share * (next[1 - axis] - here[1 - axis]);
    kept.insert(kept.end(), crossing, crossing + 2);
  }
  return kept;
}

}  // namespace

std::string quote_word(std::string_view word) {
  constexpr size_t kLongest = 40;
  std::string text = "\"";
  for (const char c : word.substr(0, kLongest)) text += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
  return text + (word.size() > kLongest ? "...\"" : "\"");
}

std::vector<double> clip_to_unit_square(std::vector<double> points) {
  for (const size_t axis : {size_t{0}, size_t{1}}) {
    points = clip_side(points, axis, 1, 1);
    points = clip_side(points, axis, -1, 0);
  }
  return points;
}

PixelSize reference_size(PixelSize given, PixelSize picture, int64_t line, LabelBuilder& builder) {
  const auto is_known = [](PixelSize size) { return size.height > 0 && size.width > 0; };
  if (!is_known(given)) return is_known(picture) ? picture : PixelSize{};
  if (!is_known(picture) || (given.height == picture.height && given.width == picture.width)) return given;
  const bool swapped = given.height == picture.width && given.width == picture.height;
  const auto text = [](PixelSize size) { return std::to_string(size.width) + "x" + std::to_string(size.height); };
  builder.fault(
      LabelFaultKind::SizeDiffers, line,
      "a size of " + text(given) + " is given, the picture has " + text(picture) +
          (swapped ? "; the picture's counts" : "; the labels are taken to be of a picture of the given size"));
  return swapped ? picture : given;
}

void LabelBuilder::fault(LabelFaultKind kind, int64_t line, std::string text) {
  int64_t& count = file_.counts[static_cast<size_t>(kind)];
  if (count == 0 || static_cast<int64_t>(file_.faults.size()) < most_listed_) {
    file_.faults.push_back({kind, line, name_.empty() ? std::move(text) : name_ + ": " + text});
  }
  ++count;
}

void LabelBuilder::add(LabelRow row, int64_t line) {
  if (row.w <= 0 || row.h <= 0) {
    fault(LabelFaultKind::EmptyBox, line, "a box without width or height");
    return;
  }
  file_.rows.push_back(std::move(row));
  lines_.push_back(line);
  names_.push_back(name_);
}

void LabelBuilder::add_box(int64_t class_index, const Corners& box, double tolerance_x, double tolerance_y,
                           int64_t line) {
  if (box.x1 > box.x2 || box.y1 > box.y2) {
    fault(LabelFaultKind::InvertedBox, line, "the box has a negative width or height");
    return;
  }
  const Corners inside = clip(box, 1, 1);
  if (box.x2 <= 0 || box.y2 <= 0 || box.x1 >= 1 || box.y1 >= 1) {
    fault(LabelFaultKind::OutsidePicture, line, "the box lies outside the picture");
    return;
  }
  LabelRow row;
  row.class_index = class_index;
  row.cx = static_cast<float>((inside.x1 + inside.x2) / 2);
  row.cy = static_cast<float>((inside.y1 + inside.y2) / 2);
  row.w = static_cast<float>(inside.x2 - inside.x1);
  row.h = static_cast<float>(inside.y2 - inside.y1);
  const double over_x = std::max(-box.x1, box.x2 - 1), over_y = std::max(-box.y1, box.y2 - 1);
  if (over_x > tolerance_x || over_y > tolerance_y) {
    fault(LabelFaultKind::ClippedBox, line, "the box leaves the picture and was cut at its edges");
  }
  add(std::move(row), line);
}

void LabelBuilder::add_polygon(int64_t class_index, const std::vector<double>& points, double tolerance_x,
                               double tolerance_y, int64_t line) {
  constexpr double kFarthest = 1e6;  // no picture is so much wider than what stands in it
  double over_x = 0, over_y = 0, farthest = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    double& over = i % 2 == 0 ? over_x : over_y;
    over = std::max({over, -points[i], points[i] - 1});
    farthest = std::max(farthest, std::abs(points[i]));
  }
  LabelRow row;
  row.class_index = class_index;
  const bool leaves = over_x > 0 || over_y > 0;
  if (farthest <= kFarthest) {
    const std::vector<double> inside = leaves ? clip_to_unit_square(points) : points;
    row.polygon.assign(inside.begin(), inside.end());
    // Rounding in a crossing.
    for (float& value : row.polygon) value = std::clamp(value, 0.0F, 1.0F);
  }
  if (row.polygon.size() < 6) {
    fault(LabelFaultKind::OutsidePicture, line, "the polygon lies outside the picture");
    return;
  }
  if (over_x > tolerance_x || over_y > tolerance_y) {
    fault(LabelFaultKind::ClippedPolygon, line, "the polygon leaves the picture and was cut at its edges");
  }
  finish_polygon_box(row);
  add(std::move(row), line);
}

// Sorts the rest as soon as one was dropped, because the trainers whose data sets these are do so and the order of
// labels shows in mosaics.
void LabelBuilder::drop_duplicates() {
  std::vector<LabelRow>& rows = file_.rows;
  std::vector<size_t> order(rows.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&rows](size_t a, size_t b) { return key_of(rows[a]) < key_of(rows[b]); });
  struct Twin {
    size_t row, first;
  };
  std::vector<Twin> twins;
  std::vector<size_t> kept;
  for (const size_t i : order) {
    if (!kept.empty() && key_of(rows[kept.back()]) == key_of(rows[i])) {
      twins.push_back({i, kept.back()});
    } else {
      kept.push_back(i);
    }
  }
  if (twins.empty()) return;
  std::vector<LabelRow> unique;
  unique.reserve(kept.size());
  for (const size_t i : kept) unique.push_back(std::move(rows[i]));
  rows = std::move(unique);
  std::stable_sort(twins.begin(), twins.end(),
                   [this](const Twin& a, const Twin& b) { return lines_[a.row] < lines_[b.row]; });
  for (const Twin& twin : twins) {
    set_name(names_[twin.row]);
    const std::string& first = names_[twin.first];
    fault(LabelFaultKind::Duplicate, lines_[twin.row],
          "the same object as " + (first.empty() ? "in line " + std::to_string(lines_[twin.first]) : first));
  }
}

LabelFile LabelBuilder::finish() {
  drop_duplicates();
  std::stable_sort(file_.faults.begin(), file_.faults.end(),
                   [](const LabelFault& a, const LabelFault& b) { return a.line < b.line; });
  return std::move(file_);
}

}  // namespace yolo9
