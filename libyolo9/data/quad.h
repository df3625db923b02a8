// Quad batches: pictures of twice the side, each made of one sample enlarged or of four side by side. What is learnt
// at a larger size costs less than a training at that size, because there are a quarter as many pictures.
#pragma once

#include <cstdint>
#include <vector>

#include <yolo9/core/types.h>
#include <yolo9/data/dataset.h>

namespace yolo9 {

// A picture of a quad batch: `first` of the batch's samples alone, enlarged, or the four from it on.
struct QuadPicture {
  int64_t first = 0;
  bool enlarged = false;
};

// How `count` samples are put together: each group of four is drawn from (seed, epoch, batch, group), both ways with
// probability 1/2; of an enlarged group only the first sample is used. What is left over at the end, in a short batch,
// is enlarged one by one.
std::vector<QuadPicture> plan_quads(int64_t count, uint64_t seed, int64_t epoch, int64_t batch);
// The most pictures that `count` samples make.
inline int64_t quad_pictures(int64_t count) { return count / 4 + count % 4; }

// One picture of twice the sample's side into `planes`, uint8 [3,2H,2W], bilinear with half-pixel centres and repeated
// edges. Uses no parallel tensor operation.
void enlarge_twice(const torch::Tensor& image, uint8_t* planes);

// The batch of these pictures in `images`, uint8 [pictures,3,2H,2W]. `samples` are those of the whole batch, of one
// size; those that no picture uses may be empty. Batch::samples says how many there were, and the loss is to be
// multiplied by samples / pictures, so that the gradient keeps its size.
Batch collate_quads(torch::Tensor images, const std::vector<Sample>& samples, const std::vector<QuadPicture>& pictures);

}  // namespace yolo9
