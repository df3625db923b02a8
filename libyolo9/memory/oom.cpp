#include <yolo9/memory/oom.h>

#include <cstring>
#include <new>

#include <c10/util/Exception.h>

namespace yolo9 {

bool is_out_of_memory(const std::exception& error) {
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) || dynamic_cast<const std::bad_alloc*>(&error)) return true;
  const auto* plain = dynamic_cast<const c10::Error*>(&error);
  if (!plain) return false;
  const char* text = plain->what_without_backtrace();
  return std::strstr(text, "can't allocate memory") || std::strstr(text, "CUBLAS_STATUS_ALLOC_FAILED") ||
         std::strstr(text, "CUDNN_STATUS_ALLOC_FAILED");
}

}  // namespace yolo9
