#include <yolo9/data/objects.h>

#include <algorithm>
#include <cmath>

namespace yolo9 {

CenterBox to_center(const Corners& box) {
  return {(box.x1 + box.x2) / 2, (box.y1 + box.y2) / 2, box.x2 - box.x1, box.y2 - box.y1};
}

Corners to_corners(const CenterBox& box) {
  return {box.cx - box.w / 2, box.cy - box.h / 2, box.cx + box.w / 2, box.cy + box.h / 2};
}

Corners denormalise(const CenterBox& box, double width, double height, double pad_x, double pad_y) {
  return {width * (box.cx - box.w / 2) + pad_x, height * (box.cy - box.h / 2) + pad_y,
          width * (box.cx + box.w / 2) + pad_x, height * (box.cy + box.h / 2) + pad_y};
}

Polygon denormalise(const Polygon& polygon, double width, double height, double pad_x, double pad_y) {
  Polygon result;
  result.reserve(polygon.size());
  for (const Point& point : polygon) result.push_back({width * point.x + pad_x, height * point.y + pad_y});
  return result;
}

CenterBox normalise(const Corners& box, double width, double height) {
  const CenterBox center = to_center(box);
  return {center.cx / width, center.cy / height, center.w / width, center.h / height};
}

Corners clip(const Corners& box, double width, double height) {
  return {std::clamp(box.x1, 0.0, width), std::clamp(box.y1, 0.0, height), std::clamp(box.x2, 0.0, width),
          std::clamp(box.y2, 0.0, height)};
}

Corners box_of_inside_points(const Polygon& polygon, double width, double height) {
  Polygon inside;
  inside.reserve(polygon.size());
  bool any_x = false;
  for (const Point& point : polygon) {
    if (point.x >= 0 && point.y >= 0 && point.x <= width && point.y <= height) {
      inside.push_back(point);
      any_x = any_x || point.x != 0;
    }
  }
  return any_x ? box_of_points(inside) : Corners{};
}

Corners box_of_points(const Polygon& polygon) {
  Corners box{polygon.front().x, polygon.front().y, polygon.front().x, polygon.front().y};
  for (const Point& point : polygon) {
    box.x1 = std::min(box.x1, point.x);
    box.y1 = std::min(box.y1, point.y);
    box.x2 = std::max(box.x2, point.x);
    box.y2 = std::max(box.y2, point.y);
  }
  return box;
}

Polygon resample(const Polygon& polygon, int64_t count) {
  const auto vertices = static_cast<int64_t>(polygon.size());  // vertex `vertices` is vertex 0 again
  if (vertices == 0 || count <= 0) return {};
  Polygon result(static_cast<size_t>(count));
  const double step = count > 1 ? static_cast<double>(vertices) / static_cast<double>(count - 1) : 0.0;
  for (int64_t i = 0; i < count; ++i) {
    const double position = i + 1 == count && count > 1 ? static_cast<double>(vertices) : static_cast<double>(i) * step;
    const int64_t before = std::min(static_cast<int64_t>(position), vertices - 1);
    const double share = position - static_cast<double>(before);
    const Point& a = polygon[static_cast<size_t>(before)];
    const Point& b = polygon[static_cast<size_t>((before + 1) % vertices)];
    result[static_cast<size_t>(i)] = {a.x + (b.x - a.x) * share, a.y + (b.y - a.y) * share};
  }
  return result;
}

std::vector<double> covered_shares(const Corners& box, const std::vector<Corners>& others) {
  std::vector<double> shares;
  shares.reserve(others.size());
  for (const Corners& other : others) {
    const double w = std::min(box.x2, other.x2) - std::max(box.x1, other.x1);
    const double h = std::min(box.y2, other.y2) - std::max(box.y1, other.y1);
    const double area = (other.x2 - other.x1) * (other.y2 - other.y1) + 1e-7;
    shares.push_back(std::max(w, 0.0) * std::max(h, 0.0) / area);
  }
  return shares;
}

bool is_candidate(const Corners& before, const Corners& after, const CandidateRule& rule) {
  constexpr double kEps = 1e-16;
  const double w = after.x2 - after.x1, h = after.y2 - after.y1;
  const double area_before = (before.x2 - before.x1) * (before.y2 - before.y1);
  const double aspect = std::max(w / (h + kEps), h / (w + kEps));
  return w > rule.min_side_pixels && h > rule.min_side_pixels && w * h / (area_before + kEps) > rule.min_area_share &&
         aspect < rule.max_aspect;
}

Corners undo_letterbox(const Corners& box, double ratio, double pad_x, double pad_y, double width, double height) {
  return clip({(box.x1 - pad_x) / ratio, (box.y1 - pad_y) / ratio, (box.x2 - pad_x) / ratio, (box.y2 - pad_y) / ratio},
              width, height);
}

CenteredLetterbox centered_letterbox(int64_t network_height, int64_t network_width, int64_t height, int64_t width) {
  const auto h1 = static_cast<double>(network_height), w1 = static_cast<double>(network_width);
  const auto h0 = static_cast<double>(height), w0 = static_cast<double>(width);
  const double ratio = std::min(h1 / h0, w1 / w0);
  return {ratio, (w1 - w0 * ratio) / 2, (h1 - h0 * ratio) / 2};
}

int64_t round_up(double value, int64_t divisor) {
  return static_cast<int64_t>(std::ceil(value / static_cast<double>(divisor))) * divisor;
}

}  // namespace yolo9
