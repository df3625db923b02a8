#include <yolo9/data/check.h>

#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>
#include <yolo9/core/error.h>
#include <yolo9/data/scan.h>
#include <yolo9/data/sources.h>

namespace yolo9 {
namespace {

void note_label_faults(const ScannedImage& image, const std::string& split, std::vector<DataFinding>& findings) {
  for (const LabelFault& fault : image.labels.faults) {
    findings.push_back(
        {is_error(fault.kind), split, to_string(fault.kind), image.label_path, fault.line, fault.text});
  }
}

SplitReport check_split(const DataConfig& config, const std::string& split, std::vector<DataFinding>& findings) {
  SplitReport report;
  report.name = split;
  report.class_counts.resize(config.names.size(), 0);
  std::vector<std::string> paths;
  try {
    paths = find_images(config.split(split));
  } catch (const Error& error) {
    findings.push_back({true, split, "no_pictures", config.places.at(split), 0, error.what()});
    return report;
  }
  report.pictures = static_cast<int64_t>(paths.size());
  std::map<std::string, std::string> owners;  // label file -> picture, to find two pictures that share one
  for (const ScannedImage& image : scan_images(paths, config.class_count())) {
    if (!image.fault.empty()) findings.push_back({true, split, "unusable_picture", image.path, 0, image.fault});
    const auto [owner, is_new] = owners.emplace(image.label_path, image.path);
    if (!is_new) {
      findings.push_back({false, split, "shared_label_file", image.path, 0,
                          "has the same label file as " + owner->second + ": " + image.label_path});
    } else {
      note_label_faults(image, split, findings);
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
  return report;
}

nlohmann::json to_json_value(const SplitReport& split, const std::vector<std::string>& names) {
  nlohmann::json classes = nlohmann::json::array();
  for (size_t i = 0; i < names.size(); ++i) {
    classes.push_back({{"index", i}, {"name", names[i]}, {"objects", split.class_counts[i]}});
  }
  return {{"name", split.name},       {"pictures", split.pictures}, {"unlabelled", split.unlabelled},
          {"empty", split.empty},     {"objects", split.objects},   {"polygons", split.polygons},
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

std::string to_string(const DataFinding& finding) {
  const std::string line = finding.line > 0 ? ":" + std::to_string(finding.line) : "";
  return finding.path + line + (finding.is_fault ? ": fault: " : ": note: ") + finding.text;
}

std::string to_json(const DataReport& report) {
  nlohmann::json json{{"faults", report.faults()}, {"notes", report.notes()}, {"splits", nlohmann::json::array()},
                      {"findings", nlohmann::json::array()}};
  for (const SplitReport& split : report.splits) json["splits"].push_back(to_json_value(split, report.names));
  for (const DataFinding& f : report.findings) {
    json["findings"].push_back({{"severity", f.is_fault ? "fault" : "note"}, {"split", f.split}, {"kind", f.kind},
                                {"path", f.path}, {"line", f.line}, {"text", f.text}});
  }
  // File names need not be UTF-8.
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace yolo9
