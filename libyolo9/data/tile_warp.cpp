#include <yolo9/data/tile_warp.h>

#include <algorithm>
#include <cmath>

#include <yolo9/core/error.h>
#include <yolo9/data/image.h>
#include <yolo9/data/sample_row.h>

namespace yolo9 {
namespace {

constexpr double kFixedOne = 65536;
constexpr double kSafety = 1e-7;  // pixels: more than the rounding in the ends of an interval
// A line of samples is straight in a picture unless there is perspective; then it is cut into short straight pieces.
constexpr int64_t kStraightPiece = 16;

struct Place {
  double x, y;
};

Place at(const CanvasView::Row& row, double x) {
  const double w = row.w0 + row.dw * x;
  return {(row.x0 + row.dx * x) / w, (row.y0 + row.dy * x) / w};
}

Place map(const AffineMap& m, Place p) { return {m.xx * p.x + m.xy * p.y + m.x0, m.yx * p.x + m.yy * p.y + m.y0}; }

// Narrows [low, high] to where a + b x >= 0.
void narrow(double a, double b, double& low, double& high) {
  if (b > 0) {
    low = std::max(low, -a / b);
  } else if (b < 0) {
    high = std::min(high, -a / b);
  } else if (a < 0) {
    high = -1;
  }
}

// The real interval of x in [0, last] for which the row is inside the rectangle and in front of the viewer.
std::pair<double, double> interval(const CanvasView::Row& r, double last, const CanvasView::Region& box) {
  double low = 0, high = last;
  constexpr double kNearest = 1e-6;
  narrow(r.w0 - kNearest, r.dw, low, high);
  narrow(r.x0 - box.x1 * r.w0, r.dx - box.x1 * r.dw, low, high);
  narrow(box.x2 * r.w0 - r.x0, box.x2 * r.dw - r.dx, low, high);
  narrow(r.y0 - box.y1 * r.w0, r.dy - box.y1 * r.dw, low, high);
  narrow(box.y2 * r.w0 - r.y0, box.y2 * r.dw - r.dy, low, high);
  return {low, high};
}

Matrix3 invert(const Matrix3& m) {
  const auto minor = [&m](int a, int b, int c, int d) { return m[a] * m[d] - m[b] * m[c]; };
  const double determinant = m[0] * minor(4, 5, 7, 8) - m[1] * minor(3, 5, 6, 8) + m[2] * minor(3, 4, 6, 7);
  if (!(std::abs(determinant) > 1e-12)) {
    throw Error(ErrorKind::Usage, "an augmentation flattens the picture to a line", "hyp", "lower scale or shear");
  }
  const Matrix3 adjugate{minor(4, 5, 7, 8),  -minor(1, 2, 7, 8), minor(1, 2, 4, 5),
                         -minor(3, 5, 6, 8), minor(0, 2, 6, 8),  -minor(0, 2, 3, 5),
                         minor(3, 4, 6, 7),  -minor(0, 1, 6, 7), minor(0, 1, 3, 4)};
  Matrix3 inverse;
  for (size_t i = 0; i < 9; ++i) inverse[i] = adjugate[i] / determinant;
  return inverse;
}

// The canvas as it would have been drawn, a pixel at a time: for the borders of tiles.
class Canvas {
 public:
  explicit Canvas(const std::vector<WarpTile>& tiles) : tiles_(tiles) {}

  void sample(Place p, uint8_t* out) const {
    const double left = std::floor(p.x), top = std::floor(p.y);
    const auto x = static_cast<int64_t>(left), y = static_cast<int64_t>(top);
    const double fx = p.x - left, fy = p.y - top;
    double sum[3] = {0.5, 0.5, 0.5};
    add(x, y, (1 - fx) * (1 - fy), sum);
    add(x + 1, y, fx * (1 - fy), sum);
    add(x, y + 1, (1 - fx) * fy, sum);
    add(x + 1, y + 1, fx * fy, sum);
    for (int c = 0; c < 3; ++c) out[c] = static_cast<uint8_t>(sum[c]);
  }

