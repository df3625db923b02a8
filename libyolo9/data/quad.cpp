#include <yolo9/data/quad.h>

#include <algorithm>
#include <cstring>

#include <ATen/ATen.h>

#include <yolo9/core/random.h>
#include <yolo9/data/batch.h>

namespace yolo9 {

namespace {

constexpr uint64_t kQuadStream = 0x9ad5;

// One row of `width` numbers to 2 * width, in quarters of a level: at twice the resolution every new pixel lies a
// quarter of a pixel beside an old one, so it is 3/4 of that and 1/4 of the neighbour on its side.
void enlarge_row(const uint8_t* row, int64_t width, uint16_t* out) {
  for (int64_t x = 0; x < width; ++x) {
    const int centre = 3 * row[x];
    out[2 * x] = static_cast<uint16_t>(centre + row[x > 0 ? x - 1 : 0]);
    out[2 * x + 1] = static_cast<uint16_t>(centre + row[x + 1 < width ? x + 1 : x]);
  }
}

// Four samples side by side in one plane: quadrant 0 is at the top left, 1 at the top right.
void draw_quadrant(const torch::Tensor& image, int64_t quadrant, uint8_t* planes) {
  const int64_t height = image.size(1), width = image.size(2);
  const uint8_t* from = image.data_ptr<uint8_t>();
  for (int64_t plane = 0; plane < 3; ++plane) {
    uint8_t* to = planes + (plane * 2 * height + quadrant / 2 * height) * 2 * width + quadrant % 2 * width;
    for (int64_t y = 0; y < height; ++y, from += width, to += 2 * width) {
      std::memcpy(to, from, static_cast<size_t>(width));
    }
  }
}

// The labels of four samples in the picture that they make: half as large, moved into their quadrants.
torch::Tensor gather_labels(const Sample* samples) {
  int64_t rows = 0;
  for (int64_t k = 0; k < 4; ++k) rows += samples[k].labels.size(0);
  auto labels = at::empty({rows, 5}, at::kFloat);
  float* to = labels.data_ptr<float>();
  for (int64_t k = 0; k < 4; ++k) {
    const float* from = samples[k].labels.data_ptr<float>();
    for (int64_t row = 0; row < samples[k].labels.size(0); ++row, from += 5, to += 5) {
      to[0] = from[0];
      to[1] = (from[1] + static_cast<float>(k % 2)) / 2;
      to[2] = (from[2] + static_cast<float>(k / 2)) / 2;
      to[3] = from[3] / 2;
      to[4] = from[4] / 2;
    }
  }
  return labels;
}

}  // namespace

std::vector<QuadPicture> plan_quads(int64_t count, uint64_t seed, int64_t epoch, int64_t batch) {
  std::vector<QuadPicture> pictures;
  for (int64_t group = 0; group < count / 4; ++group) {
    Random random{seed, kQuadStream, static_cast<uint64_t>(epoch), static_cast<uint64_t>(batch),
                  static_cast<uint64_t>(group)};
    pictures.push_back({4 * group, random.uniform() < 0.5});
  }
  for (int64_t rest = count / 4 * 4; rest < count; ++rest) pictures.push_back({rest, true});
  return pictures;
}

void enlarge_twice(const torch::Tensor& image, uint8_t* planes) {
  const int64_t height = image.size(1), width = image.size(2);
  const uint8_t* from = image.data_ptr<uint8_t>();
  std::vector<uint16_t> rows(static_cast<size_t>(3 * 2 * width));
  for (int64_t plane = 0; plane < 3; ++plane, from += height * width) {
    uint16_t* above = rows.data();
    uint16_t* here = above + 2 * width;
    uint16_t* below = here + 2 * width;
    enlarge_row(from, width, here);
    std::copy(here, here + 2 * width, above);
    for (int64_t y = 0; y < height; ++y) {
      enlarge_row(from + std::min(y + 1, height - 1) * width, width, below);
      for (const uint16_t* neighbour : {above, below}) {
        // Sixteenths of a level, rounded.
        for (int64_t x = 0; x < 2 * width; ++x) *planes++ = static_cast<uint8_t>((3 * here[x] + neighbour[x] + 8) / 16);
      }
      std::swap(above, here);
      std::swap(here, below);
    }
  }
}

Batch collate_quads(torch::Tensor images, const std::vector<Sample>& samples,
                    const std::vector<QuadPicture>& pictures) {
  TORCH_CHECK(!pictures.empty(), "[collate_quads] no pictures");
  std::vector<Sample> made;
  uint8_t* planes = images.data_ptr<uint8_t>();
  const auto sizes = samples.at(static_cast<size_t>(pictures.front().first)).image.sizes();
  TORCH_CHECK(images.size(0) == static_cast<int64_t>(pictures.size()) && images.size(2) == 2 * sizes[1] &&
                  images.size(3) == 2 * sizes[2],
              "[collate_quads] pictures of ", images.sizes(), " from samples of ", sizes);
  for (const QuadPicture& picture : pictures) {
    const int64_t members = picture.enlarged ? 1 : 4;
    TORCH_CHECK(picture.first + members <= static_cast<int64_t>(samples.size()), "[collate_quads] too few samples");
    const Sample* first = &samples[static_cast<size_t>(picture.first)];
    for (int64_t k = 0; k < members; ++k) {
      TORCH_CHECK(first[k].image.sizes() == sizes, "[collate_quads] samples of different size");
    }
    Sample whole = *first;
    if (picture.enlarged) {
      enlarge_twice(first->image, planes);
      LetterboxInfo& box = whole.letterbox;
      for (double* value : {&box.ratio_height, &box.ratio_width, &box.pad_left, &box.pad_top}) *value *= 2;
    } else {
      for (int64_t k = 0; k < 4; ++k) draw_quadrant(first[k].image, k, planes);
      whole.labels = gather_labels(first);
      whole.letterbox = {};  // as of a mosaic: only the size
      whole.letterbox.original_height = 2 * sizes[1];
      whole.letterbox.original_width = 2 * sizes[2];
    }
    whole.image.reset();
    planes += 4 * sizes[0] * sizes[1] * sizes[2];
    made.push_back(std::move(whole));
  }
  Batch batch = collate_into(std::move(images), made);
  batch.samples = static_cast<int64_t>(samples.size());
  return batch;
}

}  // namespace yolo9
