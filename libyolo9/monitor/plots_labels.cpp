// The heat map of the confusion matrix, and the picture of a data set's labels.
#include <cmath>
#include <cstdio>

#include <opencv2/imgproc.hpp>

#include <yolo9/monitor/chart.h>
#include <yolo9/monitor/plots.h>

namespace yolo9 {

namespace {

// White to dark blue, BGR.
cv::Scalar heat_colour(double share) {
  const double s = std::clamp(share, 0.0, 1.0);
  return {255 - 148 * s, 255 - 207 * s, 255 - 247 * s};
}

std::string shortened(const Canvas& canvas, const std::string& name, double width, double size) {
  std::string text = printable(name);
  if (canvas.text_width(text, size) <= width) return text;
  while (text.size() > 1 && canvas.text_width(text + "..", size) > width) text.pop_back();
  return text + "..";
}

// Counts of points in a grid, as a picture; darker is more.
cv::Mat density(const std::vector<double>& x, const std::vector<double>& y, int bins) {
  cv::Mat counts = cv::Mat::zeros(bins, bins, CV_32F);
  float most = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (!std::isfinite(x[i]) || !std::isfinite(y[i])) continue;
    const int column = std::clamp(static_cast<int>(x[i] * bins), 0, bins - 1);
    const int row = std::clamp(static_cast<int>(y[i] * bins), 0, bins - 1);
    float& cell = counts.at<float>(row, column);
    most = std::max(most, ++cell);
  }
  cv::Mat picture(bins, bins, CV_8UC3);
  for (int r = 0; r < bins; ++r) {
    for (int c = 0; c < bins; ++c) {
      const double count = counts.at<float>(r, c);
      const cv::Scalar colour = heat_colour(count == 0 ? 0 : 0.15 + 0.85 * std::sqrt(count / most));
      picture.at<cv::Vec3b>(r, c) = cv::Vec3b(uchar(colour[0]), uchar(colour[1]), uchar(colour[2]));
    }
  }
  return picture;
}

void draw_histogram(Canvas& canvas, const cv::Rect2d& area, const std::vector<LabelBox>& boxes,
                    const std::vector<std::string>& names) {
  std::vector<double> counts(std::max<size_t>(names.size(), 1), 0.0);
  for (const LabelBox& box : boxes) {
    if (box.class_index >= 0 && static_cast<size_t>(box.class_index) < counts.size()) {
      counts[static_cast<size_t>(box.class_index)] += 1;
    }
  }
  const bool named = counts.size() <= 30;
  Axes::Options options;
  options.title = "instances";
  options.x = {-0.5, static_cast<double>(counts.size()) - 0.5};
  options.y = range_of(counts, true);
  options.x_ticks = named ? 0 : 8;
  options.x_label = named ? "" : "class";
  const double bottom = named ? 70 : 0;
  options.grid = false;
  Axes axes(canvas, {area.x, area.y, area.width, area.height - bottom}, options);
  for (size_t i = 0; i < counts.size(); ++i) {
    const auto k = static_cast<double>(i);
    const cv::Point2d top = axes.at(k - 0.4, counts[i]), base = axes.at(k + 0.4, 0);
    canvas.fill({top.x, top.y, base.x - top.x, base.y - top.y}, palette_colour(static_cast<int64_t>(i)));
    if (!named) continue;
    const std::string name = shortened(canvas, i < names.size() ? names[i] : "0", 85, 9);
    canvas.vertical_text(name, {axes.at(k, 0).x, base.y + 8 + canvas.text_width(name, 9) / 2}, 9);
    if (counts.size() <= 12) {
      char text[24];
      std::snprintf(text, sizeof text, "%.0f", counts[i]);
      canvas.text(text, {axes.at(k, 0).x, top.y - 8}, 8, Align::Centre);
    }
  }
}

void draw_outlines(Canvas& canvas, const cv::Rect2d& area, const std::vector<LabelBox>& boxes) {
  const cv::Rect2d inner(area.x + 50, area.y + 30, area.width - 70, area.height - 60);
  canvas.text("boxes about one centre", {inner.x + inner.width / 2, area.y + 14}, 10.8, Align::Centre);
  canvas.frame(inner, {120, 120, 120});
  const size_t stride = std::max<size_t>(1, boxes.size() / 1000);
  for (size_t i = 0; i < boxes.size(); i += stride) {
    const double w = boxes[i].width * inner.width, h = boxes[i].height * inner.height;
    if (!(w > 0) || !(h > 0) || w > inner.width || h > inner.height) continue;
    canvas.frame({inner.x + (inner.width - w) / 2, inner.y + (inner.height - h) / 2, w, h},
                 palette_colour(boxes[i].class_index), 0.5);
  }
}

void draw_density(Canvas& canvas, const cv::Rect2d& area, const std::string& title, const std::string& x_label,
                  const std::string& y_label, const std::vector<double>& x, std::vector<double> y, bool y_down) {
  Axes::Options options;
  options.title = title;
  options.x_label = x_label;
  options.y_label = y_label;
  options.x = {0, 1};
  options.y = y_down ? Range{1, 0} : Range{0, 1};
  options.grid = false;
  // Pictures count y downwards, sizes upwards; ticks of a falling axis are drawn by their places.
  options.y_ticks = y_down ? 0 : 5;
  Axes axes(canvas, area, options);
  if (!y_down) {
    for (double& v : y) v = 1 - v;
  }
  canvas.picture(density(x, y, 64), axes.inner());
  canvas.frame(axes.inner(), {120, 120, 120});
}

}  // namespace

