#include <yolo9/monitor/pictures.h>

#include <cmath>
#include <cstdio>

#include <opencv2/imgproc.hpp>

#include <yolo9/monitor/canvas.h>

namespace yolo9 {

namespace {

cv::Mat to_mat(const torch::Tensor& image) {
  TORCH_CHECK(image.dim() == 3 && image.size(0) == 3 && image.scalar_type() == torch::kUInt8,
              "[pictures] expected uint8 [3,H,W], got ", image.scalar_type(), " ", image.sizes());
  const torch::Tensor planes = image.to(torch::kCPU).contiguous();
  const auto height = static_cast<int>(planes.size(1)), width = static_cast<int>(planes.size(2));
  uint8_t* data = planes.data_ptr<uint8_t>();
  const size_t plane = static_cast<size_t>(height) * static_cast<size_t>(width);
  const std::vector<cv::Mat> bgr = {cv::Mat(height, width, CV_8U, data + 2 * plane),
                                    cv::Mat(height, width, CV_8U, data + plane), cv::Mat(height, width, CV_8U, data)};
  cv::Mat result;
  cv::merge(bgr, result);
  return result;
}

torch::Tensor to_planes(const cv::Mat& image) {
  torch::Tensor result = torch::empty({3, image.rows, image.cols}, torch::kUInt8);
  uint8_t* data = result.data_ptr<uint8_t>();
  const size_t plane = image.total();
  std::vector<cv::Mat> bgr = {cv::Mat(image.rows, image.cols, CV_8U, data + 2 * plane),
                              cv::Mat(image.rows, image.cols, CV_8U, data + plane),
                              cv::Mat(image.rows, image.cols, CV_8U, data)};
  cv::split(image, bgr);
  return result;
}

std::string label_of(const DrawnBox& box, const std::vector<std::string>& names, const DrawStyle& style) {
  if (!style.labels) return "";
  const auto k = static_cast<size_t>(box.class_index);
  std::string text = box.class_index >= 0 && k < names.size() ? names[k] : std::to_string(box.class_index);
  if (style.scores && box.score >= 0) {
    char score[16];
    std::snprintf(score, sizeof score, " %.2f", box.score);
    text += score;
  }
  return printable(text);
}

void draw_label(cv::Mat& image, cv::Point corner, const std::string& text, const cv::Scalar& colour, int thickness) {
  const double scale = std::max(0.35, thickness / 4.5);
  const int stroke = std::max(1, thickness - 1);
  int baseline = 0;
  const cv::Size size = cv::getTextSize(text, cv::FONT_HERSHEY_SIMPLEX, scale, stroke, &baseline);
  const int height = size.height + 5;
  const bool above = corner.y - height >= 0;
  const int left = std::clamp(corner.x, 0, std::max(0, image.cols - size.width - 2));
  const int top = std::clamp(above ? corner.y - height : corner.y, 0, std::max(0, image.rows - height));
  cv::rectangle(image, cv::Rect(left, top, size.width + 3, height) & cv::Rect(0, 0, image.cols, image.rows), colour,
                cv::FILLED);
  const double light = 0.114 * colour[0] + 0.587 * colour[1] + 0.299 * colour[2];
  cv::putText(image, text, {left + 1, top + size.height + 2}, cv::FONT_HERSHEY_SIMPLEX, scale,
              light > 160 ? cv::Scalar(0, 0, 0) : cv::Scalar(255, 255, 255), stroke, cv::LINE_AA);
}

void draw_on(cv::Mat& image, const std::vector<DrawnBox>& boxes, const std::vector<std::string>& names,
             const DrawStyle& style) {
  const int thickness = style.line_thickness > 0
                            ? style.line_thickness
                            : std::max(1, static_cast<int>(std::lround((image.rows + image.cols) / 2.0 * 0.003)));
  const double far = 2.0 * std::max(image.rows, image.cols);
  const auto pixel = [far](double v) { return static_cast<int>(std::lround(std::clamp(v, -far, far))); };
  for (const DrawnBox& box : boxes) {
    if (!std::isfinite(box.x1 + box.y1 + box.x2 + box.y2)) continue;
    const cv::Point a(pixel(box.x1), pixel(box.y1)), b(pixel(box.x2), pixel(box.y2));
    const cv::Scalar colour = palette_colour(box.class_index);
    cv::rectangle(image, a, b, colour, thickness, cv::LINE_AA);
    const std::string text = label_of(box, names, style);
    if (!text.empty()) draw_label(image, a, text, colour, thickness);
  }
}

}  // namespace

torch::Tensor draw_boxes(const torch::Tensor& image, const std::vector<DrawnBox>& boxes,
                         const std::vector<std::string>& names, const DrawStyle& style) {
  cv::Mat picture = to_mat(image);
  draw_on(picture, boxes, names, style);
  return to_planes(picture);
}

void save_mosaic(const torch::Tensor& images, const std::vector<DrawnBox>& boxes,
                 const std::vector<std::string>& captions, const std::vector<std::string>& names,
                 const std::string& path, int64_t most) {
  constexpr double kLargest = 1920;
  const int64_t count = std::min(images.size(0), most);
  if (count == 0) return;
  const auto columns = static_cast<int>(std::ceil(std::sqrt(static_cast<double>(count))));
  const auto lines = static_cast<int>((count + columns - 1) / columns);
  const auto height = static_cast<double>(images.size(2)), width = static_cast<double>(images.size(3));
  const double scale = std::min({2.0, kLargest / (height * lines), kLargest / (width * columns)});
  const cv::Size tile(std::max(1, static_cast<int>(width * scale)), std::max(1, static_cast<int>(height * scale)));
  cv::Mat sheet(tile.height * lines, tile.width * columns, CV_8UC3, cv::Scalar(255, 255, 255));
  for (int64_t i = 0; i < count; ++i) {
    cv::Mat picture;
    cv::resize(to_mat(images[i]), picture, tile, 0, 0, scale < 1 ? cv::INTER_AREA : cv::INTER_LINEAR);
    std::vector<DrawnBox> own;
    for (DrawnBox box : boxes) {
      if (box.image != i) continue;
      box.x1 *= scale, box.x2 *= scale, box.y1 *= scale, box.y2 *= scale;
      own.push_back(box);
    }
    DrawStyle style;
    style.line_thickness = std::max(1, tile.width / 240);
    draw_on(picture, own, names, style);
    if (static_cast<size_t>(i) < captions.size()) {
      const std::string text = printable(captions[static_cast<size_t>(i)]);
      const cv::Point at(5, tile.height - 7);
      cv::putText(picture, text, at, cv::FONT_HERSHEY_SIMPLEX, 0.42, {0, 0, 0}, 3, cv::LINE_AA);
      cv::putText(picture, text, at, cv::FONT_HERSHEY_SIMPLEX, 0.42, {240, 240, 240}, 1, cv::LINE_AA);
    }
    const cv::Rect area(static_cast<int>(i) % columns * tile.width, static_cast<int>(i) / columns * tile.height,
                        tile.width, tile.height);
    picture.copyTo(sheet(area));
    cv::rectangle(sheet, area, {255, 255, 255}, 1);
  }
  save_picture(path, sheet);
}

void save_image(const torch::Tensor& image, const std::string& path) { save_picture(path, to_mat(image)); }

}  // namespace yolo9
