// Reading and writing COCO's JSON files. A streaming reader: a document tree of half a million detections would take
// more memory than the evaluation itself.
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include <nlohmann/json.hpp>

#include <yolo9/core/error.h>
#include <yolo9/eval/coco.h>

namespace yolo9 {

namespace {

// One object of a list: only the fields that matter here.
struct Record {
  std::optional<double> id, image_id, category_id, area, crowd, score;
  std::optional<std::string> name;
  std::vector<double> box;
  bool has_box = false;

  std::optional<double>* number(const std::string& key) {
    if (key == "id") return &id;
    if (key == "image_id") return &image_id;
    if (key == "category_id") return &category_id;
    if (key == "area") return &area;
    if (key == "iscrowd") return &crowd;
    if (key == "score") return &score;
    return nullptr;
  }
};

// Calls on_record(section, record, index) for each object of the root list (section "") or of the lists that are
// values of the root object (section: "images", "categories" or "annotations").
class RecordReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  using OnRecord = std::function<void(const std::string& section, const Record& record, size_t index)>;
  RecordReader(std::string path, OnRecord on_record) : path_(std::move(path)), on_record_(std::move(on_record)) {}

  std::string root;                   // "object", "array" or "" for anything else
  std::set<std::string> sections;     // lists found in a root object

  bool null() override { return skip(); }
  bool boolean(bool value) override { return take(value ? 1 : 0); }
  bool number_integer(number_integer_t value) override { return take(static_cast<double>(value)); }
  bool number_unsigned(number_unsigned_t value) override { return take(static_cast<double>(value)); }
  bool number_float(number_float_t value, const string_t&) override { return take(value); }
  bool binary(binary_t&) override { return skip(); }

  bool string(string_t& value) override {
    if (in_record() && key_ == "name") record_.name = value;
    if (in_record() && record_.number(key_)) fail("\"" + key_ + "\" must be a number");
    return skip();
  }

  bool start_object(size_t) override {
    if (depth_ == 0) root = "object";
    ++depth_;
    if (depth_ == record_depth()) record_ = Record();
    return true;
  }
  bool end_object() override {
    if (in_record()) on_record_(section_, record_, index_++);
    --depth_;
    return true;
  }
  bool start_array(size_t) override {
    if (depth_ == 0) root = "array";
    if (depth_ == 1 && root == "object") {
      sections.insert(key_);
      index_ = 0;
      if (key_ == "images" || key_ == "categories" || key_ == "annotations") section_ = key_;
    } else {
      refuse_outside_record();
    }
    if (in_record() && key_ == "bbox") record_.has_box = true;
    ++depth_;
    return true;
  }
  bool end_array() override {
    --depth_;
    if (depth_ == 1 && root == "object") section_.clear();
    return true;
  }
  bool key(string_t& value) override {
    if (depth_ == record_depth() || depth_ == 1) key_ = value;
    return true;
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    std::string text = error.what();
    if (const size_t colon = text.rfind("error.", 0) == 0 ? text.find("] ") : std::string::npos;
        colon != std::string::npos) {
      text = text.substr(colon + 2);
    }
    for (char& c : text) c = c == '\n' ? ' ' : c;
    throw Error(ErrorKind::Data, "not valid JSON near byte " + std::to_string(position) + ": " + text.substr(0, 160),
                path_);
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorKind::Data, (section_.empty() ? "entry " : section_ + " entry ") + std::to_string(index_) +
                                     ": " + what, path_);
  }

 private:
  int record_depth() const { return root == "array" ? 2 : (section_.empty() ? -1 : 3); }
  bool in_record() const { return depth_ == record_depth(); }
  void refuse_outside_record() const {
    if (depth_ > 0 && depth_ == record_depth() - 1) fail("expected an object");
  }
  bool skip() const {
    refuse_outside_record();
    return true;
  }
  bool take(double value) {
    refuse_outside_record();
    if (in_record()) {
      if (auto* field = record_.number(key_)) *field = value;
    } else if (depth_ == record_depth() + 1 && record_.has_box && key_ == "bbox") {
      record_.box.push_back(value);
    }
    return true;
  }

  std::string path_, section_, key_;
  OnRecord on_record_;
  Record record_;
  size_t index_ = 0;
  int depth_ = 0;
};

void read_file(const std::string& path, RecordReader& reader) {
  std::ifstream file(path, std::ios::binary);
  if (!file || std::filesystem::is_directory(path)) throw Error(ErrorKind::Data, "cannot read the file", path);
  nlohmann::json::sax_parse(file, &reader);
}

