// YOLO label rows.
#include <cstdint>
#include <cstdlib>
#include <string>

#include <yolo9/data/labels.h>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = yolo9::parse_labels(std::string(reinterpret_cast<const char*>(data), size), 80);
  std::string text;
  for (const yolo9::LabelRow& row : file.rows) {
    const bool inside = row.cx >= 0 && row.cx <= 1 && row.cy >= 0 && row.cy <= 1 && row.w > 0 && row.w <= 1 &&
                        row.h > 0 && row.h <= 1 && row.class_index >= 0 && row.class_index < 80;
    if (!inside) std::abort();
    for (const float value : row.polygon) {
      if (!(value >= 0 && value <= 1)) std::abort();
    }
    text += yolo9::format_row(row) + "\n";
  }
  // What was read is read again from what it is written as.
  if (yolo9::parse_labels(text, 80).rows.size() != file.rows.size()) std::abort();
  return 0;
}
