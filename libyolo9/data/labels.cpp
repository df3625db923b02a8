#include <yolo9/data/labels.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <tuple>

namespace yolo9 {
namespace {

std::vector<std::string_view> split_tokens(std::string_view line) {
  constexpr std::string_view kBlank = " \t\r\v\f";
  std::vector<std::string_view> tokens;
  size_t begin = line.find_first_not_of(kBlank);
  while (begin != std::string_view::npos) {
    const size_t end = std::min(line.find_first_of(kBlank, begin), line.size());
    tokens.push_back(line.substr(begin, end - begin));
    begin = line.find_first_not_of(kBlank, end);
  }
  return tokens;
}

std::optional<double> parse_number(std::string_view token) {
  if (token.size() > 1 && token.front() == '+' && token[1] != '-') token.remove_prefix(1);
  double value = 0;
  const auto [end, status] = std::from_chars(token.data(), token.data() + token.size(), value);
  if (status == std::errc::result_out_of_range || status != std::errc() || end != token.data() + token.size() ||
      !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

std::string quote(std::string_view token) {
  constexpr size_t kLongest = 40;
  std::string text = "\"";
  for (const char c : token.substr(0, kLongest)) text += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
  return text + (token.size() > kLongest ? "...\"" : "\"");
}

std::string token_count_text(size_t count) {
  std::string text = "a row of " + std::to_string(count) + (count == 1 ? " number" : " numbers") + ", expected 5 " +
                     "(class cx cy w h) or a class and three or more points (7, 9, 11, ...)";
  if (count == 6) text += "; is the sixth a confidence?";
  return text;
}

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

// Reads one row, or says in `fault` what is wrong with it.
std::optional<LabelRow> parse_row(const std::vector<std::string_view>& tokens, int64_t class_count,
                                  LabelFault& fault) {
  const auto fail = [&fault](LabelFaultKind kind, std::string text) {
    fault.kind = kind;
    fault.text = std::move(text);
    return std::nullopt;
  };
  const size_t count = tokens.size();
  const bool is_box = count == 5, is_polygon = count >= 7 && count % 2 == 1;
  if (!is_box && !is_polygon) return fail(LabelFaultKind::TokenCount, token_count_text(count));

  std::vector<double> values;
  values.reserve(count);
  for (const std::string_view token : tokens) {
    const std::optional<double> value = parse_number(token);
    if (!value) return fail(LabelFaultKind::NotANumber, quote(token) + " is not a finite number");
    values.push_back(*value);
  }
  const double index = values[0];
  const std::string range = class_count < 0 ? "0 up" : "0.." + std::to_string(class_count - 1);
  if (index != std::floor(index) || std::abs(index) > 1e9) {
    return fail(LabelFaultKind::ClassIndex, "class index " + quote(tokens[0]) + " is not a whole number");
  }
  if (index < 0 || (class_count >= 0 && index >= static_cast<double>(class_count))) {
    return fail(LabelFaultKind::ClassIndex,
                "class index " + std::to_string(static_cast<int64_t>(index)) + " is out of range " + range);
  }
  LabelRow row;
  row.class_index = static_cast<int64_t>(index);
  for (size_t i = 1; i < count; ++i) {
    const auto value = static_cast<float>(values[i]);
    if (value < 0 || value > 1) {
      return fail(LabelFaultKind::OutsidePicture, "coordinate " + quote(tokens[i]) + " is outside 0..1");
    }
    if (is_polygon) row.polygon.push_back(value);
  }
  if (is_polygon) {
    finish_polygon_box(row);
  } else {
    row.cx = static_cast<float>(values[1]);
    row.cy = static_cast<float>(values[2]);
    row.w = static_cast<float>(values[3]);
    row.h = static_cast<float>(values[4]);
  }
  return row;
}

// Drops all but the first of equal rows and notes the others; sorts the rest as soon as one was dropped, because the
// trainers whose data sets these are do so and the order of labels shows in mosaics.
void drop_duplicates(LabelFile& file, const std::vector<int64_t>& lines) {
  std::vector<size_t> order(file.rows.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&file](size_t a, size_t b) { return key_of(file.rows[a]) < key_of(file.rows[b]); });
  std::vector<LabelRow> unique;
  int64_t line_of_last = 0;
  for (const size_t i : order) {
    if (!unique.empty() && key_of(unique.back()) == key_of(file.rows[i])) {
      ++file.duplicates;
      file.faults.push_back(
          {LabelFaultKind::Duplicate, lines[i], "the same object as in line " + std::to_string(line_of_last)});
    } else {
      unique.push_back(file.rows[i]);
      line_of_last = lines[i];
    }
  }
  if (file.duplicates > 0) file.rows = std::move(unique);
}

}  // namespace

bool is_error(LabelFaultKind kind) { return kind != LabelFaultKind::Duplicate && kind != LabelFaultKind::EmptyBox; }

std::string to_string(LabelFaultKind kind) {
  switch (kind) {
    case LabelFaultKind::Unreadable: return "unreadable";
    case LabelFaultKind::TokenCount: return "token_count";
    case LabelFaultKind::NotANumber: return "not_a_number";
    case LabelFaultKind::ClassIndex: return "class_index";
    case LabelFaultKind::OutsidePicture: return "outside_picture";
    case LabelFaultKind::Duplicate: return "duplicate";
    case LabelFaultKind::EmptyBox: return "empty_box";
  }
  return "unknown";
}

const LabelFault* LabelFile::first_error() const {
  for (const LabelFault& fault : faults) {
    if (is_error(fault.kind)) return &fault;
  }
  return nullptr;
}

LabelFile parse_labels(const std::string& text, int64_t class_count) {
  LabelFile file;
  std::vector<int64_t> lines;
  std::string_view rest = text;
  if (rest.substr(0, 3) == "\xEF\xBB\xBF") rest.remove_prefix(3);  // some editors write a byte order mark
  for (int64_t line = 1; !rest.empty(); ++line) {
    const size_t end = rest.find('\n');
    const std::string_view content = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    const std::vector<std::string_view> tokens = split_tokens(content);
    if (tokens.empty()) continue;
    LabelFault fault{LabelFaultKind::TokenCount, line, ""};
    std::optional<LabelRow> row = parse_row(tokens, class_count, fault);
    if (!row) {
      file.faults.push_back(std::move(fault));
      continue;
    }
    if (row->w == 0 || row->h == 0) {
      file.faults.push_back({LabelFaultKind::EmptyBox, line, "a box without width or height"});
    }
    file.rows.push_back(std::move(*row));
    lines.push_back(line);
  }
  drop_duplicates(file, lines);
  std::stable_sort(file.faults.begin(), file.faults.end(),
                   [](const LabelFault& a, const LabelFault& b) { return a.line < b.line; });
  return file;
}

CenterBox center_box(const LabelRow& row) { return {row.cx, row.cy, row.w, row.h}; }

Polygon polygon_points(const LabelRow& row) {
  Polygon points;
  points.reserve(row.polygon.size() / 2);
  for (size_t i = 0; i + 1 < row.polygon.size(); i += 2) points.push_back({row.polygon[i], row.polygon[i + 1]});
  return points;
}

}  // namespace yolo9
