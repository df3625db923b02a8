// CUDA's memory as LibTorch's caching allocator accounts for it.
#pragma once

#include <memory>

#include <yolo9/memory/source.h>

namespace yolo9 {

// True when LibTorch has CUDA and a device can be used.
bool cuda_memory_available();

// Throws Error(Device) when there is no such device. Of the sample's fields,
// - reserved and the limit cover what the caching allocator holds: not the context (a few hundred MB) nor what
//   libraries allocate for themselves, which show only as device_free_bytes missing;
// - held_bytes equals reserved_bytes for the same reason;
// - set_limit() turns the budget into a share of the device, since that is what the allocator takes; the limit
//   holds for the process, also for allocations made before or by others of its code.
std::shared_ptr<MemorySource> make_cuda_memory_source(int device);

}  // namespace yolo9
