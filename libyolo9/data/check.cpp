#include <yolo9/data/check.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <thread>

#include <yolo9/core/cpu.h>
#include <yolo9/core/error.h>
#include <yolo9/data/image.h>
#include <yolo9/data/scan.h>
#include <yolo9/data/sources.h>
#include <nlohmann/json.hpp>

namespace yolo9 {
namespace {

void note_label_faults(const LabelFile& labels, const std::string& path, const std::string& split,
                       std::vector<DataFinding>& findings) {
  for (const LabelFault& fault : labels.faults) {
    findings.push_back({is_error(fault.kind), split, to_string(fault.kind), path, fault.line, fault.text});
  }
}

bool is_coco(const std::string& label_path) { return as_coco_source(label_path).has_value(); }

// Findings about one picture; its objects are counted in `report`. `owners`: label file -> picture, to find two
// pictures that share one.
void check_picture(const ScannedImage& image, SplitReport& report, std::map<std::string, std::string>& owners,
                   std::vector<DataFinding>& findings) {
  const std::string& split = report.name;
  if (!image.fault.empty()) findings.push_back({true, split, "unusable_picture", image.path, 0, image.fault});
  if (image.is_misnamed()) {
    findings.push_back({false, split, "misnamed_picture", image.path, 0,
                        "is a " + to_string(image.format) + " picture, whatever its name says"});
  }
  std::string owner;
  if (image.has_label_file && !is_coco(image.label_path)) {
    const auto [place, is_new] = owners.emplace(image.label_path, image.path);
    if (!is_new) owner = place->second;
  }
  if (!owner.empty()) {
    findings.push_back({false, split, "shared_label_file", image.path, 0,
                        "has the same label file as " + owner + ": " + image.label_path});
  } else {
    note_label_faults(image.labels, image.label_path, split, findings);
  }
  if (!image.has_label_file) {
    ++report.unlabelled;
    findings.push_back({false, split, "no_label_file", image.path, 0, "has no label file " + image.label_path});
  }
  report.empty += image.is_empty() ? 1 : 0;
  for (const LabelRow& row : image.labels.rows) {
    ++report.objects;
    report.polygons += row.polygon.empty() ? 0 : 1;
    ++report.class_counts.at(static_cast<size_t>(row.class_index));
  }
}

// Those of the pictures whose data is damaged behind a good header: found only by reading all of it, on all cores.
void check_decoding(const std::vector<std::string>& paths, const std::string& split,
                    std::vector<DataFinding>& findings) {
  use_one_opencv_thread();
  std::vector<std::string> faults(paths.size());
  std::atomic<size_t> next{0};
  std::vector<std::thread> threads;
  for (int64_t i = 0; i < usable_cores(); ++i) {
    threads.emplace_back([&] {
      for (size_t at = next++; at < paths.size(); at = next++) faults[at] = decode_fault(paths[at]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < paths.size(); ++i) {
    if (!faults[i].empty()) findings.push_back({true, split, "unusable_picture", paths[i], 0, faults[i]});
  }
}

SplitReport check_split(const DataConfig& config, const std::string& split, std::vector<DataFinding>& findings) {
  SplitReport report;
  report.name = split;
  report.class_counts.resize(config.names.size(), 0);
  std::unique_ptr<Annotations> annotations;
  try {
    annotations = std::make_unique<Annotations>(config.split(split), config.names, kListAllFaults);
  } catch (const Error& error) {
    findings.push_back({true, split, "no_pictures", config.places.at(split), 0, error.what()});
    return report;
  }
  report.pictures = annotations->size();
  for (const SourceFaults& source : annotations->faults()) {
    note_label_faults(source.labels, source.path, split, findings);
  }
  std::map<std::string, std::string> owners;
  std::vector<std::string> decodable;
  for_each_scanned(*annotations, [&](int64_t, ScannedImage&& image) {
    check_picture(image, report, owners, findings);
    if (image.fault.empty()) decodable.push_back(std::move(image.path));
  });
  check_decoding(decodable, split, findings);
  return report;
}

nlohmann::json to_json_value(const SplitReport& split, const std::vector<std::string>& names) {
  nlohmann::json classes = nlohmann::json::array();
  for (size_t i = 0; i < names.size(); ++i) {
    classes.push_back({{"index", i}, {"name", names[i]}, {"objects", split.class_counts[i]}});
  }
  return {{"name", split.name},           {"pictures", split.pictures}, {"unlabelled", split.unlabelled},
          {"empty", split.empty},         {"objects", split.objects},   {"polygons", split.polygons},
          {"classes", std::move(classes)}};
}

}  // namespace

int64_t DataReport::faults() const {
  return std::count_if(findings.begin(), findings.end(), [](const DataFinding& f) { return f.is_fault; });
}

int64_t DataReport::notes() const { return static_cast<int64_t>(findings.size()) - faults(); }

DataReport check_data(const DataConfig& config) {
  DataReport report;
  report.names = config.names;
  for (const char* split : {"train", "val", "test"}) {
    const bool given = std::string(split) != "test" || !config.test.empty();
    if (given) report.splits.push_back(check_split(config, split, report.findings));
  }
  const SplitReport& train = report.splits.front();
  for (size_t i = 0; i < config.names.size() && train.objects > 0; ++i) {
    if (train.class_counts[i] > 0) continue;
    report.findings.push_back({false, "train", "unused_class", config.places.at("train"), 0,
                               "class " + std::to_string(i) + " (" + config.names[i] + ") has no training objects"});
  }
  return report;
}

std::vector<KindCount> DataReport::kinds() const {
  std::vector<KindCount> kinds;
  for (const DataFinding& finding : findings) {
    const auto same = [&](const KindCount& k) { return k.kind == finding.kind && k.is_fault == finding.is_fault; };
    const auto found = std::find_if(kinds.begin(), kinds.end(), same);
    if (found == kinds.end()) {
      kinds.push_back({finding.kind, finding.is_fault, 1});
    } else {
      ++found->count;
    }
  }
  return kinds;
}

std::string to_string(const DataFinding& finding) {
  const std::string line = finding.line > 0 ? ":" + std::to_string(finding.line) : "";
  return finding.path + line + (finding.is_fault ? ": fault: " : ": note: ") + finding.text;
}

std::string to_json(const DataReport& report) {
  nlohmann::json json{{"faults", report.faults()},
                      {"notes", report.notes()},
                      {"splits", nlohmann::json::array()},
                      {"kinds", nlohmann::json::object()},
                      {"findings", nlohmann::json::array()}};
  for (const SplitReport& split : report.splits) json["splits"].push_back(to_json_value(split, report.names));
  for (const KindCount& k : report.kinds()) json["kinds"][k.kind] = k.count;
  for (const DataFinding& f : report.findings) {
    json["findings"].push_back({{"severity", f.is_fault ? "fault" : "note"},
                                {"split", f.split},
                                {"kind", f.kind},
                                {"path", f.path},
                                {"line", f.line},
                                {"text", f.text}});
  }
  // File names need not be UTF-8.
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace yolo9
