// Work shared among LibTorch's threads. at::parallel_for is a template that runs in one thread wherever the compiler
// has OpenMP switched off, as it is here; this one is not.
#pragma once

#include <cstdint>

#include <c10/util/FunctionRef.h>

namespace yolo9 {

// body(begin, end) over ranges that make up [0, count), of at least `grain` but for the last; one call in this thread
// if all is not more than that. The first exception of a range is passed on.
void in_parallel(int64_t count, int64_t grain, c10::function_ref<void(int64_t begin, int64_t end)> body);

}  // namespace yolo9
