// The first pass over a COCO file: nlohmann's events, so that nothing of it need be in memory.
#include <yolo9/data/coco_labels.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include <yolo9/core/digest.h>
#include <yolo9/core/error.h>
#include <yolo9/data/label_builder.h>
#include <nlohmann/json.hpp>

namespace yolo9 {
namespace {

using Json = nlohmann::json;

enum class Section { None, Images, Annotations, Categories };

// An entry of one of the three lists, as far as it matters here.
struct Entry {
  std::optional<int64_t> id, image_id;
  std::optional<std::string> name;
  int64_t width = 0, height = 0;
  uint64_t begin = 0;
  int64_t line = 0;
};

class Indexer {
 public:
  Indexer(JsonReader& reader, const std::string& path, CocoIndex& index, LabelBuilder& builder)
      : reader_(reader), path_(path), index_(index), builder_(builder) {}

  bool null() { return on_scalar(); }
  bool boolean(bool) { return on_scalar(); }
  bool number_integer(int64_t value) { return on_number(static_cast<double>(value), value); }
  bool number_unsigned(uint64_t value) {
    return on_number(static_cast<double>(value), value <= INT64_MAX ? static_cast<int64_t>(value) : -1);
  }
  bool number_float(double value, const std::string&) {
    return on_number(value, std::abs(value) < 1e15 ? static_cast<int64_t>(value) : -1);
  }
  bool string(std::string& value) {
    if (depth_ == kEntryDepth && (field_ == "file_name" || field_ == "name")) entry_.name = std::move(value);
    return on_scalar();
  }
  bool binary(Json::binary_t&) { return on_scalar(); }
  bool key(std::string& value) {
    if (depth_ == 1) {
      section_ = value == "images"        ? Section::Images
                 : value == "annotations" ? Section::Annotations
                 : value == "categories"  ? Section::Categories
                                          : Section::None;
      section_name_ = section_ == Section::None ? "" : value;
    } else if (depth_ == kEntryDepth) {
      field_ = std::move(value);
    }
    return true;
  }
  bool start_object(size_t) {
    if (depth_ == 1 && section_ != Section::None) fail("\"" + section_name_ + "\" is not a list");
    deepen();
    if (depth_ == kEntryDepth && section_ != Section::None) {
      entry_ = Entry{};
      entry_.begin = reader_.position() - 1;
      entry_.line = reader_.line();
      in_entry_ = true;
    }
    field_.clear();
    return true;
  }
  bool end_object() {
    if (depth_ == kEntryDepth && in_entry_) finish_entry();
    if (depth_ == kEntryDepth) in_entry_ = false;
    --depth_;
    return true;
  }
  bool start_array(size_t) {
    if (depth_ == 0) fail("is a list, not a COCO data set; predictions alone have no pictures");
    if (depth_ == 1 && section_ == Section::Images) has_images_ = true;
    if (depth_ == kEntryDepth - 1) note_stray();
    deepen();
    return true;
  }
  bool end_array() {
    --depth_;
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& error) {
    constexpr size_t kLongest = 160;
    std::string text = error.what();
    const size_t at = text.find("syntax error");
    text = text.substr(at == std::string::npos ? text.find("] ") + 2 : at, kLongest);
    std::replace_if(
        text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, '?');
    fail("is not JSON: " + text);
  }
  void finish() const {
    if (!has_images_) throw Error(ErrorKind::Data, "is not a COCO data set: there is no list \"images\"", path_);
  }

