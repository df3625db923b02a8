// Pascal VOC XML files.
#include <cstdint>
#include <cstdlib>
#include <string>

#include <yolo9/data/voc_labels.h>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const yolo9::LabelRow& row : yolo9::parse_voc(text, {"cat", "dog"}, {48, 64}).rows) {
    if (!(row.w > 0 && row.w <= 1 && row.h > 0 && row.h <= 1)) std::abort();
    if (row.class_index < 0 || row.class_index > 1) std::abort();
  }
  yolo9::voc_names(text);
  return 0;
}
