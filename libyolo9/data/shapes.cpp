#include <yolo9/data/shapes.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <numbers>

#include <opencv2/imgproc.hpp>
#include <yolo9/core/error.h>
#include <yolo9/core/random.h>
#include <yolo9/data/image.h>
#include <yolo9/data/objects.h>

namespace yolo9 {
namespace {

enum class Shape { Circle, Square, Triangle };
constexpr int64_t kShapes = 3;
constexpr const char* kNames[kShapes] = {"circle", "square", "triangle"};

// A circle goes into a label as a polygon of so many points.
constexpr int kCirclePoints = 24;

struct Placed {
  Shape shape;
  Polygon outline;  // pixels
  Corners box;
};

uint8_t to_byte(double value) { return static_cast<uint8_t>(std::clamp(value, 0.0, 255.0)); }

// Two gentle waves, a slope and grain, in muted colours: enough that the background alone says nothing.
cv::Mat draw_background(int64_t width, int64_t height, Random& random) {
  cv::Mat image(static_cast<int>(height), static_cast<int>(width), CV_8UC3);
  const double base[3] = {random.uniform(60, 190), random.uniform(60, 190), random.uniform(60, 190)};
  const double slope_x = random.uniform(-40, 40), slope_y = random.uniform(-40, 40);
  const double wave = random.uniform(4, 14), grain = random.uniform(4, 14);
  const double period_x = random.uniform(8, 40), period_y = random.uniform(8, 40), phase = random.uniform(0, 6.3);
  for (int y = 0; y < image.rows; ++y) {
    for (int x = 0; x < image.cols; ++x) {
      const double u = static_cast<double>(x) / image.cols - 0.5, v = static_cast<double>(y) / image.rows - 0.5;
      const double common = slope_x * u + slope_y * v + wave * std::sin(x / period_x + phase) +
                            wave * std::cos(y / period_y - phase);
      for (int c = 0; c < 3; ++c) {
        image.at<cv::Vec3b>(y, x)[c] = to_byte(base[c] + common + random.uniform(-grain, grain));
      }
    }
  }
  return image;
}

Polygon outline_of(Shape shape, double cx, double cy, double radius, double turn) {
  const int count = shape == Shape::Circle ? kCirclePoints : shape == Shape::Square ? 4 : 3;
  Polygon points;
  for (int i = 0; i < count; ++i) {
    const double angle = turn + 2 * std::numbers::pi * i / count;
    points.push_back({cx + radius * std::cos(angle), cy + radius * std::sin(angle)});
  }
  return points;
}

bool overlaps(const Corners& a, const Corners& b) {
  const double w = std::min(a.x2, b.x2) - std::max(a.x1, b.x1), h = std::min(a.y2, b.y2) - std::max(a.y1, b.y1);
  if (w <= 0 || h <= 0) return false;
  const double smaller = std::min((a.x2 - a.x1) * (a.y2 - a.y1), (b.x2 - b.x1) * (b.y2 - b.y1));
  return w * h > 0.05 * smaller;
}

std::vector<Placed> place_shapes(int64_t width, int64_t height, Random& random) {
  constexpr int kTries = 40;
  const double side = static_cast<double>(std::min(width, height));
  const int64_t wanted = 1 + random.integer(4);
  std::vector<Placed> placed;
  for (int attempt = 0; attempt < kTries && static_cast<int64_t>(placed.size()) < wanted; ++attempt) {
    const auto shape = static_cast<Shape>(random.integer(kShapes));
    const double radius = side * random.uniform(0.13, 0.24);
    const double turn = shape == Shape::Circle ? 0 : random.uniform(0, 2 * std::numbers::pi);
    const double cx = random.uniform(radius + 1, static_cast<double>(width) - radius - 1);
    const double cy = random.uniform(radius + 1, static_cast<double>(height) - radius - 1);
    Placed candidate{shape, outline_of(shape, cx, cy, radius, turn), {}};
    candidate.box = box_of_points(candidate.outline);
    const bool free = std::none_of(placed.begin(), placed.end(),
                                   [&](const Placed& other) { return overlaps(candidate.box, other.box); });
    if (free) placed.push_back(std::move(candidate));
  }
  return placed;
}

// A clear colour, far from the background under the shape's centre.
cv::Scalar draw_colour(const cv::Mat& image, const Placed& shape, Random& random) {
  const CenterBox box = to_center(shape.box);
  const auto under = image.at<cv::Vec3b>(static_cast<int>(box.cy), static_cast<int>(box.cx));
  double colour[3];
  for (int c = 0; c < 3; ++c) {
    const double shift = random.uniform(60, 110);
    colour[c] = under[c] > 127 ? under[c] - shift : under[c] + shift;
  }
  colour[random.integer(3)] = random.uniform(0, 255);
  return {colour[0], colour[1], colour[2]};
}

// Fills with edges smoothed by hand, since OpenCV's anti-aliasing may change from one version to the next.
void fill_shape(cv::Mat& image, const Placed& shape, const cv::Scalar& colour) {
  const int x1 = std::max(static_cast<int>(shape.box.x1) - 1, 0), y1 = std::max(static_cast<int>(shape.box.y1) - 1, 0);
  const int x2 = std::min(static_cast<int>(shape.box.x2) + 2, image.cols);
  const int y2 = std::min(static_cast<int>(shape.box.y2) + 2, image.rows);
  const size_t count = shape.outline.size();
  for (int y = y1; y < y2; ++y) {
    for (int x = x1; x < x2; ++x) {
      double inside = 1;  // a convex outline, clockwise on the screen: the least signed distance to an edge
      for (size_t i = 0; i < count; ++i) {
        const Point &a = shape.outline[i], &b = shape.outline[(i + 1) % count];
        const double ex = b.x - a.x, ey = b.y - a.y;
        const double distance = (ex * (y + 0.5 - a.y) - ey * (x + 0.5 - a.x)) / std::hypot(ex, ey);
        inside = std::min(inside, distance + 0.5);
      }
      if (inside <= 0) continue;
      auto& pixel = image.at<cv::Vec3b>(y, x);
      for (int c = 0; c < 3; ++c) pixel[c] = to_byte(pixel[c] + (colour[c] - pixel[c]) * std::min(inside, 1.0));
    }
  }
}

std::string label_row(const Placed& shape, double width, double height, bool as_polygon) {
  std::string row = std::to_string(static_cast<int>(shape.shape));
  const auto add = [&row](double value) {
    char text[32];
    std::snprintf(text, sizeof(text), " %.6f", value);
    row += text;
  };
  if (as_polygon) {
    for (const Point& point : shape.outline) {
      add(point.x / width);
      add(point.y / height);
    }
  } else {
    const CenterBox box = normalise(shape.box, width, height);
    for (const double value : {box.cx, box.cy, box.w, box.h}) add(value);
  }
  return row + "\n";
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  stream << text;
  stream.close();
  if (!stream) throw Error(ErrorKind::Data, "cannot write the file", path);
}

void write_split(const std::string& folder, const std::string& split, uint64_t stream, int64_t count,
                 const ShapesOptions& options) {
  const std::string images = folder + "/images/" + split, labels = folder + "/labels/" + split;
  for (const std::string& path : {images, labels}) {
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (error) throw Error(ErrorKind::Data, "cannot make the folder: " + error.message(), path);
  }
  const auto width = static_cast<double>(options.width), height = static_cast<double>(options.height);
  for (int64_t i = 0; i < count; ++i) {
    Random random{options.seed, stream, static_cast<uint64_t>(i)};
    cv::Mat image = draw_background(options.width, options.height, random);
    std::string text;
    for (const Placed& shape : place_shapes(options.width, options.height, random)) {
      fill_shape(image, shape, draw_colour(image, shape, random));
      text += label_row(shape, width, height, random.uniform() < 0.5);
    }
    char name[32];
    std::snprintf(name, sizeof(name), "%05lld", static_cast<long long>(i));
    write_image(images + "/" + name + ".png", image);
    write_text(labels + "/" + name + ".txt", text);
  }
}

}  // namespace

void make_shapes(const std::string& folder, const ShapesOptions& options) {
  if (options.train < 0 || options.val < 0 || options.train + options.val == 0) {
    throw Error(ErrorKind::Usage, "the numbers of pictures must not be negative, nor both 0");
  }
  if (std::min(options.width, options.height) < 32 || std::max(options.width, options.height) > 8192) {
    throw Error(ErrorKind::Usage, "pictures must be 32 to 8192 pixels wide and high");
  }
  write_split(folder, "train", 1, options.train, options);
  write_split(folder, "val", 2, options.val, options);
  std::string yaml = "# Coloured shapes, made by yolo9-data make-shapes\n";
  yaml += "path: .\ntrain: images/train\nval: images/val\nnames:\n";
  for (int64_t i = 0; i < kShapes; ++i) yaml += "  " + std::to_string(i) + ": " + kNames[i] + "\n";
  write_text(folder + "/data.yaml", yaml);
}

}  // namespace yolo9
