#include <yolo9/monitor/chart.h>

#include <cmath>
#include <cstdio>
#include <limits>

namespace yolo9 {

namespace {

const cv::Scalar kGrid(230, 230, 230), kFrame(120, 120, 120);

double tick_step(const Range& range, int count) {
  const double rough = (range.high - range.low) / std::max(count, 1);
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough * 0.999) return factor * power;
  }
  return 10 * power;
}

}  // namespace

Range range_of(const std::vector<double>& values, bool from_zero) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const double v : values) {
    if (!std::isfinite(v)) continue;
    low = std::min(low, v);
    high = std::max(high, v);
  }
  if (low > high) return {0, 1};
  if (from_zero) low = std::min(low, 0.0);
  const double margin = high > low ? 0.05 * (high - low) : high != 0 ? 0.1 * std::abs(high) : 0.1;
  return {from_zero && low == 0 ? 0 : low - margin, high + margin};
}

std::vector<double> round_ticks(const Range& range, int count) {
  std::vector<double> ticks;
  if (count < 1 || !(range.high > range.low) || !std::isfinite(range.high - range.low)) return ticks;
  const double step = tick_step(range, count);
  const double first = std::ceil(range.low / step - 1e-9);
  for (double k = first; k * step <= range.high + 1e-9 * step && ticks.size() < 100; ++k) ticks.push_back(k * step);
  return ticks;
}

std::string tick_text(double value, double step) {
  char text[40];
  if (std::abs(value) < step * 1e-6) return "0";
  if (std::abs(value) >= 1e5 || step < 1e-4) {
    std::snprintf(text, sizeof text, "%.4g", value);
  } else {
    const int decimals = std::clamp(static_cast<int>(std::ceil(-std::log10(step) - 1e-9)), 0, 6);
    std::snprintf(text, sizeof text, "%.*f", decimals, value);
  }
  return text;
}

Axes::Axes(Canvas& canvas, const cv::Rect2d& area, const Options& options)
    : canvas_(canvas), x_(options.x), y_(options.y) {
  const double size = options.text_size;
  const auto y_ticks = round_ticks(y_, options.y_ticks), x_ticks = round_ticks(x_, options.x_ticks);
  const double y_step = y_ticks.size() > 1 ? y_ticks[1] - y_ticks[0] : 1;
  const double x_step = x_ticks.size() > 1 ? x_ticks[1] - x_ticks[0] : 1;
  double label_width = 0;
  for (const double t : y_ticks) label_width = std::max(label_width, canvas.text_width(tick_text(t, y_step), size));
  const double left = label_width + size * (options.y_label.empty() ? 1.6 : 3.6);
  const double top = options.title.empty() ? size : size * 3;
  const double bottom = size * (options.x_label.empty() ? 2.6 : 4.8);
  inner_ = {area.x + left, area.y + top, area.width - left - size * 1.6, area.height - top - bottom};

  for (const double t : y_ticks) {
    const cv::Point2d p = at(x_.low, t);
    if (options.grid) canvas.line(p, {inner_.x + inner_.width, p.y}, kGrid);
    canvas.line({p.x - size * 0.4, p.y}, p, kFrame);
    canvas.text(tick_text(t, y_step), {p.x - size * 0.8, p.y}, size, Align::End);
  }
  for (const double t : x_ticks) {
    const cv::Point2d p = at(t, y_.low);
    if (options.grid) canvas.line(p, {p.x, inner_.y}, kGrid);
    canvas.line(p, {p.x, p.y + size * 0.4}, kFrame);
    canvas.text(tick_text(t, x_step), {p.x, p.y + size * 1.4}, size, Align::Centre);
  }
  canvas.frame(inner_, kFrame);
  const double middle = inner_.x + inner_.width / 2;
  if (!options.title.empty()) canvas.text(options.title, {middle, area.y + size * 1.5}, size * 1.2, Align::Centre);
  if (!options.x_label.empty()) {
    canvas.text(options.x_label, {middle, inner_.y + inner_.height + size * 3.4}, size * 1.1, Align::Centre);
  }
  if (!options.y_label.empty()) {
    canvas.vertical_text(options.y_label, {area.x + size * 1.2, inner_.y + inner_.height / 2}, size * 1.1);
  }
}

cv::Point2d Axes::at(double x, double y) const {
  return {inner_.x + (x - x_.low) / (x_.high - x_.low) * inner_.width,
          inner_.y + (y_.high - y) / (y_.high - y_.low) * inner_.height};
}

void Axes::curve(const std::vector<double>& x, const std::vector<double>& y, const cv::Scalar& colour,
                 double thickness) {
  std::vector<cv::Point2d> points;
  for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) points.push_back(at(x[i], y[i]));
  // A little room beyond the frame, so that lines along it keep their thickness.
  canvas_.polyline(points, colour, thickness, {inner_.x - 1, inner_.y - 1, inner_.width + 2, inner_.height + 2});
}

void Axes::dots(const std::vector<double>& x, const std::vector<double>& y, const cv::Scalar& colour, double radius) {
  for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    const cv::Point2d p = at(x[i], y[i]);
    if (inner_.contains(p)) canvas_.dot(p, radius, colour);
  }
}

void draw_legend(Canvas& canvas, cv::Point2d corner, double height, const std::vector<LegendEntry>& entries,
                 double text_size) {
  const double pitch = text_size * 1.9;
  const auto room = static_cast<size_t>(std::max(1.0, height / pitch));
  const size_t shown = entries.size() <= room ? entries.size() : room - 1;
  for (size_t i = 0; i < shown; ++i) {
    const double y = corner.y + (static_cast<double>(i) + 0.5) * pitch;
    canvas.line({corner.x, y}, {corner.x + text_size * 2, y}, entries[i].colour, entries[i].thickness);
    canvas.text(entries[i].text, {corner.x + text_size * 2.8, y}, text_size);
  }
  if (shown < entries.size()) {
    canvas.text("and " + std::to_string(entries.size() - shown) + " more",
                {corner.x + text_size * 2.8, corner.y + (static_cast<double>(shown) + 0.5) * pitch}, text_size);
  }
}

}  // namespace yolo9
