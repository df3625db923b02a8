// A model made ready to find things in single pictures.
#pragma once

#include <cstdint>

#include <torch/types.h>

#include <yolo9/core/types.h>
#include <yolo9/eval/nms.h>
#include <yolo9/nn/model.h>

namespace yolo9 {

class Detector {
 public:
  // The model is put into evaluation mode and must be on `device`.
  Detector(DetectionModel model, NmsOptions options, torch::Device device = torch::kCPU);

  // input: uint8 [3,h,w], RGB, letterboxed as `info` says, sides multiples of stride().
  // Returns float32 [n,6]: corners in pixels of the original picture, score, class; best first.
  // Throws Error(Memory) if the picture does not fit.
  torch::Tensor detect(const torch::Tensor& input, const LetterboxInfo& info);
  int64_t stride() const;

 private:
  DetectionModel model_;
  NmsOptions options_;
  torch::Device device_;
};

}  // namespace yolo9
