// Pictures: reading, resizing, letterbox, colour, and the way into a tensor.
// A picture is a cv::Mat, 8-bit, 3 channels, BGR; OpenCV's headers are needed only where one is handled.
#pragma once

#include <cstdint>
#include <string>

#include <torch/types.h>
#include <yolo9/core/types.h>

namespace cv {
class Mat;
}

namespace yolo9 {

constexpr int kFillGrey = 114;  // of letterbox borders and empty canvas

struct Colour {
  double blue = kFillGrey, green = kFillGrey, red = kFillGrey;
};

// Any format that OpenCV reads; half a picture counts as damaged; grey and 16-bit pictures are converted, transparency
// is dropped, the orientation that a camera noted is applied. Throws Error(Data) if the file is missing, empty or
// cannot be decoded.
cv::Mat read_image(const std::string& path);
// Reads all of a picture, at the smallest scale there is, to see whether it can be decoded: what is wrong, or nothing.
std::string decode_fault(const std::string& path);
// The format follows the extension. Throws Error(Data) if it cannot be written.
void write_image(const std::string& path, const cv::Mat& image);

// OpenCV must not start threads of its own beside the loader's. Process-wide, idempotent.
void use_one_opencv_thread();

struct LetterboxOptions {
  int64_t height = 640, width = 640;
  bool minimum_padding = false;  // pad only up to the next multiple of stride
  bool stretch = false;          // fill the whole shape, changing the aspect
  bool enlarge = true;           // false: only shrink
  int64_t stride = 32;
  Colour colour;
};

// Sizes of a letterbox. The pads are halves of the total padding and may end in .5: then left and top get the
// smaller part.
struct LetterboxGeometry {
  double ratio_height = 1, ratio_width = 1;
  double pad_width = 0, pad_height = 0;
  int64_t inner_height = 0, inner_width = 0;
  int64_t left = 0, top = 0, right = 0, bottom = 0;
  int64_t height() const { return inner_height + top + bottom; }
  int64_t width() const { return inner_width + left + right; }
};
// Throws Error(Data) if a side would round to nothing.
LetterboxGeometry letterbox_geometry(int64_t height, int64_t width, const LetterboxOptions& options);
cv::Mat letterbox(const cv::Mat& image, const LetterboxOptions& options, LetterboxGeometry* geometry = nullptr);
// The same for one picture that goes straight into a network: reads nothing, fills `info`.
cv::Mat letterbox(const cv::Mat& image, const LetterboxOptions& options, LetterboxInfo& info);

// How a data set brings a picture to its size: the longest side becomes `side`, the other is truncated.
enum class Resampling { None, Linear, Area };
struct ResizeRule {
  int64_t height, width;
  Resampling resampling;
};
ResizeRule resize_rule(int64_t height, int64_t width, int64_t side, bool augment);
cv::Mat resize_longest_side(const cv::Mat& image, int64_t side, bool augment);

// Multiplies hue, saturation and value by the gains, in 8 bits, in place.
void scale_hsv(cv::Mat& image, double hue_gain, double saturation_gain, double value_gain);

// uint8 [3,H,W], RGB, owning its memory. Uses no parallel tensor operation.
torch::Tensor to_tensor(const cv::Mat& image);
// Writes the same into memory of 3*H*W bytes.
void copy_to_planes(const cv::Mat& image, uint8_t* planes);
// The way back: uint8 [3,H,W] RGB -> picture.
cv::Mat to_image(const torch::Tensor& image);

}  // namespace yolo9
