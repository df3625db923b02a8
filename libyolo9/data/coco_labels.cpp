#include <yolo9/data/coco_labels.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include <yolo9/core/error.h>
#include <yolo9/data/label_builder.h>
#include <yolo9/data/rle_mask.h>
#include <nlohmann/json.hpp>

namespace yolo9 {
namespace {

using Json = nlohmann::json;

constexpr double kFarthestPixel = 1e9;
// What a box or outline may hang over the picture's edge without being worth a note: rounding.
constexpr double kRoundingPixels = 1;
constexpr size_t kMostMaskParts = 64;

// Finite, and of a size that pixels can have.
bool is_usable_number(const Json& value) {
  return value.is_number() && std::isfinite(value.get<double>()) && std::abs(value.get<double>()) < kFarthestPixel;
}

std::optional<std::vector<double>> read_numbers(const Json& list) {
  std::vector<double> numbers;
  for (const Json& value : list) {
    if (!is_usable_number(value)) return std::nullopt;
    numbers.push_back(value.get<double>());
  }
  return numbers;
}

// An object's outline, in pixels of a picture of `size`; no size: of the annotation's picture.
struct Outline {
  std::vector<double> points;
  std::optional<Corners> box;  // instead, of a mask that is too involved to be traced
  PixelSize size;
};

std::optional<Outline> read_parts(const Json& segmentation) {
  const Json flat = segmentation[0].is_number() ? Json::array({segmentation}) : Json();
  std::vector<std::vector<double>> parts;
  for (const Json& part : flat.is_null() ? segmentation : flat) {
    if (!part.is_array()) return std::nullopt;
    std::optional<std::vector<double>> points = read_numbers(part);
    if (!points || points->size() < 6 || points->size() % 2 != 0) return std::nullopt;
    parts.push_back(std::move(*points));
  }
  return Outline{join_polygons(parts), std::nullopt, {}};
}

std::optional<Outline> read_mask(const Json& segmentation) {
  const auto size = segmentation.find("size"), counts = segmentation.find("counts");
  if (size == segmentation.end() || counts == segmentation.end() || !size->is_array() || size->size() != 2) {
    return std::nullopt;
  }
  if (!is_usable_number((*size)[0]) || !is_usable_number((*size)[1])) return std::nullopt;
  std::optional<std::vector<int64_t>> lengths;
  if (counts->is_string()) {
    lengths = decode_run_lengths(counts->get_ref<const std::string&>());
  } else if (counts->is_array()) {
    lengths.emplace();
    for (const Json& count : *counts) {
      if (!is_usable_number(count)) return std::nullopt;
      lengths->push_back(std::llround(count.get<double>()));
    }
  }
  if (!lengths) return std::nullopt;
  Outline outline;
  outline.size = {std::llround((*size)[0].get<double>()), std::llround((*size)[1].get<double>())};
  const std::optional<RunMask> mask = RunMask::make(outline.size.height, outline.size.width, *lengths);
  if (!mask || mask->area() == 0) return std::nullopt;
  if (const auto outlines = mask->outlines(kMostMaskParts)) {
    outline.points = join_polygons(*outlines);
  } else {
    outline.box = mask->box();
  }
  return outline;
}

// Corners in pixels; or a fault.
std::optional<Corners> read_box(const Json& annotation, int64_t line, LabelBuilder& builder) {
  const auto found = annotation.find("bbox");
  if (found == annotation.end() || !found->is_array() || found->size() != 4) {
    builder.fault(LabelFaultKind::TokenCount, line, "the annotation has no bbox of four numbers");
    return std::nullopt;
  }
  const std::optional<std::vector<double>> box = read_numbers(*found);
  if (!box) {
    builder.fault(LabelFaultKind::NotANumber, line,
                  "the bbox " + quote_word(found->dump(-1, ' ', true, Json::error_handler_t::replace)) +
                      " has a value that is no number of pixels");
    return std::nullopt;
  }
  const std::vector<double>& b = *box;
  return Corners{b[0], b[1], b[0] + b[2], b[1] + b[3]};
}

bool is_crowd(const Json& annotation) {
  const auto found = annotation.find("iscrowd");
  if (found == annotation.end()) return false;
  return (found->is_boolean() && found->get<bool>()) || (found->is_number() && found->get<double>() != 0);
}

Corners scale(const Corners& box, PixelSize size) {
  const auto width = static_cast<double>(size.width), height = static_cast<double>(size.height);
  return {box.x1 / width, box.y1 / height, box.x2 / width, box.y2 / height};
}

void add_outline(Outline& outline, int64_t class_index, PixelSize size, int64_t line, LabelBuilder& builder) {
  if (outline.size.height > 0) size = outline.size;
  const auto width = static_cast<double>(size.width), height = static_cast<double>(size.height);
  const double tolerance_x = kRoundingPixels / width, tolerance_y = kRoundingPixels / height;
  if (outline.box) return builder.add_box(class_index, scale(*outline.box, size), tolerance_x, tolerance_y, line);
  for (size_t i = 0; i < outline.points.size(); i += 2) {
    outline.points[i] /= width;
    outline.points[i + 1] /= height;
  }
  builder.add_polygon(class_index, outline.points, tolerance_x, tolerance_y, line);
}

std::string id_text(const Json& annotation) {
  const auto id = annotation.find("id");
  return id != annotation.end() && id->is_number_integer() ? std::to_string(id->get<int64_t>()) : "without id";
}

// `size`: 0 x 0 if nobody knows it.
void add_annotation(const Json& annotation, int64_t class_index, PixelSize size, int64_t line, LabelBuilder& builder) {
  const auto found = annotation.find("segmentation");
  const bool has_outline = found != annotation.end() && (found->is_array() || found->is_object()) && !found->empty();
  std::optional<Outline> outline;
  if (has_outline) outline = found->is_array() ? read_parts(*found) : read_mask(*found);
  std::optional<Corners> box;
  if (!outline || annotation.contains("bbox")) {
    box = read_box(annotation, line, builder);
    if (!box) return;
  }
  if (size.height == 0 && !(outline && outline->size.height > 0)) {
    builder.fault(LabelFaultKind::SizeUnknown, line, "the picture's size is not known");
    return;
  }
  if (outline) return add_outline(*outline, class_index, size, line, builder);
  if (has_outline) {
    builder.fault(LabelFaultKind::Segmentation, line, "the segmentation cannot be understood; the bbox is taken");
  }
  builder.add_box(class_index, scale(*box, size), kRoundingPixels / static_cast<double>(size.width),
                  kRoundingPixels / static_cast<double>(size.height), line);
}

}  // namespace

CocoLabels::CocoLabels(const std::string& path, int64_t most_listed_faults)
    : CocoLabels(ByteFile(path), path, most_listed_faults) {}

CocoLabels::CocoLabels(ByteFile file, std::string path, int64_t most_listed_faults)
    : file_(std::move(file)), path_(std::move(path)), most_listed_faults_(most_listed_faults) {
  index_ = index_coco(file_, path_, faults_, most_listed_faults);
  for (const CocoIndex::Category& category : index_.categories) category_.emplace(category.id, category.name);
}

void CocoLabels::set_names(const std::vector<std::string>& names) {
  class_of_.clear();
  for (const auto& [id, name] : category_) {
    const auto found = std::find(names.begin(), names.end(), name);
    class_of_[id] = found == names.end() ? -1 : found - names.begin();
  }
}

std::vector<std::string> CocoLabels::category_names() const {
  std::vector<std::string> names;
  for (const auto& [id, name] : std::map<int64_t, std::string>(category_.begin(), category_.end())) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

LabelFile CocoLabels::parse(int64_t index, PixelSize picture) const {
  LabelBuilder builder(most_listed_faults_);
  const auto [begin, end] =
      std::equal_range(index_.annotations.begin(), index_.annotations.end(), CocoIndex::Place{index, 0, 0, 0},
                       [](const CocoIndex::Place& a, const CocoIndex::Place& b) { return a.image_id < b.image_id; });
  if (begin == end) return builder.finish();
  const CocoImage& described = image(index);
  const PixelSize size = reference_size(described.size, picture, described.line, builder);
  for (auto place = begin; place != end; ++place) {
    JsonReader reader(file_, path_, place->begin, place->begin + place->length);
    const Json annotation = Json::parse(reader.begin(), JsonReader::end(), nullptr, false);
    if (!annotation.is_object()) return unreadable_labels(place->line, "the file has changed while it was read");
    builder.set_name("annotation " + id_text(annotation) + " of " + quote_word(described.file_name));
    if (is_crowd(annotation)) {
      builder.fault(LabelFaultKind::Crowd, place->line, "a crowd (iscrowd), which is no single object");
      continue;
    }
    const auto category = annotation.find("category_id");
    const bool is_number = category != annotation.end() && is_usable_number(*category);
    const int64_t id = is_number ? std::llround(category->get<double>()) : -1;
    const auto known = class_of_.find(id);
    if (!is_number || known == class_of_.end() || known->second < 0) {
      const auto named = category_.find(id);
      builder.fault(LabelFaultKind::UnknownCategory, place->line,
                    !is_number ? "the annotation has no category_id"
                               : "category " + std::to_string(id) +
                                     (named == category_.end()
                                          ? " is not listed in categories"
                                          : ", " + quote_word(named->second) + ", is none of the data set's classes"));
      continue;
    }
    add_annotation(annotation, known->second, size, place->line, builder);
  }
  return builder.finish();
}

}  // namespace yolo9
