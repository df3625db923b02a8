#include <yolo9/data/convert.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>

#include <yolo9/core/error.h>
#include <yolo9/core/yaml.h>
#include <yolo9/data/annotations.h>
#include <yolo9/data/coco_labels.h>
#include <yolo9/data/scan.h>
#include <yolo9/data/sources.h>
#include <yolo9/data/voc_labels.h>

namespace yolo9 {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMarker = ".converted-by-yolo9-data";

struct SplitSource {
  std::string name;
  std::vector<std::string> sources;  // see Annotations
};

[[noreturn]] void fail_writing(const std::string& path, const std::string& why) {
  throw Error(ErrorKind::Data, "cannot write: " + why, path);
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  stream << text;
  stream.close();
  if (!stream) fail_writing(path, "is the disk full, or the folder read-only?");
}

void make_folder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) fail_writing(path, error.message());
}

// Whether `inner` is `outer` or lies below it.
bool is_within(const std::string& inner, const std::string& outer) {
  const fs::path a = fs::weakly_canonical(inner), b = fs::weakly_canonical(outer);
  return std::mismatch(b.begin(), b.end(), a.begin(), a.end()).first == b.end();
}

// Removes only what an earlier conversion made.
void prepare_output(const ConvertOptions& options) {
  const std::string& output = options.output;
  std::error_code error;
  if (is_within(options.input, output) || (!options.images.empty() && is_within(options.images, output))) {
    throw Error(ErrorKind::Usage, "the output folder holds the input", output, "name another one");
  }
  if (fs::exists(output, error) && !fs::is_directory(output, error)) {
    throw Error(ErrorKind::Usage, "the output is not a folder", output);
  }
  make_folder(output);
  const bool ours = fs::exists(fs::path(output) / kMarker, error);
  if (!ours && !fs::is_empty(output, error)) {
    throw Error(ErrorKind::Usage, "the output folder holds something already", output, "name an empty or new one");
  }
  for (const char* part : {"images", "labels", "data.yaml"}) {
    fs::remove_all(fs::path(output) / part, error);  // symbolic links themselves, not what they point to
    if (error) fail_writing((fs::path(output) / part).string(), error.message());
  }
  write_text((fs::path(output) / kMarker).string(),
             "images, labels and data.yaml here were made by yolo9-data convert\n");
}

std::vector<std::string> list_files(const std::string& folder, const std::string& extension) {
  std::vector<std::string> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == extension) files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string split_of_name(const std::string& path) {
  const std::string stem = fs::path(path).stem().string();
  if (stem.find("val") != std::string::npos) return "val";
  if (stem.find("test") != std::string::npos) return "test";
  return "train";
}

std::vector<SplitSource> coco_splits(const ConvertOptions& options) {
  std::error_code ignored;
  if (!fs::is_directory(options.input, ignored)) {
    return {{"train", {to_source({options.input, options.images})}}};
  }
  std::map<std::string, std::vector<std::string>> by_name;
  for (const std::string& json : list_files(options.input, ".json")) {
    by_name[split_of_name(json)].push_back(to_source({json, options.images}));
  }
  if (by_name.empty()) throw Error(ErrorKind::Data, "there is no COCO file (.json) in the folder", options.input);
  std::vector<SplitSource> splits;
  for (const char* name : {"train", "val", "test"}) {
    if (by_name.contains(name)) splits.push_back({name, by_name[name]});
  }
  return splits;
}

