#include <yolo9/data/batch.h>

#include <algorithm>
#include <cstring>

#include <ATen/ATen.h>

namespace yolo9 {

Batch collate(const std::vector<Sample>& samples) {
  TORCH_CHECK(!samples.empty(), "[collate] no samples");
  const auto sizes = samples.front().image.sizes();
  auto images = at::empty({static_cast<int64_t>(samples.size()), sizes[0], sizes[1], sizes[2]}, at::kByte);
  uint8_t* image = images.data_ptr<uint8_t>();
  for (const Sample& sample : samples) {
    TORCH_CHECK(sample.image.sizes() == sizes, "[collate] samples of different size: ", sample.image.sizes(), " and ",
                sizes);
    std::memcpy(image, sample.image.data_ptr<uint8_t>(), static_cast<size_t>(sample.image.numel()));
    image += sample.image.numel();
  }
  return collate_into(std::move(images), samples);
}

Batch collate_into(torch::Tensor images, const std::vector<Sample>& samples) {
  TORCH_CHECK(images.dim() == 4 && images.size(0) == static_cast<int64_t>(samples.size()), "[collate] pictures of ",
              images.sizes(), " for ", samples.size(), " samples");
  int64_t rows = 0;
  for (const Sample& sample : samples) rows += sample.labels.size(0);
  Batch batch;
  batch.images = std::move(images);
  batch.targets = at::empty({rows, 6}, at::kFloat);
  float* target = batch.targets.data_ptr<float>();
  for (size_t i = 0; i < samples.size(); ++i) {
    const Sample& sample = samples[i];
    const float* label = sample.labels.data_ptr<float>();
    for (int64_t row = 0; row < sample.labels.size(0); ++row, label += 5, target += 6) {
      target[0] = static_cast<float>(i);
      std::copy(label, label + 5, target + 1);
    }
    batch.paths.push_back(sample.path);
    batch.letterboxes.push_back(sample.letterbox);
    batch.indices.push_back(sample.index);
  }
  return batch;
}

void BatchMemory::release() {
  const std::lock_guard lock(mutex_);
  kept_.clear();
}

torch::Tensor BatchMemory::take(torch::IntArrayRef sizes) {
  if (pinned_) return at::empty(sizes, at::TensorOptions(at::kByte).pinned_memory(true));
  int64_t bytes = 1;
  for (const int64_t size : sizes) bytes *= size;
  const std::lock_guard lock(mutex_);
  // Views and slices have tensors of their own, but share the storage.
  const auto is_free = [](const torch::Tensor& block) { return block.storage().use_count() == 1; };
  torch::Tensor* chosen = nullptr;
  for (torch::Tensor& block : kept_) {
    if (!is_free(block) || block.numel() < bytes) continue;
    if (!chosen || block.numel() < chosen->numel()) chosen = &block;
  }
  if (!chosen) {
    // A free block that is too small makes room, so that no more than `blocks_` are kept.
    const auto small = std::find_if(kept_.begin(), kept_.end(), is_free);
    if (small != kept_.end()) kept_.erase(small);
    auto fresh = at::empty({bytes}, at::kByte);
    if (kept_.size() >= blocks_) return fresh.view(sizes);
    kept_.push_back(std::move(fresh));
    chosen = &kept_.back();
  }
  return chosen->narrow(0, 0, bytes).view(sizes);
}

}  // namespace yolo9