int64_t whole(const RecordReader& reader, const std::optional<double>& value, const std::string& key) {
  if (!value) reader.fail("\"" + key + "\" is missing");
  if (std::abs(*value) > 9e15 || *value != std::floor(*value)) reader.fail("\"" + key + "\" is not a whole number");
  return static_cast<int64_t>(*value);
}

CocoBox box_of(const RecordReader& reader, const Record& record) {
  if (!record.has_box || record.box.size() != 4) reader.fail("\"bbox\" must be a list of four numbers");
  for (const double v : record.box) {
    if (!std::isfinite(v)) reader.fail("\"bbox\" holds a number that is not finite");
  }
  if (record.box[2] < 0 || record.box[3] < 0) reader.fail("\"bbox\" has a negative width or height");
  return {record.box[0], record.box[1], record.box[2], record.box[3]};
}

CocoAnnotation annotation_of(const RecordReader& reader, const Record& record, size_t index) {
  CocoAnnotation annotation;
  annotation.id = record.id ? whole(reader, record.id, "id") : static_cast<int64_t>(index) + 1;
  annotation.image_id = whole(reader, record.image_id, "image_id");
  annotation.category_id = whole(reader, record.category_id, "category_id");
  annotation.box = box_of(reader, record);
  annotation.area = record.area.value_or(annotation.box.width * annotation.box.height);
  annotation.crowd = record.crowd.value_or(0) != 0;
  return annotation;
}

}  // namespace

CocoTruth read_coco_truth(const std::string& path) {
  CocoTruth truth;
  RecordReader* active = nullptr;
  RecordReader reader(path, [&](const std::string& section, const Record& record, size_t index) {
    if (section == "images") {
      truth.images.push_back(whole(*active, record.id, "id"));
    } else if (section == "categories") {
      truth.categories.emplace_back(whole(*active, record.id, "id"), record.name.value_or(""));
    } else if (section == "annotations") {
      truth.annotations.push_back(annotation_of(*active, record, index));
    }
  });
  active = &reader;
  read_file(path, reader);
  for (const char* section : {"images", "categories", "annotations"}) {
    if (reader.root != "object" || !reader.sections.count(section)) {
      throw Error(ErrorKind::Data, std::string("no list \"") + section + "\"", path,
                  "annotations are a JSON object with \"images\", \"categories\" and \"annotations\"");
    }
  }
  return truth;
}

std::vector<CocoDetection> read_coco_detections(const std::string& path) {
  std::vector<CocoDetection> detections;
  RecordReader* active = nullptr;
  RecordReader reader(path, [&](const std::string& section, const Record& record, size_t) {
    if (!section.empty()) return;
    CocoDetection detection;
    detection.image_id = whole(*active, record.image_id, "image_id");
    detection.category_id = whole(*active, record.category_id, "category_id");
    detection.box = box_of(*active, record);
    if (!record.score) active->fail("\"score\" is missing");
    if (!std::isfinite(*record.score)) active->fail("\"score\" is not finite");
    detection.score = *record.score;
    detections.push_back(detection);
  });
  active = &reader;
  read_file(path, reader);
  if (reader.root != "array") {
    throw Error(ErrorKind::Data, "predictions are a JSON list of objects with image_id, category_id, bbox and score",
                path);
  }
  return detections;
}

void write_coco_detections(const std::string& path, const std::vector<CocoDetection>& detections,
                           const std::vector<std::pair<int64_t, std::string>>& image_names) {
  const std::map<int64_t, std::string> names(image_names.begin(), image_names.end());
  const std::string temporary = path + ".part";
  std::ofstream file(temporary);
  file << "[";
  bool first = true;
  for (const CocoDetection& d : detections) {
    const auto name = names.find(d.image_id);
    char line[256];
    std::snprintf(line, sizeof line, "\"category_id\":%lld,\"bbox\":[%.3f,%.3f,%.3f,%.3f],\"score\":%.5f}",
                  static_cast<long long>(d.category_id), d.box.x, d.box.y, d.box.width, d.box.height, d.score);
    file << (first ? "\n" : ",\n") << "{\"image_id\":"
         << (name == names.end() ? std::to_string(d.image_id) : nlohmann::json(name->second).dump()) << "," << line;
    first = false;
  }
  file << "\n]\n";
  file.close();
  std::error_code code;
  if (file) std::filesystem::rename(temporary, path, code);
  if (!file || code) throw Error(ErrorKind::Usage, "cannot write predictions", path, "check space and permissions");
}

}  // namespace yolo9
