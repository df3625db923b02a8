// Boxes drawn on pictures, and mosaics of a batch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <torch/types.h>

namespace yolo9 {

struct DrawnBox {
  int64_t image = 0;  // position in the batch
  double x1 = 0, y1 = 0, x2 = 0, y2 = 0;  // pixels of the picture
  int64_t class_index = 0;
  double score = -1;  // < 0: none, as for labels
};

struct DrawStyle {
  int line_thickness = 0;  // pixels; 0: by the picture's size
  bool labels = true;      // class names
  bool scores = true;
};

// image: uint8 [3,H,W], RGB. Returns a new picture; `boxes` of any image number are drawn.
torch::Tensor draw_boxes(const torch::Tensor& image, const std::vector<DrawnBox>& boxes,
                         const std::vector<std::string>& names, const DrawStyle& style = {});

// The first `most` pictures of a batch, uint8 [B,3,H,W], side by side with their boxes, their captions in the corner;
// reduced so that the sheet is at most 1920 pixels wide and high.
void save_mosaic(const torch::Tensor& images, const std::vector<DrawnBox>& boxes,
                 const std::vector<std::string>& captions, const std::vector<std::string>& names,
                 const std::string& path, int64_t most = 16);

// Writes uint8 [3,H,W] RGB by the path's extension. Error(Usage) if that fails.
void save_image(const torch::Tensor& image, const std::string& path);

}  // namespace yolo9
