// Telling an out-of-memory from every other failure, by type where there is one.
#pragma once

#include <exception>

namespace yolo9 {

// True for c10::OutOfMemoryError (CUDA, host budget), std::bad_alloc, and the two messages of libraries that
// throw a plain c10::Error when an allocation of theirs fails (LibTorch's CPU allocator, cuBLAS/cuDNN).
bool is_out_of_memory(const std::exception& error);

}  // namespace yolo9
