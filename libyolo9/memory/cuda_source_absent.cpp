// Stands in for cuda_source.cpp where LibTorch was built without CUDA.
#include <yolo9/core/error.h>
#include <yolo9/memory/cuda_source.h>

namespace yolo9 {

bool cuda_memory_available() { return false; }

std::shared_ptr<MemorySource> make_cuda_memory_source(int device) {
  throw Error(ErrorKind::Device, "CUDA device " + std::to_string(device) + " cannot be used: LibTorch has no CUDA", "",
              "use --device cpu, or build with a CUDA LibTorch");
}

}  // namespace yolo9
