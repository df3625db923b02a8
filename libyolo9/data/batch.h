// Samples that go through the network together.
#pragma once

#include <mutex>
#include <vector>

#include <yolo9/core/types.h>
#include <yolo9/data/dataset.h>

namespace yolo9 {

// At least one sample, all of one size. Copies; uses no parallel tensor operation.
Batch collate(const std::vector<Sample>& samples);

// The same for samples whose pictures are in `images` already, uint8 [B,3,H,W].
Batch collate_into(torch::Tensor images, const std::vector<Sample>& samples);

// Memory for the pictures of batches: what nobody else holds any more, not even through a slice, is used again, so that
// a run neither grows nor has its pages made anew for each batch. Safe for many threads at once.
class BatchMemory {
 public:
  // Keeps at most `blocks` blocks. Pinned memory is left to LibTorch's allocator of it, which alone knows when an
  // asynchronous copy to the device has ended.
  explicit BatchMemory(size_t blocks, bool pinned = false) : blocks_(blocks), pinned_(pinned) {}
  // uint8, contiguous, with whatever was in it.
  torch::Tensor take(torch::IntArrayRef sizes);
  // Keeps nothing any more, so that others can have the memory until the next take().
  void release();

 private:
  size_t blocks_;
  bool pinned_;
  std::mutex mutex_;
  std::vector<torch::Tensor> kept_;  // flat
};

}  // namespace yolo9