void plot_confusion_matrix(const std::vector<std::vector<double>>& matrix, const std::vector<std::string>& names,
                           const std::string& path) {
  constexpr int kLeft = 170, kTop = 60, kBottom = 150, kRight = 110;
  const auto n = matrix.size();
  if (n == 0) return;
  const int cell = n <= 6 ? 90 : n <= 12 ? 60 : n <= 31 ? 30 : n <= 90 ? 12 : 8;
  const int side = static_cast<int>(n) * cell;
  Canvas canvas(kLeft + side + kRight, kTop + side + kBottom);
  canvas.text("Confusion matrix, share of each true class", {kLeft + side / 2.0, 28}, 12, Align::Centre);
  const double size = std::clamp(cell * 0.3, 4.0, 11.0);
  for (size_t t = 0; t < n; ++t) {
    double sum = 0;
    for (size_t p = 0; p < n; ++p) sum += matrix[p][t];
    for (size_t p = 0; p < n; ++p) {
      const double share = sum > 0 ? matrix[p][t] / sum : 0;
      const cv::Rect2d area(kLeft + double(t) * cell, kTop + double(p) * cell, cell, cell);
      canvas.fill(area, heat_colour(share));
      if (share < 0.005 || cell < 30) continue;
      char text[16];
      std::snprintf(text, sizeof text, "%.2f", share);
      canvas.text(text, {area.x + cell / 2.0, area.y + cell / 2.0}, size, Align::Centre,
                  share > 0.5 ? cv::Scalar(255, 255, 255) : cv::Scalar(60, 60, 60));
    }
    const std::string name = t + 1 == n ? "background" : t < names.size() ? names[t] : std::to_string(t);
    const std::string text = shortened(canvas, name, 110, size);
    const double middle = (double(t) + 0.5) * cell;
    canvas.text(text, {kLeft - 8.0, kTop + middle}, size, Align::End);
    canvas.vertical_text(text, {kLeft + middle, kTop + side + 8 + canvas.text_width(text, size) / 2}, size);
  }
  canvas.frame({kLeft, kTop, double(side), double(side)}, {120, 120, 120});
  canvas.text("True", {kLeft + side / 2.0, kTop + side + kBottom - 14.0}, 12, Align::Centre);
  canvas.vertical_text("Predicted", {18, kTop + side / 2.0}, 12);
  for (int i = 0; i < side; ++i) {
    canvas.fill({kLeft + side + 25.0, kTop + double(i), 18, 1}, heat_colour(1 - double(i) / side));
  }
  canvas.frame({kLeft + side + 25.0, kTop, 18, double(side)}, {120, 120, 120});
  for (int i = 0; i <= 5; ++i) {
    canvas.text(tick_text(i / 5.0, 0.2), {kLeft + side + 50.0, kTop + side * (1 - i / 5.0)}, 9);
  }
  canvas.save(path);
}

void plot_labels(const std::vector<LabelBox>& boxes, const std::vector<std::string>& names, const std::string& path) {
  constexpr double kSide = 480;
  Canvas canvas(static_cast<int>(2 * kSide), static_cast<int>(2 * kSide));
  draw_histogram(canvas, {0, 0, kSide, kSide}, boxes, names);
  draw_outlines(canvas, {kSide, 0, kSide, kSide}, boxes);
  std::vector<double> x, y, w, h;
  for (const LabelBox& box : boxes) {
    x.push_back(box.centre_x);
    y.push_back(box.centre_y);
    w.push_back(box.width);
    h.push_back(box.height);
  }
  draw_density(canvas, {0, kSide, kSide, kSide}, "centres", "x", "y (downwards)", x, y, true);
  draw_density(canvas, {kSide, kSide, kSide, kSide}, "sizes", "width", "height", w, h, false);
  canvas.save(path);
}

}  // namespace yolo9
