// COCO JSON and Pascal VOC -> a data set with YOLO labels, in a folder of its own.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace yolo9 {

enum class ConvertFrom { Coco, Voc };

struct ConvertOptions {
  ConvertFrom from = ConvertFrom::Coco;
  // COCO: the JSON file, or a folder of them, one a split: train, val and test by what their names hold.
  // VOC: the folder of the set (Annotations, JPEGImages, ImageSets) or of the XML files.
  std::string input;
  std::string output;              // must be empty, or made by an earlier conversion
  std::string images;              // the folder of the pictures; "": looked for where such sets have it
  std::vector<std::string> names;  // "": COCO's categories by id, the names in the VOC files by alphabet
  bool copy_pictures = false;      // instead of making symbolic links
};

struct ConvertReport {
  struct Split {
    std::string name;
    int64_t pictures = 0, objects = 0;
  };
  std::vector<Split> splits;
  std::vector<std::string> names;
  int64_t missing_pictures = 0;                // left out: listed, but not there or not pictures
  std::map<std::string, int64_t> faults;       // by kind: what was dropped or changed, see LabelFaultKind
  std::map<std::string, std::string> example;  // of each kind, "file:line: text"
};

// Writes data.yaml, images/<split>/ and labels/<split>/ below `output`, and nothing elsewhere. Labels are as training
// on the original directly has them, to the last bit. With one split only, data.yaml names it for validation, too.
// Throws Error(Usage) for an output folder with something else in it, Error(Data) for an input that cannot be used.
ConvertReport convert_data(const ConvertOptions& options);

}  // namespace yolo9
