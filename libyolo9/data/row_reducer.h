// Averages rows of a picture down by a whole factor as they come, so that no more than the result is ever held.
#pragma once

#include <cstdint>
#include <vector>

#include <opencv2/core.hpp>

namespace yolo9 {

class RowReducer {
 public:
  // Rows of `width` BGR pixels, of which every `factor` x `factor` become one; the last of a row and column may be
  // made of fewer. Result: ceil(rows / factor) x ceil(width / factor).
  RowReducer(int rows, int width, int factor);
  void add(const uint8_t* row);
  cv::Mat take();  // with new_picture's slack; call after all rows

 private:
  void finish_row();

  int width_, factor_, filled_ = 0, done_ = 0;
  std::vector<uint32_t> sums_;
  cv::Mat result_;
};

}  // namespace yolo9
