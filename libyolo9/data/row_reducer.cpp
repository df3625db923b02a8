#include <yolo9/data/row_reducer.h>

#include <algorithm>
#include <cstring>

#include <yolo9/data/picture_reader.h>

namespace yolo9 {

RowReducer::RowReducer(int rows, int width, int factor)
    : width_(width),
      factor_(factor),
      result_(new_picture((rows + factor - 1) / factor, (width + factor - 1) / factor)) {
  if (factor > 1) sums_.resize(3 * static_cast<size_t>(result_.cols));
}

void RowReducer::add(const uint8_t* row) {
  if (factor_ == 1) {
    std::memcpy(result_.ptr(done_++), row, 3 * static_cast<size_t>(width_));
    return;
  }
  for (int x = 0; x < width_; ++x, row += 3) {
    uint32_t* sum = &sums_[3 * static_cast<size_t>(x / factor_)];
    sum[0] += row[0];
    sum[1] += row[1];
    sum[2] += row[2];
  }
  if (++filled_ == factor_) finish_row();
}

void RowReducer::finish_row() {
  uint8_t* out = result_.ptr(done_++);
  for (int x = 0; x < result_.cols; ++x) {
    const auto columns = static_cast<uint32_t>(std::min(factor_, width_ - x * factor_));
    const uint32_t count = columns * static_cast<uint32_t>(filled_);
    for (int c = 0; c < 3; ++c) {
      uint32_t& sum = sums_[3 * static_cast<size_t>(x) + static_cast<size_t>(c)];
      *out++ = static_cast<uint8_t>((sum + count / 2) / count);
      sum = 0;
    }
  }
  filled_ = 0;
}

cv::Mat RowReducer::take() {
  if (filled_ > 0) finish_row();
  return std::move(result_);
}

}  // namespace yolo9
