// Telling an out-of-memory from every other failure, by type where there is one.
#pragma once

#include <array>
#include <cstring>
#include <exception>
#include <new>

#include <c10/util/Exception.h>

namespace yolo9 {

namespace oom {

inline constexpr std::array<const char*, 6> kSigns{{
    "can't allocate memory",       // LibTorch's CPU allocator
    "CUDA error: out of memory",   // anything that asks CUDA directly: contexts, streams, graphs
    "CUBLAS_STATUS_ALLOC_FAILED",  // cuBLAS' handle or workspace
    "CUDNN_STATUS_ALLOC_FAILED",
    "ALLOCATION_FAILED",  // cuDNN 9: CUDNN_STATUS_INTERNAL_ERROR_{HOST,DEVICE}_ALLOCATION_FAILED
    // LibTorch tries cuDNN's plans one by one and passes over those whose workspace cannot be allocated; this
    // is what it says when none is left.
    "unable to find an engine to execute this computation",
}};

}  // namespace oom

// True for c10::OutOfMemoryError (CUDA, host budget), std::bad_alloc, and the few messages by which a plain
// c10::Error tells that an allocation failed (LibTorch's CPU allocator, CUDA outside the caching allocator,
// cuBLAS, cuDNN).
inline bool is_out_of_memory(const std::exception& error) {
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) || dynamic_cast<const std::bad_alloc*>(&error)) return true;
  const auto* plain = dynamic_cast<const c10::Error*>(&error);
  if (!plain) return false;
  const char* text = plain->what_without_backtrace();
  for (const char* sign : oom::kSigns)
    if (std::strstr(text, sign)) return true;
  return false;
}

}  // namespace yolo9
