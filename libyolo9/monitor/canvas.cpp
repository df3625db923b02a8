#include <yolo9/monitor/canvas.h>

#include <cmath>

#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>

#include <yolo9/core/error.h>

namespace yolo9 {

namespace {

constexpr int kScale = 2;      // drawn size over saved size
constexpr int kShift = 4;      // fractional bits of drawing coordinates
constexpr int kFont = cv::FONT_HERSHEY_SIMPLEX;
constexpr double kFontHeight = 21.0;  // capital letters' height of the font at scale 1, in pixels

cv::Point fixed(cv::Point2d p) {
  constexpr double unit = kScale * (1 << kShift);
  return {static_cast<int>(std::lround(p.x * unit)), static_cast<int>(std::lround(p.y * unit))};
}

cv::Rect scaled(const cv::Rect2d& r) {
  const auto x1 = static_cast<int>(std::lround(r.x * kScale)), y1 = static_cast<int>(std::lround(r.y * kScale));
  const auto x2 = static_cast<int>(std::lround((r.x + r.width) * kScale));
  const auto y2 = static_cast<int>(std::lround((r.y + r.height) * kScale));
  return {x1, y1, x2 - x1, y2 - y1};
}

int pixels(double thickness) { return std::max(1, static_cast<int>(std::lround(thickness * kScale))); }
double font_scale(double size) { return size * kScale / kFontHeight; }
int font_thickness(double size) { return std::max(1, static_cast<int>(std::lround(size * kScale / 11))); }

}  // namespace

cv::Scalar palette_colour(int64_t k) {
  // The first ten are spaced in hue and lightness by hand; further ones walk around the hues by the golden ratio.
  static const std::vector<cv::Scalar> kFirst = {{180, 119, 31}, {14, 127, 255},  {44, 160, 44},   {40, 39, 214},
                                                 {189, 103, 148}, {75, 86, 140},  {194, 119, 227}, {127, 127, 127},
                                                 {34, 189, 188},  {207, 190, 23}};
  const int64_t index = std::max<int64_t>(k, 0);
  if (index < static_cast<int64_t>(kFirst.size())) return kFirst[static_cast<size_t>(index)];
  const double hue = std::fmod(static_cast<double>(index) * 0.618033988749895, 1.0) * 6;
  const double value = index % 2 == 0 ? 220 : 170, low = value * 0.2;
  const double mid = low + (value - low) * (1 - std::abs(std::fmod(hue, 2.0) - 1));
  switch (static_cast<int>(hue)) {
    case 0: return {low, mid, value};
    case 1: return {low, value, mid};
    case 2: return {mid, value, low};
    case 3: return {value, mid, low};
    case 4: return {value, low, mid};
    default: return {mid, low, value};
  }
}

std::string printable(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0) == 0x80) continue;  // the rest of a multi-byte character
    result += byte >= 0x20 && byte < 0x7F ? c : '?';
  }
  return result;
}

Canvas::Canvas(int width, int height)
    : width_(width), height_(height), sheet_(height * kScale, width * kScale, CV_8UC3, cv::Scalar(255, 255, 255)) {}

void Canvas::line(cv::Point2d a, cv::Point2d b, const cv::Scalar& colour, double thickness) {
  cv::line(sheet_, fixed(a), fixed(b), colour, pixels(thickness), cv::LINE_AA, kShift);
}

void Canvas::polyline(const std::vector<cv::Point2d>& points, const cv::Scalar& colour, double thickness,
                      const cv::Rect2d& clip) {
  const cv::Rect area = scaled(clip) & cv::Rect(0, 0, sheet_.cols, sheet_.rows);
  if (area.empty()) return;
  cv::Mat target = sheet_(area);
  std::vector<cv::Point> run;
  const auto flush = [&] {
    if (run.size() > 1) cv::polylines(target, run, false, colour, pixels(thickness), cv::LINE_AA, kShift);
    run.clear();
  };
  // Far points are drawn just outside, so that fixed-point coordinates cannot overflow.
  const double far = 4.0 * std::max(width_, height_);
  for (const cv::Point2d& p : points) {
    if (!std::isfinite(p.x) || !std::isfinite(p.y)) {
      flush();
      continue;
    }
    const cv::Point2d near(std::clamp(p.x, -far, far), std::clamp(p.y, -far, far));
    run.push_back(fixed(near - cv::Point2d(area.x, area.y) / double(kScale)));
  }
  flush();
}

