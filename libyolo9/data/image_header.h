// A picture's size without decoding it, and whether the file is whole.
#pragma once

#include <cstdint>
#include <string>

namespace yolo9 {

struct ImageHeader {
  bool ok = false;
  std::string fault;              // what is wrong, when not ok
  int64_t height = 0, width = 0;  // as read_image gives it, that is, after turning by the camera's orientation
};

// Reads a few bytes of JPEG and PNG files; other formats, and odd files, are decoded. Never throws for a bad file.
ImageHeader probe_image(const std::string& path);

}  // namespace yolo9
