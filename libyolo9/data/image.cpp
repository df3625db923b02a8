#include <yolo9/data/image.h>

#include <cmath>
#include <mutex>

#include <yolo9/core/error.h>
#include <yolo9/data/picture_reader.h>
#include <opencv2/core/utils/logger.hpp>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>

namespace yolo9 {
namespace {

// Half to even, as the formulas of the letterbox are defined.
int64_t round_half_even(double value) { return static_cast<int64_t>(std::nearbyint(value)); }

std::string size_text(int64_t width, int64_t height) { return std::to_string(width) + "x" + std::to_string(height); }

}  // namespace

cv::Mat read_image(const std::string& path) { return turned_upright(read_picture_part(path, {})); }

void write_image(const std::string& path, const cv::Mat& image) {
  bool written = false;
  try {
    written = cv::imwrite(path, image);
  } catch (const cv::Exception&) {
    written = false;
  }
  if (!written) throw Error(ErrorKind::Data, "cannot write the picture", path);
}

void use_one_opencv_thread() {
  static std::once_flag once;
  std::call_once(once, [] {
    cv::setNumThreads(0);
    cv::utils::logging::setLogLevel(cv::utils::logging::LOG_LEVEL_SILENT);  // what fails is said by us, with its file
  });
}

LetterboxGeometry letterbox_geometry(int64_t height, int64_t width, const LetterboxOptions& options) {
  TORCH_CHECK(height > 0 && width > 0, "[letterbox] empty picture of ", width, "x", height);
  const auto h = static_cast<double>(height), w = static_cast<double>(width);
  const auto new_h = static_cast<double>(options.height), new_w = static_cast<double>(options.width);
  double ratio = std::min(new_h / h, new_w / w);
  if (!options.enlarge) ratio = std::min(ratio, 1.0);

  LetterboxGeometry geometry;
  geometry.ratio_height = geometry.ratio_width = ratio;
  geometry.inner_width = round_half_even(w * ratio);
  geometry.inner_height = round_half_even(h * ratio);
  int64_t pad_w = options.width - geometry.inner_width, pad_h = options.height - geometry.inner_height;
  if (options.minimum_padding) {
    pad_w %= options.stride;
    pad_h %= options.stride;
  } else if (options.stretch) {
    pad_w = pad_h = 0;
    geometry.inner_width = options.width;
    geometry.inner_height = options.height;
    geometry.ratio_width = new_w / w;
    geometry.ratio_height = new_h / h;
  }
  if (geometry.inner_width < 1 || geometry.inner_height < 1) {
    throw Error(ErrorKind::Data, "a picture of " + size_text(width, height) + " pixels has a side of 0 pixels at " +
                                     size_text(options.width, options.height));
  }
  geometry.pad_width = static_cast<double>(pad_w) / 2;
  geometry.pad_height = static_cast<double>(pad_h) / 2;
  geometry.top = round_half_even(geometry.pad_height - 0.1);
  geometry.bottom = round_half_even(geometry.pad_height + 0.1);
  geometry.left = round_half_even(geometry.pad_width - 0.1);
  geometry.right = round_half_even(geometry.pad_width + 0.1);
  return geometry;
}

cv::Mat letterbox(const cv::Mat& image, const LetterboxOptions& options, LetterboxGeometry* geometry) {
  const LetterboxGeometry g = letterbox_geometry(image.rows, image.cols, options);
  if (geometry) *geometry = g;
  cv::Mat inner = image;
  if (image.rows != g.inner_height || image.cols != g.inner_width) {
    cv::resize(image, inner, cv::Size(static_cast<int>(g.inner_width), static_cast<int>(g.inner_height)), 0, 0,
               cv::INTER_LINEAR);
  }
  cv::Mat result;
  cv::copyMakeBorder(inner, result, static_cast<int>(g.top), static_cast<int>(g.bottom), static_cast<int>(g.left),
                     static_cast<int>(g.right), cv::BORDER_CONSTANT,
                     cv::Scalar(options.colour.blue, options.colour.green, options.colour.red));
  return result;
}

cv::Mat letterbox(const cv::Mat& image, const LetterboxOptions& options, LetterboxInfo& info) {
  LetterboxGeometry g;
  cv::Mat result = letterbox(image, options, &g);
  info = {image.rows, image.cols, g.ratio_height, g.ratio_width, g.pad_width, g.pad_height};
  return result;
}

ResizeRule resize_rule(int64_t height, int64_t width, int64_t side, bool augment) {
  const double ratio = static_cast<double>(side) / static_cast<double>(std::max(height, width));
  if (ratio == 1) return {height, width, Resampling::None};
  // A very long picture keeps at least one row.
  const auto scaled = [ratio](int64_t length) {
    return std::max<int64_t>(static_cast<int64_t>(static_cast<double>(length) * ratio), 1);
  };
  return {scaled(height), scaled(width), augment || ratio > 1 ? Resampling::Linear : Resampling::Area};
}

cv::Mat resize_longest_side(const cv::Mat& image, int64_t side, bool augment) {
  const ResizeRule rule = resize_rule(image.rows, image.cols, side, augment);
  if (rule.resampling == Resampling::None) return image;
  cv::Mat result;
  cv::resize(image, result, cv::Size(static_cast<int>(rule.width), static_cast<int>(rule.height)), 0, 0,
             rule.resampling == Resampling::Linear ? cv::INTER_LINEAR : cv::INTER_AREA);
  return result;
}

void scale_hsv(cv::Mat& image, double hue_gain, double saturation_gain, double value_gain) {
  if (hue_gain == 1 && saturation_gain == 1 && value_gain == 1) return;  // the way to HSV and back is not exact
  cv::Mat table(1, 256, CV_8UC3);
  for (int i = 0; i < 256; ++i) {
    const auto scale = [i](double gain) { return static_cast<uint8_t>(std::clamp(i * gain, 0.0, 255.0)); };
    const double turned = i * hue_gain - 180 * std::floor(i * hue_gain / 180);
    table.at<cv::Vec3b>(i) = {static_cast<uint8_t>(turned), scale(saturation_gain), scale(value_gain)};
  }
  cv::Mat hsv;
  cv::cvtColor(image, hsv, cv::COLOR_BGR2HSV);
  cv::LUT(hsv, table, hsv);
  cv::cvtColor(hsv, image, cv::COLOR_HSV2BGR);
}

void copy_to_planes(const cv::Mat& image, uint8_t* planes) {
  const auto plane = static_cast<size_t>(image.rows) * static_cast<size_t>(image.cols);
  uint8_t *red = planes, *green = planes + plane, *blue = planes + 2 * plane;
  for (int y = 0; y < image.rows; ++y) {
    const uint8_t* row = image.ptr<uint8_t>(y);
    for (int x = 0; x < image.cols; ++x, row += 3) {
      *blue++ = row[0];
      *green++ = row[1];
      *red++ = row[2];
    }
  }
}

torch::Tensor to_tensor(const cv::Mat& image) {
  TORCH_CHECK(image.type() == CV_8UC3, "[to_tensor] expected an 8-bit picture of 3 channels");
  torch::Tensor tensor = torch::empty({3, image.rows, image.cols}, torch::kUInt8);
  copy_to_planes(image, tensor.data_ptr<uint8_t>());
  return tensor;
}

cv::Mat to_image(const torch::Tensor& image) {
  TORCH_CHECK(image.dim() == 3 && image.size(0) == 3 && image.scalar_type() == torch::kUInt8,
              "[to_image] expected uint8 [3,H,W], got ", image.sizes());
  const torch::Tensor planes = image.cpu().contiguous();
  const int height = static_cast<int>(planes.size(1)), width = static_cast<int>(planes.size(2));
  const size_t plane = static_cast<size_t>(height) * static_cast<size_t>(width);
  uint8_t* data = planes.data_ptr<uint8_t>();
  cv::Mat result;
  cv::merge(std::vector<cv::Mat>{cv::Mat(height, width, CV_8UC1, data + 2 * plane),
                                 cv::Mat(height, width, CV_8UC1, data + plane), cv::Mat(height, width, CV_8UC1, data)},
            result);
  return result;
}

}  // namespace yolo9