 private:
  static constexpr int64_t kEntryDepth = 3;

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorKind::Data, what, path_ + ":" + std::to_string(reader_.line()));
  }
  void deepen() {
    if (++depth_ > kDeepestJson) fail("is nested more than " + std::to_string(kDeepestJson) + " deep");
  }
  bool on_scalar() {
    if (depth_ == 0) fail("is not a COCO data set");
    if (depth_ == 1 && section_ != Section::None) fail("\"" + section_name_ + "\" is not a list");
    if (depth_ == kEntryDepth - 1) note_stray();
    return true;
  }
  // What stands in one of the lists without being an entry.
  void note_stray() {
    if (section_ == Section::None) return;
    builder_.fault(LabelFaultKind::TokenCount, reader_.line(), "what is listed in " + section_name_ + " is no object");
  }
  bool on_number(double value, int64_t whole) {
    if (depth_ == kEntryDepth && in_entry_) {
      const bool is_whole = static_cast<double>(whole) == value;
      if (field_ == "id" && is_whole) entry_.id = whole;
      if (field_ == "image_id" && is_whole) entry_.image_id = whole;
      if (field_ == "width" || field_ == "height") {
        constexpr double kLongestSide = 1e9;
        const bool is_side = value > 0 && value < kLongestSide;
        (field_ == "width" ? entry_.width : entry_.height) = is_side ? std::llround(value) : 0;
      }
    }
    return on_scalar();
  }
  void finish_entry() {
    if (section_ == Section::Images) {
      finish_image();
    } else if (section_ == Section::Annotations) {
      finish_annotation();
    } else if (entry_.id && entry_.name) {
      index_.categories.push_back({*entry_.id, std::move(*entry_.name)});
    } else {
      builder_.fault(LabelFaultKind::UnknownCategory, entry_.line, "a category without id or name");
    }
  }
  void finish_image() {
    if (!entry_.id || !entry_.name || entry_.name->empty()) {
      builder_.fault(LabelFaultKind::UnknownImage, entry_.line, "an image without id or file_name");
      return;
    }
    index_.images.push_back({std::move(*entry_.name), {entry_.height, entry_.width}, entry_.line});
    index_.image_ids.push_back(*entry_.id);
  }
  void finish_annotation() {
    const uint64_t length = reader_.position() - entry_.begin;
    if (!entry_.image_id) {
      builder_.fault(LabelFaultKind::UnknownImage, entry_.line, "an annotation without image_id");
    } else if (length > kLargestAnnotation) {
      builder_.fault(LabelFaultKind::TokenCount, entry_.line, "an annotation larger than 64 MiB");
    } else {
      const auto line = static_cast<uint32_t>(std::min<int64_t>(entry_.line, UINT32_MAX));
      index_.annotations.push_back({*entry_.image_id, entry_.begin, static_cast<uint32_t>(length), line});
      if (entry_.id) ids_.push_back({*entry_.id, line});
    }
  }

 public:
  struct Id {
    int64_t id;
    uint32_t line;
  };
  std::vector<Id> ids_;  // of annotations

 private:
  JsonReader& reader_;
  const std::string& path_;
  CocoIndex& index_;
  LabelBuilder& builder_;
  Entry entry_;
  int64_t depth_ = 0;
  Section section_ = Section::None;
  std::string section_name_, field_;
  bool in_entry_ = false, has_images_ = false;
};

void note_twin_ids(std::vector<Indexer::Id>& ids, LabelBuilder& builder) {
  std::stable_sort(ids.begin(), ids.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  for (size_t i = 1; i < ids.size(); ++i) {
    if (ids[i].id != ids[i - 1].id) continue;
    builder.fault(LabelFaultKind::DuplicateId, ids[i].line,
                  "annotation " + std::to_string(ids[i].id) + " is there twice, first in line " +
                      std::to_string(ids[i - 1].line) + "; both count");
  }
}

// Keeps the first of the images with one id, and of the annotations those whose image is there.
void drop_strays(CocoIndex& index, LabelBuilder& builder) {
  std::unordered_map<int64_t, size_t> known;
  std::vector<CocoImage> images;
  std::vector<int64_t> ids;
  for (size_t i = 0; i < index.images.size(); ++i) {
    CocoImage& image = index.images[i];
    const auto [found, is_new] = known.emplace(index.image_ids[i], images.size());
    if (is_new) {
      ids.push_back(index.image_ids[i]);
      images.push_back(std::move(image));
    } else {
      builder.fault(LabelFaultKind::DuplicateImage, image.line,
                    "image " + std::to_string(index.image_ids[i]) + " is there twice, first in line " +
                        std::to_string(images[found->second].line) + ", which counts");
    }
  }
  index.images = std::move(images);
  index.image_ids = std::move(ids);
  std::erase_if(index.annotations, [&](CocoIndex::Place& place) {
    const auto found = known.find(place.image_id);
    if (found == known.end()) {
      builder.fault(LabelFaultKind::UnknownImage, place.line,
                    "an annotation of image " + std::to_string(place.image_id) + ", which is not listed");
      return true;
    }
    place.image_id = static_cast<int64_t>(found->second);  // from here on the image's place in the list
    return false;
  });
}

uint64_t hash_of(const ByteFile& file) {
  Digest digest;
  std::string block(size_t{1} << 20, '\0');
  uint64_t at = 0;
  while (const size_t got = file.read(at, block.data(), block.size())) {
    digest.add(block.data(), got);
    at += got;
  }
  return digest.value();
}

}  // namespace

CocoIndex index_coco(const ByteFile& file, const std::string& path, LabelFile& faults, int64_t most_listed_faults) {
  CocoIndex index;
  LabelBuilder builder(most_listed_faults);
  JsonReader reader(file, path, 0, file.size());
  Indexer indexer(reader, path, index, builder);
  Json::sax_parse(reader.begin(), JsonReader::end(), &indexer);
  indexer.finish();
  note_twin_ids(indexer.ids_, builder);
  drop_strays(index, builder);
  std::stable_sort(index.annotations.begin(), index.annotations.end(),
                   [](const auto& a, const auto& b) { return a.image_id < b.image_id; });
  index.hash = hash_of(file);
  faults = builder.finish();
  return index;
}

}  // namespace yolo9
