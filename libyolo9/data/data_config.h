// data.yaml: where the pictures are and what the classes are called.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace yolo9 {

struct DataConfig {
  std::string yaml_path;
  std::string path;                           // the folder that entries are relative to, as written
  std::vector<std::string> train, val, test;  // sources, see Annotations, resolved; test may be empty
  std::vector<std::string> names;

  int64_t class_count() const { return static_cast<int64_t>(names.size()); }
  // "train", "val" or "test". Throws Error(Data), with the yaml's line, if the split is not given or not there.
  const std::vector<std::string>& split(const std::string& name) const;

  std::map<std::string, std::string> places;  // "file:line" of each split
  std::string download;                       // the yaml's own hint, shown in messages and never run
};

// An entry is a folder, a list file (.txt), a picture, a COCO file (.json), or a map of a COCO file and the folder of
// its pictures: {annotations: x.json, images: folder}; or a list of those. Entries are looked for below `path`, itself
// relative to the yaml's folder or else to the current one. An entry that is nowhere is reported by split(), not here:
// validating needs no training pictures. Throws Error(Data) with file and line: a key missing, names not a list or a
// map 0..n-1, nc that disagrees.
DataConfig load_data_config(const std::string& yaml_path);

}  // namespace yolo9
