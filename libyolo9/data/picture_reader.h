// Reading a part of a picture at a reduced scale: what a training sample shows of it, and no more.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <opencv2/core.hpp>

namespace yolo9 {

// A plane map: (x, y) -> (xx x + xy y + x0, yx x + yy y + y0).
struct AffineMap {
  double xx = 1, xy = 0, x0 = 0;
  double yx = 0, yy = 1, y0 = 0;
};
AffineMap after(const AffineMap& second, const AffineMap& first);

// All in shares of the picture as its orientation turns it: (0, 0) is the outer corner of the first pixel, (1, 1) that
// of the last.
struct PartRequest {
  double x1 = 0, y1 = 0, x2 = 1, y2 = 1;  // what is needed; more may come
  // As many pixels a picture width and height as are needed; the reader gives at least these, if the file has them.
  double pixels_wide = 1e9, pixels_high = 1e9;
};

struct PicturePart {
  cv::Mat pixels;       // 8-bit BGR, at least 2 x 2; readable 8 bytes beyond the last pixel
  AffineMap to_pixels;  // shares of the picture -> pixel centres of `pixels`
  cv::Size shown;       // of `pixels`, without what was added to make it 2 x 2
};
// A part that is the whole picture, turned as it is to be seen.
cv::Mat turned_upright(const PicturePart& part);

// JPEG is decoded at 1/2, 1/4 or 1/8 of its size where that is enough, and only between the rows and columns that are
// needed; PNG row by row, averaged down; anything else as a whole. Memory follows the request, not the file, but for
// other formats. Throws Error(Data) if the file is missing or cannot be decoded.
PicturePart read_picture_part(const std::string& path, const PartRequest& request);
PicturePart decode_picture_part(std::span<const uint8_t> bytes, const std::string& path, const PartRequest& request);

// A picture of 3 channels whose memory may be read 8 bytes beyond the last pixel.
cv::Mat new_picture(int height, int width);
// The same pixels, with such memory, at least 2 x 2 (the last row and column repeated); no copy if it is so already.
cv::Mat with_slack(const cv::Mat& picture);

}  // namespace yolo9
