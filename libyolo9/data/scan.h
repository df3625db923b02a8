// One look at every picture and label file of a data set.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <yolo9/data/labels.h>

namespace yolo9 {

struct ScannedImage {
  std::string path, label_path;
  int64_t height = 0, width = 0;
  std::string fault;         // why the picture cannot be used; empty if it can
  bool has_label_file = false;
  LabelFile labels;          // read whether or not the picture can be used

  bool is_empty() const { return has_label_file && labels.rows.empty() && labels.faults.empty(); }
};

constexpr int64_t kSmallestSide = 10;  // pixels; smaller pictures cannot be used

// class_count < 0: any class index. A label file that is missing or empty means a picture without objects.
ScannedImage scan_image(const std::string& path, int64_t class_count);
// In the order given, on several threads.
std::vector<ScannedImage> scan_images(const std::vector<std::string>& paths, int64_t class_count);

}  // namespace yolo9
