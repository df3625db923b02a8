// Data that crosses layers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <torch/types.h>

namespace yolo9 {

// How a picture was brought to the network's size; enough to bring boxes back.
struct LetterboxInfo {
  int64_t original_height = 0, original_width = 0;
  double ratio_height = 1, ratio_width = 1;  // network pixels per original pixel
  double pad_left = 0, pad_top = 0;          // network pixels
};

// One loader batch.
struct Batch {
  torch::Tensor images;   // uint8 [B,3,H,W], RGB
  torch::Tensor targets;  // float32 [N,6]: image in the batch, class, centre x, centre y, width, height (normalised)
  std::vector<std::string> paths;          // B
  std::vector<LetterboxInfo> letterboxes;  // B
  std::vector<int64_t> indices;            // B, position of each (first) picture in the data set
  int64_t samples = 0;                     // that the B pictures stand for, where it is not B (see data/quad.h)

  int64_t size() const { return images.defined() ? images.size(0) : 0; }
};

// What a head gives. Level order is stride 8, 16, 32. `aux` is empty for single-head models.
// A raw map is float [B, 64 + nc, h, w]: 4 sides x 16 distance bins, then class logits.
// A decoded tensor is float [B, 4 + nc, A]: centre x, centre y, width, height in input pixels, then class scores
// after the sigmoid; it is defined only in evaluation mode.
struct HeadOutput {
  std::vector<torch::Tensor> aux, main;
  torch::Tensor decoded_aux, decoded_main;
};

}  // namespace yolo9