 private:
  void add(int64_t x, int64_t y, double weight, double* sum) const {
    if (weight == 0) return;
    for (auto tile = tiles_.rbegin(); tile != tiles_.rend(); ++tile) {
      if (x < tile->x1 || x >= tile->x2 || y < tile->y1 || y >= tile->y2 || tile->pixels.empty()) continue;
      const Place p = map(tile->to_pixels, {static_cast<double>(x), static_cast<double>(y)});
      const double px = std::clamp(p.x, 0.0, tile->pixels.cols - 1.0),
                   py = std::clamp(p.y, 0.0, tile->pixels.rows - 1.0);
      const int column = std::min(static_cast<int>(px), tile->pixels.cols - 2);
      const int row = std::min(static_cast<int>(py), tile->pixels.rows - 2);
      const double fx = px - column, fy = py - row;
      const uint8_t *upper = tile->pixels.ptr(row) + 3 * column, *lower = tile->pixels.ptr(row + 1) + 3 * column;
      for (int c = 0; c < 3; ++c) {
        sum[c] += weight * ((upper[c] * (1 - fx) + upper[c + 3] * fx) * (1 - fy) +
                            (lower[c] * (1 - fx) + lower[c + 3] * fx) * fy);
      }
      return;
    }
    for (int c = 0; c < 3; ++c) sum[c] += weight * kFillGrey;
  }

