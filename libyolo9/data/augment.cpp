#include <yolo9/data/augment.h>

#include <cmath>
#include <numbers>

#include <yolo9/data/image.h>
#include <opencv2/imgproc.hpp>

namespace yolo9 {
namespace {

constexpr int64_t kPolygonPoints = 1000;
constexpr double kMinAreaShareOfBox = 0.10, kMinAreaShareOfPolygon = 0.01;
constexpr double kLargestHiddenShare = 0.30;

Matrix3 multiply(const Matrix3& a, const Matrix3& b) {
  Matrix3 c{};
  for (size_t i = 0; i < 3; ++i) {
    for (size_t j = 0; j < 3; ++j) {
      for (size_t k = 0; k < 3; ++k) c[3 * i + j] += a[3 * i + k] * b[3 * k + j];
    }
  }
  return c;
}

Point transform(const Matrix3& m, Point p, bool divide) {
  const double x = m[0] * p.x + m[1] * p.y + m[2], y = m[3] * p.x + m[4] * p.y + m[5];
  if (!divide) return {x, y};
  const double z = m[6] * p.x + m[7] * p.y + m[8];
  return {x / z, y / z};
}

Corners mirror(const Corners& box, double width) { return {width - box.x2, box.y1, width - box.x1, box.y2}; }

std::vector<Corners> boxes_of(const Objects& objects) {
  std::vector<Corners> boxes;
  boxes.reserve(objects.size());
  for (const Object& object : objects) boxes.push_back(object.box);
  return boxes;
}

}  // namespace

PerspectiveDraws draw_perspective(const AugmentOptions& options, Random& random) {
  const auto around = [&random](double center, double range) { return random.uniform(center - range, center + range); };
  PerspectiveDraws draws;
  draws.perspective_x = around(0, options.perspective);
  draws.perspective_y = around(0, options.perspective);
  draws.angle_degrees = around(0, options.degrees);
  draws.scale = around(1, options.scale);
  draws.shear_x_degrees = around(0, options.shear);
  draws.shear_y_degrees = around(0, options.shear);
  draws.translate_x = around(0.5, options.translate);
  draws.translate_y = around(0.5, options.translate);
  return draws;
}

Matrix3 perspective_matrix(const PerspectiveDraws& draws, int64_t height, int64_t width, int64_t out_height,
                           int64_t out_width) {
  constexpr double kRadians = std::numbers::pi / 180;
  const Matrix3 center{1, 0, -static_cast<double>(width) / 2, 0, 1, -static_cast<double>(height) / 2, 0, 0, 1};
  const Matrix3 perspective{1, 0, 0, 0, 1, 0, draws.perspective_x, draws.perspective_y, 1};
  const double cosine = draws.scale * std::cos(draws.angle_degrees * kRadians);
  const double sine = draws.scale * std::sin(draws.angle_degrees * kRadians);
  const Matrix3 rotation{cosine, sine, 0, -sine, cosine, 0, 0, 0, 1};
  const Matrix3 shear{
      1, std::tan(draws.shear_x_degrees * kRadians), 0, std::tan(draws.shear_y_degrees * kRadians), 1, 0, 0, 0, 1};
  const Matrix3 translation{1, 0, draws.translate_x * static_cast<double>(out_width),
                            0, 1, draws.translate_y * static_cast<double>(out_height),
                            0, 0, 1};
  return multiply(translation, multiply(shear, multiply(rotation, multiply(perspective, center))));
}

cv::Mat warp(const cv::Mat& image, const Matrix3& matrix, bool divide, Border border) {
  constexpr Matrix3 kIdentity{1, 0, 0, 0, 1, 0, 0, 0, 1};
  if (border.height == 0 && border.width == 0 && matrix == kIdentity) return image;
  const cv::Size size(image.cols + static_cast<int>(2 * border.width),
                      image.rows + static_cast<int>(2 * border.height));
  const cv::Scalar fill(kFillGrey, kFillGrey, kFillGrey);
  Matrix3 values = matrix;
  const cv::Mat m(3, 3, CV_64F, values.data());
  cv::Mat result;
  if (divide) {
    cv::warpPerspective(image, result, m, size, cv::INTER_LINEAR, cv::BORDER_CONSTANT, fill);
  } else {
    cv::warpAffine(image, result, m.rowRange(0, 2), size, cv::INTER_LINEAR, cv::BORDER_CONSTANT, fill);
  }
  return result;
}

std::vector<Corners> warp_boxes(const Objects& objects, const Matrix3& matrix, bool divide, int64_t out_height,
                                int64_t out_width) {
  const auto height = static_cast<double>(out_height), width = static_cast<double>(out_width);
  std::vector<Corners> boxes;
  boxes.reserve(objects.size());
  for (const Object& object : objects) {
    const Corners& box = object.box;
    if (object.polygon.empty()) {
      Polygon corners{{box.x1, box.y1}, {box.x2, box.y2}, {box.x1, box.y2}, {box.x2, box.y1}};
      for (Point& point : corners) point = transform(matrix, point, divide);
      boxes.push_back(clip(box_of_points(corners), width, height));
    } else {
      Polygon points = resample(object.polygon, kPolygonPoints);
      for (Point& point : points) point = transform(matrix, point, divide);
      boxes.push_back(box_of_inside_points(points, width, height));
    }
  }
  return boxes;
}

Objects warp_objects(const Objects& objects, const Matrix3& matrix, double scale, bool divide, int64_t out_height,
                     int64_t out_width) {
  const std::vector<Corners> boxes = warp_boxes(objects, matrix, divide, out_height, out_width);
  Objects kept;
  for (size_t i = 0; i < objects.size(); ++i) {
    const Corners& old = objects[i].box;
    CandidateRule rule;
    rule.min_area_share = objects[i].polygon.empty() ? kMinAreaShareOfBox : kMinAreaShareOfPolygon;
    if (is_candidate({old.x1 * scale, old.y1 * scale, old.x2 * scale, old.y2 * scale}, boxes[i], rule)) {
      kept.push_back({objects[i].class_index, boxes[i], {}});
    }
  }
  return kept;
}

void apply_perspective(cv::Mat& image, Objects& objects, const PerspectiveDraws& draws, bool divide, Border border) {
  const int64_t out_height = image.rows + 2 * border.height, out_width = image.cols + 2 * border.width;
  const Matrix3 matrix = perspective_matrix(draws, image.rows, image.cols, out_height, out_width);
  image = warp(image, matrix, divide, border);
  objects = warp_objects(objects, matrix, draws.scale, divide, out_height, out_width);
}

void flip_left_right(cv::Mat& image, Objects& objects) {
  cv::flip(image, image, 1);
  const double width = image.cols;
  for (Object& object : objects) {
    object.box = mirror(object.box, width);
    for (Point& point : object.polygon) point.x = width - point.x;
  }
}

void flip_up_down(cv::Mat& image, Objects& objects) {
  cv::flip(image, image, 0);
  const double height = image.rows;
  for (Object& object : objects) {
    object.box = {object.box.x1, height - object.box.y2, object.box.x2, height - object.box.y1};
    for (Point& point : object.polygon) point.y = height - point.y;
  }
}

HsvGains draw_hsv(const AugmentOptions& options, Random& random) {
  HsvGains gains;
  gains.hue = random.uniform(-1, 1) * options.hsv_h + 1;
  gains.saturation = random.uniform(-1, 1) * options.hsv_s + 1;
  gains.value = random.uniform(-1, 1) * options.hsv_v + 1;
  return gains;
}

cv::Mat mix(const cv::Mat& a, const cv::Mat& b, double ratio) {
  TORCH_CHECK(a.size() == b.size() && a.type() == CV_8UC3 && b.type() == CV_8UC3,
              "[mix] the pictures differ in size or type");
  // 256 products of each picture instead of two multiplications a byte; the sums are the same doubles.
  std::array<double, 256> share_a, share_b;
  for (size_t i = 0; i < 256; ++i) {
    share_a[i] = static_cast<double>(i) * ratio;
    share_b[i] = static_cast<double>(i) * (1 - ratio);
  }
  cv::Mat result(a.size(), CV_8UC3);
  for (int y = 0; y < a.rows; ++y) {
    const uint8_t *row_a = a.ptr<uint8_t>(y), *row_b = b.ptr<uint8_t>(y);
    uint8_t* out = result.ptr<uint8_t>(y);
    for (int i = 0; i < 3 * a.cols; ++i) out[i] = static_cast<uint8_t>(share_a[row_a[i]] + share_b[row_b[i]]);
  }
  return result;
}

double draw_mixup_ratio(Random& random) { return random.beta(32, 32); }

std::vector<int64_t> paste_candidates(const Objects& objects, int64_t width) {
  const std::vector<Corners> boxes = boxes_of(objects);
  std::vector<int64_t> candidates;
  for (size_t i = 0; i < objects.size(); ++i) {
    if (objects[i].polygon.empty()) continue;
    const std::vector<double> hidden = covered_shares(mirror(objects[i].box, static_cast<double>(width)), boxes);
    if (std::all_of(hidden.begin(), hidden.end(), [](double share) { return share < kLargestHiddenShare; })) {
      candidates.push_back(static_cast<int64_t>(i));
    }
  }
  return candidates;
}

std::vector<int64_t> draw_pasted(const std::vector<int64_t>& candidates, double share, Random& random) {
  const auto count = static_cast<int64_t>(candidates.size());
  const auto wanted = static_cast<size_t>(std::nearbyint(std::clamp(share, 0.0, 1.0) * static_cast<double>(count)));
  const std::vector<int64_t> order = random.permutation(count);
  std::vector<int64_t> chosen;
  for (size_t i = 0; i < wanted; ++i) chosen.push_back(candidates[static_cast<size_t>(order[i])]);
  return chosen;
}

Object mirrored(const Object& object, double width) {
  Object copy = object;
  copy.box = mirror(copy.box, width);
  for (Point& point : copy.polygon) point.x = width - point.x;
  return copy;
}

void paste_mirrored(cv::Mat& image, const std::vector<Polygon>& outlines) {
  if (outlines.empty()) return;
  cv::Mat mask = cv::Mat::zeros(image.size(), CV_8UC1);
  for (const Polygon& outline : outlines) {
    std::vector<cv::Point> points;
    for (const Point& point : outline) points.emplace_back(static_cast<int>(point.x), static_cast<int>(point.y));
    cv::drawContours(mask, std::vector<std::vector<cv::Point>>{points}, -1, cv::Scalar(255), cv::FILLED);
  }
  cv::Mat mirrored_image;
  cv::flip(image, mirrored_image, 1);
  cv::flip(mask, mask, 1);
  mirrored_image.copyTo(image, mask);
}

void copy_paste(cv::Mat& image, Objects& objects, const std::vector<int64_t>& chosen) {
  std::vector<Polygon> outlines;
  for (const int64_t index : chosen) {
    const Object& object = objects.at(static_cast<size_t>(index));
    outlines.push_back(object.polygon);
    objects.push_back(mirrored(Object(object), image.cols));
  }
  paste_mirrored(image, outlines);
}

}  // namespace yolo9
