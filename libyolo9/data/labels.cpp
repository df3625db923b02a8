#include <yolo9/data/labels.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include <yolo9/data/label_builder.h>

namespace yolo9 {
namespace {

void split_tokens(std::string_view line, std::vector<std::string_view>& tokens) {
  constexpr std::string_view kBlank = " \t\v\f";
  tokens.clear();
  size_t begin = line.find_first_not_of(kBlank);
  while (begin != std::string_view::npos) {
    const size_t end = std::min(line.find_first_of(kBlank, begin), line.size());
    tokens.push_back(line.substr(begin, end - begin));
    begin = line.find_first_not_of(kBlank, end);
  }
}

std::optional<double> parse_number(std::string_view token) {
  if (token.size() > 1 && token.front() == '+' && token[1] != '-') token.remove_prefix(1);
  double value = 0;
  const auto [end, status] = std::from_chars(token.data(), token.data() + token.size(), value);
  if (status != std::errc() || end != token.data() + token.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::string token_count_text(size_t count) {
  std::string text = "a row of " + std::to_string(count) + (count == 1 ? " number" : " numbers") + ", expected 5 " +
                     "(class cx cy w h) or a class and three or more points (7, 9, 11, ...)";
  if (count == 6) text += "; is the sixth a confidence?";
  return text;
}

// Empty if the index can be used.
std::string class_index_fault(double index, std::string_view token, int64_t class_count) {
  if (index != std::floor(index) || std::abs(index) > 1e9) {
    return "class index " + quote_word(token) + " is not a whole number";
  }
  if (index >= 0 && (class_count < 0 || index < static_cast<double>(class_count))) return "";
  return "class index " + std::to_string(static_cast<int64_t>(index)) + " is out of range " +
         (class_count < 0 ? "0 up" : "0.." + std::to_string(class_count - 1));
}

void parse_row(const std::vector<std::string_view>& tokens, int64_t class_count, int64_t line,
               std::vector<double>& values, LabelBuilder& builder) {
  const size_t count = tokens.size();
  const bool is_box = count == 5, is_polygon = count >= 7 && count % 2 == 1;
  if (!is_box && !is_polygon) return builder.fault(LabelFaultKind::TokenCount, line, token_count_text(count));
  values.clear();
  for (const std::string_view token : tokens) {
    const std::optional<double> value = parse_number(token);
    if (!value) return builder.fault(LabelFaultKind::NotANumber, line, quote_word(token) + " is not a finite number");
    values.push_back(*value);
  }
  std::string fault = class_index_fault(values[0], tokens[0], class_count);
  if (!fault.empty()) return builder.fault(LabelFaultKind::ClassIndex, line, std::move(fault));
  const auto class_index = static_cast<int64_t>(values[0]);
  values.erase(values.begin());
  for (double& value : values) value = std::abs(value) < 1e30 ? static_cast<float>(value) : value;
  if (is_polygon) return builder.add_polygon(class_index, values, 0, 0, line);
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] >= 0 && values[i] <= 1) continue;
    return builder.fault(LabelFaultKind::OutsidePicture, line,
                         "coordinate " + quote_word(tokens[i + 1]) + " is outside 0..1");
  }
  builder.add({class_index,
               static_cast<float>(values[0]),
               static_cast<float>(values[1]),
               static_cast<float>(values[2]),
               static_cast<float>(values[3]),
               {}},
              line);
}

}  // namespace

bool is_error(LabelFaultKind kind) {
  switch (kind) {
    case LabelFaultKind::Duplicate:
    case LabelFaultKind::EmptyBox:
    case LabelFaultKind::ClippedPolygon:
    case LabelFaultKind::ClippedBox:
    case LabelFaultKind::Crowd:
    case LabelFaultKind::Segmentation:
    case LabelFaultKind::SizeDiffers:
    case LabelFaultKind::DuplicateId: return false;
    default: return true;
  }
}

bool drops_row(LabelFaultKind kind) {
  return is_error(kind) || kind == LabelFaultKind::Duplicate || kind == LabelFaultKind::EmptyBox ||
         kind == LabelFaultKind::Crowd;
}

std::string to_string(LabelFaultKind kind) {
  constexpr const char* kNames[kLabelFaultKinds] = {
      "unreadable",   "token_count",     "not_a_number", "class_index",   "outside_picture",  "duplicate",
      "empty_box",    "clipped_polygon", "clipped_box",  "crowd",         "unknown_category", "inverted_box",
      "segmentation", "size_differs",    "size_unknown", "unknown_image", "duplicate_image",  "duplicate_id"};
  const auto index = static_cast<size_t>(kind);
  return index < std::size(kNames) ? kNames[index] : "unknown";
}

const LabelFault* LabelFile::first_error() const {
  for (const LabelFault& fault : faults) {
    if (is_error(fault.kind)) return &fault;
  }
  return nullptr;
}

LabelFile parse_labels(const std::string& text, int64_t class_count, int64_t most_listed_faults) {
  std::string_view rest = text;
  if (rest.starts_with("\xFF\xFE") || rest.starts_with("\xFE\xFF")) {
    return unreadable_labels(1, "is UTF-16 text; save it as UTF-8");
  }
  if (rest.starts_with("\xEF\xBB\xBF")) rest.remove_prefix(3);  // some editors write a byte order mark
  LabelBuilder builder(most_listed_faults);
  std::vector<std::string_view> tokens;
  std::vector<double> values;
  for (int64_t line = 1; !rest.empty(); ++line) {
    const size_t end = std::min(rest.find_first_of("\r\n"), rest.size());
    split_tokens(rest.substr(0, end), tokens);
    rest.remove_prefix(end);
    rest.remove_prefix(rest.starts_with("\r\n") ? 2 : rest.empty() ? 0 : 1);
    if (!tokens.empty()) parse_row(tokens, class_count, line, values, builder);
  }
  return builder.finish();
}

LabelFile unreadable_labels(int64_t line, std::string text) {
  LabelBuilder builder(1);
  builder.fault(LabelFaultKind::Unreadable, line, std::move(text));
  return builder.finish();
}

std::string format_row(const LabelRow& row) {
  std::string text = std::to_string(row.class_index);
  const auto add = [&text](float value) {
    char digits[32];
    const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;  // the shortest that reads back equal
    text.append(" ").append(digits, end);
  };
  if (row.polygon.empty()) {
    for (const float value : {row.cx, row.cy, row.w, row.h}) add(value);
  } else {
    for (const float value : row.polygon) add(value);
  }
  return text;
}

CenterBox center_box(const LabelRow& row) { return {row.cx, row.cy, row.w, row.h}; }

Polygon polygon_points(const LabelRow& row) {
  Polygon points;
  points.reserve(row.polygon.size() / 2);
  for (size_t i = 0; i + 1 < row.polygon.size(); i += 2) points.push_back({row.polygon[i], row.polygon[i + 1]});
  return points;
}

}  // namespace yolo9