void Canvas::dot(cv::Point2d centre, double radius, const cv::Scalar& colour) {
  if (!std::isfinite(centre.x) || !std::isfinite(centre.y)) return;
  cv::circle(sheet_, fixed(centre), static_cast<int>(std::lround(radius * kScale * (1 << kShift))), colour,
             cv::FILLED, cv::LINE_AA, kShift);
}

void Canvas::fill(const cv::Rect2d& area, const cv::Scalar& colour) {
  const cv::Rect r = scaled(area) & cv::Rect(0, 0, sheet_.cols, sheet_.rows);
  if (!r.empty()) sheet_(r).setTo(colour);
}

void Canvas::frame(const cv::Rect2d& area, const cv::Scalar& colour, double thickness) {
  const cv::Rect r = scaled(area);
  cv::rectangle(sheet_, {r.x, r.y}, {r.x + r.width, r.y + r.height}, colour, pixels(thickness), cv::LINE_AA);
}

double Canvas::text_width(const std::string& text, double size) const {
  int baseline = 0;
  return cv::getTextSize(printable(text), kFont, font_scale(size), font_thickness(size), &baseline).width /
         double(kScale);
}

void Canvas::text(const std::string& text, cv::Point2d at, double size, Align align, const cv::Scalar& colour) {
  const double width = text_width(text, size);
  const double x = align == Align::Begin ? at.x : align == Align::Centre ? at.x - width / 2 : at.x - width;
  cv::putText(sheet_, printable(text),
              {static_cast<int>(std::lround(x * kScale)), static_cast<int>(std::lround((at.y + size / 2) * kScale))},
              kFont, font_scale(size), colour, font_thickness(size), cv::LINE_AA);
}

void Canvas::vertical_text(const std::string& text, cv::Point2d at, double size) {
  const int margin = static_cast<int>(size * kScale);
  const int length = static_cast<int>(text_width(text, size) * kScale) + 2 * margin;
  cv::Mat strip(3 * margin, length, CV_8UC3, cv::Scalar(255, 255, 255));
  cv::putText(strip, printable(text), {margin, 2 * margin}, kFont, font_scale(size), {40, 40, 40},
              font_thickness(size), cv::LINE_AA);
  cv::Mat turned;
  cv::rotate(strip, turned, cv::ROTATE_90_COUNTERCLOCKWISE);
  const cv::Rect want(static_cast<int>(at.x * kScale) - turned.cols / 2,
                      static_cast<int>(at.y * kScale) - turned.rows / 2, turned.cols, turned.rows);
  const cv::Rect area = want & cv::Rect(0, 0, sheet_.cols, sheet_.rows);
  if (area.empty()) return;
  // Darkest of both, so that the strip's white does not hide what is there.
  cv::Mat target = sheet_(area);
  cv::min(target, turned(area - want.tl()), target);
}

void Canvas::picture(const cv::Mat& image, const cv::Rect2d& area) {
  const cv::Rect r = scaled(area) & cv::Rect(0, 0, sheet_.cols, sheet_.rows);
  if (r.empty() || image.empty()) return;
  cv::Mat fitted;
  cv::resize(image, fitted, r.size(), 0, 0, cv::INTER_NEAREST);
  fitted.copyTo(sheet_(r));
}

void Canvas::save(const std::string& path) const {
  cv::Mat reduced;
  cv::resize(sheet_, reduced, {width_, height_}, 0, 0, cv::INTER_AREA);
  save_picture(path, reduced);
}

void save_picture(const std::string& path, const cv::Mat& image) {
  bool written = false;
  try {
    written = cv::imwrite(path, image);
  } catch (const cv::Exception&) {
    written = false;
  }
  if (!written) {
    throw Error(ErrorKind::Usage, "cannot write the picture", path, "check the folder, its permissions and free space");
  }
}

}  // namespace yolo9
