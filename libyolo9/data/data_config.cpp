#include <yolo9/data/data_config.h>

#include <filesystem>

#include <yolo9/core/error.h>
#include <yolo9/core/log.h>
#include <yolo9/core/yaml.h>
#include <yolo9/data/sources.h>

namespace yolo9 {
namespace {

namespace fs = std::filesystem;

// The folders that an entry may be relative to, the likeliest first.
std::vector<fs::path> base_folders(const std::string& yaml_path, const std::string& path) {
  fs::path yaml_folder = fs::path(yaml_path).parent_path();
  if (yaml_folder.empty()) yaml_folder = ".";
  const fs::path root(path);
  if (root.is_absolute()) return {root};
  return {yaml_folder / root, fs::path(".") / root};
}

std::string resolve(const std::string& entry, const std::vector<fs::path>& bases) {
  std::error_code ignored;
  if (fs::path(entry).is_absolute()) return entry;
  for (const fs::path& base : bases) {
    if (fs::exists(base / entry, ignored)) return (base / entry).lexically_normal().string();
  }
  // Some exporters write ../train/images for a folder that stands beside the yaml.
  if (entry.starts_with("../")) {
    for (const fs::path& base : bases) {
      if (fs::exists(base / entry.substr(3), ignored)) return (base / entry.substr(3)).lexically_normal().string();
    }
  }
  return (bases.front() / entry).lexically_normal().string();
}

std::vector<std::string> read_entries(const Yaml& node, const std::vector<fs::path>& bases) {
  std::vector<std::string> entries;
  const auto add = [&](const Yaml& item) {
    if (item.is_map()) {
      CocoSource coco{resolve(item.at("annotations").as_string(), bases), ""};
      if (item.has("images")) coco.images = resolve(item.at("images").as_string(), bases);
      item.refuse_unread({"annotations", "images"});
      if (!as_coco_source(coco.json)) item.at("annotations").fail("expected a COCO file (.json)");
      entries.push_back(to_source(coco));
      return;
    }
    const std::string entry = item.as_string();
    if (entry.empty()) item.fail("expected a folder or a list file, found nothing");
    entries.push_back(resolve(entry, bases));
  };
  if (node.is_list()) {
    for (const Yaml& item : node.items()) add(item);
  } else if (!node.is_null()) {
    add(node);
  }
  return entries;
}

std::vector<std::string> read_names(const Yaml& node) {
  std::vector<std::string> names;
  if (node.is_list()) {
    for (const Yaml& item : node.items()) names.push_back(item.as_string());
  } else if (node.is_map()) {
    std::map<int64_t, std::string> by_index;
    for (const std::string& key : node.keys()) {
      const Yaml name = node.at(key);
      const bool is_index = !key.empty() && key.size() < 10 && key.find_first_not_of("0123456789") == std::string::npos;
      if (!is_index) name.fail("class index \"" + key + "\" is not a whole number", "number the names 0, 1, 2, ...");
      by_index[std::stoll(key)] = name.as_string();
    }
    for (const auto& [index, name] : by_index) {
      if (index != static_cast<int64_t>(names.size())) {
        node.fail("the name of class " + std::to_string(names.size()) + " is missing", "number the names 0, 1, 2, ...");
      }
      names.push_back(name);
    }
  } else {
    node.fail("expected a list or map of class names, found " + node.text());
  }
  if (names.empty()) node.fail("there are no class names");
  return names;
}

}  // namespace

DataConfig load_data_config(const std::string& yaml_path) {
  const Yaml yaml = Yaml::load(yaml_path, ErrorKind::Data);
  if (!yaml.is_map()) yaml.fail("expected the keys path, train, val and names");
  DataConfig config;
  config.yaml_path = yaml_path;
  if (yaml.has("path") && !yaml.at("path").is_null()) config.path = yaml.at("path").as_string();
  if (yaml.has("download") && yaml.at("download").is_scalar()) config.download = yaml.at("download").text();
  if (yaml.has("roboflow")) yaml.at("roboflow");  // a source note of an exporter
  const std::vector<fs::path> bases = base_folders(yaml_path, config.path);

  for (const char* key : {"train", "val", "test"}) {
    if (std::string(key) == "test" && !yaml.has(key)) continue;
    const Yaml node = yaml.at(key);
    config.places[key] = node.place();
    auto& entries = std::string(key) == "train" ? config.train : std::string(key) == "val" ? config.val : config.test;
    entries = read_entries(node, bases);
  }
  config.names = read_names(yaml.at("names"));
  if (yaml.has("nc")) {
    const Yaml nc = yaml.at("nc");
    if (nc.as_int() != config.class_count()) {
      nc.fail("nc is " + nc.text() + " but there are " + std::to_string(config.names.size()) + " names",
              "make them agree, or leave nc out");
    }
  }
  for (const auto& [key, place] : yaml.unread_keys()) {
    log_warn_once(place + key, place + ": the key \"" + key + "\" is not used");
  }
  return config;
}

const std::vector<std::string>& DataConfig::split(const std::string& name) const {
  TORCH_CHECK(name == "train" || name == "val" || name == "test", "[split] unknown split ", name);
  const auto& entries = name == "train" ? train : name == "val" ? val : test;
  const auto found = places.find(name);
  const std::string place = found == places.end() ? yaml_path : found->second;
  if (entries.empty()) throw Error(ErrorKind::Data, "no \"" + name + "\" pictures are given", place);
  for (const std::string& entry : entries) {
    std::error_code ignored;
    const std::optional<CocoSource> coco = as_coco_source(entry);
    std::string missing = fs::exists(coco ? coco->json : entry, ignored) ? "" : coco ? coco->json : entry;
    if (coco && !coco->images.empty() && !fs::exists(coco->images, ignored)) missing = coco->images;
    if (!missing.empty()) {
      throw Error(ErrorKind::Data, name + ": " + missing + " does not exist", place,
                  download.empty() ? "check path and " + name : "download the data first: " + download);
    }
  }
  return entries;
}

}  // namespace yolo9