std::vector<SplitSource> voc_splits(const ConvertOptions& options) {
  std::error_code ignored;
  if (!fs::is_directory(options.input, ignored)) throw Error(ErrorKind::Data, "is not a folder", options.input);
  fs::path root = fs::path(options.input).lexically_normal();
  if (!root.has_filename()) root = root.parent_path();
  if (root.filename() == "Annotations" || root.filename() == "annotations") root = root.parent_path();
  std::vector<SplitSource> splits;
  for (const char* name : {"train", "val", "test"}) {
    const fs::path list = root / "ImageSets/Main" / (std::string(name) + ".txt");
    if (options.images.empty() && fs::exists(list, ignored)) splits.push_back({name, {list.string()}});
  }
  if (!splits.empty()) return splits;
  std::string pictures = options.images;
  for (const char* folder : {"JPEGImages", "images", "."}) {
    if (pictures.empty() && fs::is_directory(root / folder, ignored)) {
      pictures = (root / folder).lexically_normal().string();
    }
  }
  return {{"train", {pictures}}};
}

// What is written, and where to.
class Converter {
 public:
  explicit Converter(const ConvertOptions& options) : options_(options) {}

  ConvertReport run() {
    const std::vector<SplitSource> splits =
        options_.from == ConvertFrom::Coco ? coco_splits(options_) : voc_splits(options_);
    report_.names = options_.names.empty() ? find_names(splits) : options_.names;
    if (report_.names.empty()) throw Error(ErrorKind::Data, "there are no classes", options_.input);
    // Everything that can be refused is read before anything is written.
    std::vector<std::unique_ptr<Annotations>> annotations;
    for (const SplitSource& split : splits) {
      annotations.push_back(std::make_unique<Annotations>(split.sources, report_.names));
    }
    prepare_output(options_);
    for (size_t i = 0; i < splits.size(); ++i) write_split(splits[i].name, *annotations[i]);
    write_yaml();
    return report_;
  }

 private:
  std::vector<std::string> find_names(const std::vector<SplitSource>& splits) const;
  LabelSource voc_source(const Annotations& annotations, int64_t index) const;
  void write_split(const std::string& name, const Annotations& annotations);
  std::string free_stem(const std::string& split, const std::string& picture);
  void place_picture(const std::string& from, const std::string& to) const;
  void count(const LabelFile& labels, const std::string& path);
  void write_yaml() const;

  const ConvertOptions& options_;
  ConvertReport report_;
  std::set<std::string> stems_;  // "split/stem", taken
};

// The label file of a picture, which is never a YOLO file here: those may be what an earlier conversion left.
LabelSource Converter::voc_source(const Annotations& annotations, int64_t index) const {
  const std::string& picture = annotations.picture(index);
  std::vector<std::string> candidates = voc_paths(picture);
  candidates.push_back((fs::path(options_.input) / fs::path(picture).stem()).string() + ".xml");
  LabelSource source;
  source.format = LabelFormat::Voc;
  for (const std::string& path : candidates) {
    std::error_code ignored;
    if (!fs::exists(path, ignored)) continue;
    source.path = path;
    source.exists = true;
    source.readable = read_label_file(path, source.text);
    break;
  }
  return source;
}

std::vector<std::string> Converter::find_names(const std::vector<SplitSource>& splits) const {
  std::vector<std::string> names;
  std::set<std::string> sorted;
  for (const SplitSource& split : splits) {
    if (options_.from == ConvertFrom::Voc) {
      const Annotations annotations(split.sources, {});
      for (int64_t i = 0; i < annotations.size(); ++i) {
        for (const std::string& name : voc_names(voc_source(annotations, i).text)) {
          if (!name.empty()) sorted.insert(name);
        }
      }
      continue;
    }
    for (const std::string& source : split.sources) {
      const std::optional<CocoSource> coco = as_coco_source(source);
      if (!coco) throw Error(ErrorKind::Data, "is not a COCO file (.json)", source);
      for (const std::string& name : CocoLabels(coco->json).category_names()) {
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
      }
    }
  }
  names.insert(names.end(), sorted.begin(), sorted.end());
  return names;
}

// Two pictures from different folders, or of different formats, must not share a label file.
std::string Converter::free_stem(const std::string& split, const std::string& picture) {
  const std::string stem = fs::path(picture).stem().string();
  std::string free = stem;
  for (int i = 2; !stems_.insert(split + "/" + free).second; ++i) free = stem + "_" + std::to_string(i);
  return free;
}

