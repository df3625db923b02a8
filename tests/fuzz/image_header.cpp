// The headers of pictures of every format.
#include <cstdint>
#include <cstdlib>

#include <yolo9/data/image_header.h>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const yolo9::ImageHeader header = yolo9::probe_image_bytes({data, size});
  if (header.ok != (header.kind == yolo9::ImageFault::None) || header.ok != header.fault.empty()) std::abort();
  if (header.ok && (header.height < 1 || header.width < 1 || header.orientation < 1 || header.orientation > 8)) {
    std::abort();
  }
  return 0;
}
