#include <yolo9/data/batch.h>

#include <algorithm>
#include <cstring>

namespace yolo9 {

Batch collate(const std::vector<Sample>& samples) {
  TORCH_CHECK(!samples.empty(), "[collate] no samples");
  const auto sizes = samples.front().image.sizes();
  int64_t rows = 0;
  for (const Sample& sample : samples) {
    TORCH_CHECK(sample.image.sizes() == sizes, "[collate] samples of different size: ", sample.image.sizes(), " and ",
                sizes);
    rows += sample.labels.size(0);
  }
  Batch batch;
  batch.images = torch::empty({static_cast<int64_t>(samples.size()), sizes[0], sizes[1], sizes[2]}, torch::kUInt8);
  batch.targets = torch::empty({rows, 6}, torch::kFloat32);
  uint8_t* image = batch.images.data_ptr<uint8_t>();
  float* target = batch.targets.data_ptr<float>();
  for (size_t i = 0; i < samples.size(); ++i) {
    const Sample& sample = samples[i];
    std::memcpy(image, sample.image.data_ptr<uint8_t>(), static_cast<size_t>(sample.image.numel()));
    image += sample.image.numel();
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

}  // namespace yolo9
