// Everything that is wrong, or odd, in a data set, with file and line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <yolo9/data/data_config.h>

namespace yolo9 {

struct DataFinding {
  bool is_fault = true;  // false: a note
  std::string split;
  std::string kind;  // unusable_picture, misnamed_picture, those of LabelFaultKind, no_label_file, unused_class, ...
  std::string path;
  int64_t line = 0;  // 0: the whole file
  std::string text;
};

struct SplitReport {
  std::string name;
  int64_t pictures = 0, unlabelled = 0, empty = 0, objects = 0, polygons = 0;
  std::vector<int64_t> class_counts;
};

struct KindCount {
  std::string kind;
  bool is_fault = true;
  int64_t count = 0;
};

struct DataReport {
  std::vector<SplitReport> splits;
  std::vector<std::string> names;
  std::vector<DataFinding> findings;

  int64_t faults() const;
  int64_t notes() const;
  std::vector<KindCount> kinds() const;  // of findings, in the order in which they came up
};

// Looks at every file of every split that is given, and decodes every picture. A split that does not exist is a fault,
// not an exception.
DataReport check_data(const DataConfig& config);
// "path:line: fault: text" (or note).
std::string to_string(const DataFinding& finding);
std::string to_json(const DataReport& report);

}  // namespace yolo9
