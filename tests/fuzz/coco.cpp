// COCO JSON files, with all annotations of all pictures.
#include <cstdint>
#include <cstdlib>
#include <string>

#include <yolo9/core/error.h>
#include <yolo9/data/coco_labels.h>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    yolo9::CocoLabels labels(yolo9::ByteFile::of_text(std::string(reinterpret_cast<const char*>(data), size)),
                             "x.json");
    labels.set_names({"cat", "dog"});
    for (int64_t i = 0; i < labels.size(); ++i) {
      for (const yolo9::LabelRow& row : labels.parse(i, {48, 64}).rows) {
        if (!(row.w > 0 && row.w <= 1 && row.h > 0 && row.h <= 1)) std::abort();
        if (row.class_index < 0 || row.class_index > 1) std::abort();
        for (const float value : row.polygon) {
          if (!(value >= 0 && value <= 1)) std::abort();
        }
      }
    }
  } catch (const yolo9::Error&) {  // what a user is told of a file that is none
  }
  return 0;
}
