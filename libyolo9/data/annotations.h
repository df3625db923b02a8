// Where the pictures of a split are and where their labels come from: YOLO text files, Pascal VOC XML files, or a COCO
// JSON file. Whatever the format, the labels of a picture come out as the rows and faults of a LabelFile.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <yolo9/data/labels.h>
#include <yolo9/data/mosaic.h>

namespace yolo9 {

enum class LabelFormat { Yolo, Voc, Coco };

// What there is of a picture's labels, before it is understood.
struct LabelSource {
  LabelFormat format = LabelFormat::Yolo;
  std::string path;     // of the label file (of the JSON file for COCO), whether or not it exists
  bool exists = false;  // false: the picture is background
  bool readable = true;
  std::string text;   // of a YOLO or VOC file; empty for COCO
  uint64_t hash = 0;  // of the contents: of the file; for COCO, of the JSON file and the picture's place in it
};

// What is wrong with entries of a COCO file that belong to no picture.
struct SourceFaults {
  std::string path;
  LabelFile labels;  // without rows
};

// False if it cannot be read: is no file, may not be read, or is larger than any label file. Waits for nothing.
bool read_label_file(const std::string& path, std::string& text);

class Annotations {
 public:
  // `sources`: folders, list files (.txt), pictures or COCO files (.json), as find_images() takes them; `names`: the
  // classes, which VOC and COCO name in words. Throws Error(Data) if a source does not exist, if a JSON file is not
  // COCO's (file:line), or if there is no picture. Of a picture beside a YOLO file and a VOC file the YOLO file counts.
  Annotations(const std::vector<std::string>& sources, std::vector<std::string> names,
              int64_t most_listed_faults = kMostListedFaults);
  ~Annotations();
  Annotations(const Annotations&) = delete;
  Annotations& operator=(const Annotations&) = delete;

  int64_t size() const;
  const std::string& picture(int64_t index) const;  // path
  // Empty unless there are COCO files with such entries.
  const std::vector<SourceFaults>& faults() const;
  // Both may be called from many threads.
  LabelSource source(int64_t index) const;
  // `picture`: the size of the picture file, for formats that give pixels; 0 x 0 if it is not known.
  LabelFile parse(int64_t index, const LabelSource& source, PixelSize picture) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace yolo9