  const std::vector<WarpTile>& tiles_;
};

// Samples [begin, end) of a row, all of which lie within one tile.
void sample_span(const WarpTile& tile, const CanvasView::Row& row, CanvasView::Span span, uint8_t* out) {
  const PixelSource source{tile.pixels.data, static_cast<int32_t>(tile.pixels.step), tile.pixels.cols,
                           tile.pixels.rows};
  const int64_t piece = row.dw == 0 ? span.end - span.begin : kStraightPiece;
  for (int64_t x = span.begin; x < span.end; x += piece) {
    const int64_t count = std::min(piece, span.end - x);
    const auto last = static_cast<double>(x + std::max<int64_t>(count - 1, 1));
    const Place first = map(tile.to_pixels, at(row, static_cast<double>(x))), then = map(tile.to_pixels, at(row, last));
    const double steps = last - static_cast<double>(x);
    const auto fixed = [](double value) { return static_cast<int32_t>(std::lround(value * kFixedOne)); };
    sample_row(source,
               {fixed(first.x), fixed(first.y), fixed((then.x - first.x) / steps), fixed((then.y - first.y) / steps)},
               count, out + 3 * x);
  }
}

}  // namespace

CanvasView::CanvasView(const Matrix3& matrix, int64_t height, int64_t width)
    : inverse_(invert(matrix)), height_(height), width_(width) {
  // With an affine map the zoom is the same everywhere; with perspective it is largest at a corner.
  zoom_x_ = zoom_y_ = 0;
  const auto w = static_cast<double>(width - 1), h = static_cast<double>(height - 1);
  for (const Place corner : {Place{0, 0}, Place{w, 0}, Place{0, h}, Place{w, h}}) {
    const auto canvas = [this](double x, double y) {
      const double z = inverse_[6] * x + inverse_[7] * y + inverse_[8];
      return Place{(inverse_[0] * x + inverse_[1] * y + inverse_[2]) / z,
                   (inverse_[3] * x + inverse_[4] * y + inverse_[5]) / z};
    };
    const Place here = canvas(corner.x, corner.y), right = canvas(corner.x + 1, corner.y),
                below = canvas(corner.x, corner.y + 1);
    // Canvas pixels that an output pixel moves by, across and down.
    const double across = std::max(std::abs(right.x - here.x), std::abs(below.x - here.x));
    const double down = std::max(std::abs(right.y - here.y), std::abs(below.y - here.y));
    zoom_x_ = std::max(zoom_x_, 1 / std::max(across, 1e-6));
    zoom_y_ = std::max(zoom_y_, 1 / std::max(down, 1e-6));
  }
}

CanvasView::Row CanvasView::row(int64_t y) const {
  const auto v = static_cast<double>(y);
  return {inverse_[1] * v + inverse_[2], inverse_[0], inverse_[4] * v + inverse_[5], inverse_[3],
          inverse_[7] * v + inverse_[8], inverse_[6]};
}

CanvasView::Span CanvasView::inside(const Row& r, double x1, double y1, double x2, double y2) const {
  const auto [low, high] = interval(r, static_cast<double>(width_ - 1), {x1, y1, x2, y2});
  if (!(high >= low)) return {};
  return {static_cast<int64_t>(std::ceil(low + (low > 0 ? kSafety : 0))),
          static_cast<int64_t>(std::floor(high - (high < static_cast<double>(width_ - 1) ? kSafety : 0))) + 1};
}

CanvasView::Span CanvasView::around(const Row& r, double x1, double y1, double x2, double y2) const {
  const auto [low, high] = interval(r, static_cast<double>(width_ - 1), {x1, y1, x2, y2});
  if (!(high >= low)) return {};
  return {std::max<int64_t>(static_cast<int64_t>(std::ceil(low - kSafety)), 0),
          std::min<int64_t>(static_cast<int64_t>(std::floor(high + kSafety)) + 1, width_)};
}

CanvasView::Region CanvasView::shown(double x1, double y1, double x2, double y2) const {
  Region region{1e18, 1e18, -1e18, -1e18};
  for (int64_t y = 0; y < height_; ++y) {
    const Row r = row(y);
    const auto [low, high] = interval(r, static_cast<double>(width_ - 1), {x1, y1, x2, y2});
    if (!(high >= low)) continue;
    for (const double x : {low, high}) {
      const Place p = at(r, x);
      region = {std::min(region.x1, p.x), std::min(region.y1, p.y), std::max(region.x2, p.x), std::max(region.y2, p.y)};
    }
  }
  if (region.x2 < region.x1) return {0, 0, 0, 0};
  return {std::max(region.x1 - 1, x1), std::max(region.y1 - 1, y1), std::min(region.x2 + 1, x2),
          std::min(region.y2 + 1, y2)};
}

CanvasView::Region CanvasView::Region::joined(const Region& other) const {
  if (empty()) return other;
  if (other.empty()) return *this;
  return {std::min(x1, other.x1), std::min(y1, other.y1), std::max(x2, other.x2), std::max(y2, other.y2)};
}

void warp_tiles(const std::vector<WarpTile>& tiles, const CanvasView& view, cv::Mat& out) {
  const Canvas canvas(tiles);
  std::vector<CanvasView::Span> inner(tiles.size()), outer(tiles.size());
  for (int64_t y = 0; y < view.height(); ++y) {
    const CanvasView::Row row = view.row(y);
    uint8_t* line = out.ptr(static_cast<int>(y));
    std::fill(line, line + 3 * view.width(), static_cast<uint8_t>(kFillGrey));
    for (size_t i = 0; i < tiles.size(); ++i) {
      const WarpTile& t = tiles[i];
      inner[i] = outer[i] = {};
      if (t.pixels.empty() || t.x2 <= t.x1 || t.y2 <= t.y1) continue;
      const auto x1 = static_cast<double>(t.x1), y1 = static_cast<double>(t.y1);
      const auto x2 = static_cast<double>(t.x2), y2 = static_cast<double>(t.y2);
      inner[i] = view.inside(row, x1, y1, x2 - 1, y2 - 1);
      outer[i] = view.around(row, x1 - 1, y1 - 1, x2, y2);
      if (!inner[i].empty()) sample_span(t, row, inner[i], line);
    }
    const auto mix = [&](int64_t begin, int64_t end) {
      for (int64_t x = begin; x < end; ++x) canvas.sample(at(row, static_cast<double>(x)), line + 3 * x);
    };
    for (size_t i = 0; i < tiles.size(); ++i) {
      if (outer[i].empty()) continue;
      if (inner[i].empty()) {
        mix(outer[i].begin, outer[i].end);
      } else {
        mix(outer[i].begin, inner[i].begin);
        mix(inner[i].end, outer[i].end);
      }
    }
  }
}

}  // namespace yolo9