void Converter::place_picture(const std::string& from, const std::string& to) const {
  std::error_code error;
  if (options_.copy_pictures) {
    fs::copy_file(from, to, error);
  } else {
    fs::create_symlink(fs::absolute(from), to, error);
  }
  if (error) fail_writing(to, error.message());
}

void Converter::count(const LabelFile& labels, const std::string& path) {
  for (const LabelFault& fault : labels.faults) {
    const std::string line = fault.line > 0 ? ":" + std::to_string(fault.line) : "";
    report_.example.try_emplace(to_string(fault.kind), path + line + ": " + fault.text);
  }
  for (int kind = 0; kind < kLabelFaultKinds; ++kind) {
    const int64_t times = labels.counts[static_cast<size_t>(kind)];
    if (times > 0) report_.faults[to_string(static_cast<LabelFaultKind>(kind))] += times;
  }
}

void Converter::write_split(const std::string& name, const Annotations& annotations) {
  const std::string images = options_.output + "/images/" + name, labels = options_.output + "/labels/" + name;
  make_folder(images);
  make_folder(labels);
  ConvertReport::Split split{name, 0, 0};
  for (const SourceFaults& source : annotations.faults()) count(source.labels, source.path);
  for (int64_t i = 0; i < annotations.size(); ++i) {
    const std::string& picture = annotations.picture(i);
    const ImageHeader header = probe_image(picture);
    if (!header.ok) {
      ++report_.missing_pictures;
      report_.example.try_emplace("picture", picture + ": " + header.fault);
      continue;
    }
    const LabelSource source = options_.from == ConvertFrom::Voc ? voc_source(annotations, i) : annotations.source(i);
    LabelFile file;
    if (source.exists) file = annotations.parse(i, source, {header.height, header.width});
    count(file, source.path);
    const std::string stem = free_stem(name, picture);
    place_picture(picture, images + "/" + stem + fs::path(picture).extension().string());
    std::string text;
    for (const LabelRow& row : file.rows) text += format_row(row) + "\n";
    write_text(labels + "/" + stem + ".txt", text);
    ++split.pictures;
    split.objects += static_cast<int64_t>(file.rows.size());
  }
  report_.splits.push_back(std::move(split));
}

void Converter::write_yaml() const {
  if (std::all_of(report_.splits.begin(), report_.splits.end(), [](const auto& s) { return s.pictures == 0; })) {
    const auto example = report_.example.find("picture");
    throw Error(ErrorKind::Data,
                "none of the pictures can be used" +
                    (example == report_.example.end() ? "" : "; the first: " + example->second),
                options_.input, "say where they are with --images");
  }
  const auto has = [this](const std::string& name) {
    return std::any_of(report_.splits.begin(), report_.splits.end(), [&](const auto& s) { return s.name == name; });
  };
  const std::string first = report_.splits.front().name;
  std::string yaml = "# Made by yolo9-data convert from " + yaml_quote(options_.input) + "\npath: .\n";
  if (!has("train") || !has("val")) {
    yaml += "# There is one split only: training and validation pictures are the same.\n";
  }
  yaml += "train: images/" + std::string(has("train") ? "train" : first) + "\n";
  yaml += "val: images/" + std::string(has("val") ? "val" : first) + "\n";
  if (has("test")) yaml += "test: images/test\n";
  yaml += "names:\n";
  for (size_t i = 0; i < report_.names.size(); ++i) {
    yaml += "  " + std::to_string(i) + ": " + yaml_quote(report_.names[i]) + "\n";
  }
  write_text(options_.output + "/data.yaml", yaml);
}

}  // namespace

ConvertReport convert_data(const ConvertOptions& options) { return Converter(options).run(); }

}  // namespace yolo9
