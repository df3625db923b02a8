#include <yolo9/monitor/plots.h>

#include <cmath>
#include <cstdio>
#include <functional>

#include <yolo9/monitor/chart.h>

namespace yolo9 {

namespace {

const cv::Scalar kBlue(180, 119, 31), kOrange(14, 127, 255), kGreen(44, 160, 44), kRed(40, 39, 214),
    kGrey(150, 150, 150);

// Gaussian-weighted mean over neighbours, sigma in points.
std::vector<double> soften(const std::vector<double>& values, double sigma) {
  std::vector<double> result;
  const auto n = static_cast<int64_t>(values.size());
  const auto reach = static_cast<int64_t>(std::ceil(3 * sigma));
  for (int64_t i = 0; i < n; ++i) {
    double sum = 0, weights = 0;
    for (int64_t k = std::max<int64_t>(0, i - reach); k <= std::min(n - 1, i + reach); ++k) {
      const double value = values[static_cast<size_t>(k)], d = static_cast<double>(k - i) / sigma;
      if (!std::isfinite(value)) continue;
      const double weight = std::exp(-0.5 * d * d);
      sum += weight * value;
      weights += weight;
    }
    result.push_back(weights > 0 ? sum / weights : std::nan(""));
  }
  return result;
}

std::string with_value(const std::string& name, double value, const char* pattern = " %.3f") {
  char text[32];
  std::snprintf(text, sizeof text, pattern, value);
  return name + text;
}

std::vector<double> mean_curve(const std::vector<std::vector<double>>& curves) {
  std::vector<double> mean;
  for (const auto& curve : curves) {
    mean.resize(curve.size(), 0.0);
    for (size_t i = 0; i < curve.size(); ++i) mean[i] += curve[i] / static_cast<double>(curves.size());
  }
  return mean;
}

}  // namespace

void plot_results(const std::vector<ResultsRow>& rows, const std::string& path) {
  using Get = std::function<double(const ResultsRow&)>;
  const std::vector<std::pair<std::string, Get>> panels = {
      {"train/box_loss", [](const ResultsRow& r) { return r.train_loss[0]; }},
      {"train/cls_loss", [](const ResultsRow& r) { return r.train_loss[1]; }},
      {"train/dfl_loss", [](const ResultsRow& r) { return r.train_loss[2]; }},
      {"metrics/precision", [](const ResultsRow& r) { return r.precision; }},
      {"metrics/recall", [](const ResultsRow& r) { return r.recall; }},
      {"val/box_loss", [](const ResultsRow& r) { return r.val_loss[0]; }},
      {"val/cls_loss", [](const ResultsRow& r) { return r.val_loss[1]; }},
      {"val/dfl_loss", [](const ResultsRow& r) { return r.val_loss[2]; }},
      {"metrics/mAP_0.5", [](const ResultsRow& r) { return r.map50; }},
      {"metrics/mAP_0.5:0.95", [](const ResultsRow& r) { return r.map5095; }},
  };
  constexpr int kPanelWidth = 300, kPanelHeight = 280;
  Canvas canvas(5 * kPanelWidth, 2 * kPanelHeight);
  std::vector<double> epochs;
  for (const ResultsRow& row : rows) epochs.push_back(static_cast<double>(row.epoch));
  for (size_t i = 0; i < panels.size(); ++i) {
    std::vector<double> values;
    for (const ResultsRow& row : rows) values.push_back(panels[i].second(row));
    Axes::Options options;
    options.title = panels[i].first;
    options.x_label = i >= 5 ? "epoch" : "";
    options.x = range_of(epochs);
    options.y = range_of(values);
    options.x_ticks = 5;
    Axes axes(canvas, {double(i % 5) * kPanelWidth, double(i / 5) * kPanelHeight, kPanelWidth, kPanelHeight}, options);
    axes.curve(epochs, values, kBlue, 1.5);
    if (rows.size() <= 60) axes.dots(epochs, values, kBlue, 2.5);
    if (rows.size() > 4) axes.curve(epochs, soften(values, 3), kOrange, 1.2);
  }
  canvas.save(path);
}

void plot_memory(const std::vector<MemoryRow>& rows, const std::string& path) {
  constexpr int kWidth = 1100, kHeight = 700, kLegend = 170;
  constexpr double kGiga = 1024.0 * 1024 * 1024;
  Canvas canvas(kWidth, kHeight);
  std::vector<double> steps;
  for (const MemoryRow& row : rows) steps.push_back(static_cast<double>(row.step));
  const auto column = [&](int64_t MemoryRow::*field, double unit, bool zero_is_gap) {
    std::vector<double> values;
    for (const MemoryRow& row : rows) {
      values.push_back(zero_is_gap && row.*field == 0 ? std::nan("") : static_cast<double>(row.*field) / unit);
    }
    return values;
  };
  struct Line {
    std::string name;
    std::vector<double> values;
    cv::Scalar colour;
    double thickness;
  };
  const auto panel = [&](const cv::Rect2d& area, Axes::Options options, const std::vector<Line>& lines) {
    std::vector<double> all;
    for (const Line& line : lines) all.insert(all.end(), line.values.begin(), line.values.end());
    options.x = range_of(steps);
    options.y = range_of(all, true);
    options.x_ticks = 10;
    Axes axes(canvas, {area.x, area.y, area.width - kLegend, area.height}, options);
    std::vector<LegendEntry> entries;
    for (const Line& line : lines) {
      axes.curve(steps, line.values, line.colour, line.thickness);
      if (rows.size() == 1) axes.dots(steps, line.values, line.colour, 3);
      entries.push_back({line.name, line.colour, line.thickness});
    }
    draw_legend(canvas, {area.x + area.width - kLegend + 5, axes.inner().y}, area.height, entries, 10);
    return axes;
  };
  Axes::Options options;
  options.title = "Memory";
  options.y_label = "GiB";
  Axes memory = panel({0, 0, kWidth, 420}, options,
                      {{"budget", column(&MemoryRow::budget_bytes, kGiga, true), kRed, 2},
                       {"peak", column(&MemoryRow::peak_bytes, kGiga, true), kOrange, 1.5},
                       {"predicted", column(&MemoryRow::predicted_bytes, kGiga, true), kGrey, 1.2},
                       {"reserved", column(&MemoryRow::reserved_bytes, kGiga, true), kGreen, 1.2},
                       {"allocated", column(&MemoryRow::allocated_bytes, kGiga, true), kBlue, 1.5}});
  std::vector<double> refused_at, refused_peak;
  for (size_t i = 1; i < rows.size(); ++i) {
    if (rows[i].ooms <= rows[i - 1].ooms) continue;
    refused_at.push_back(steps[i]);
    refused_peak.push_back(static_cast<double>(rows[i].peak_bytes) / kGiga);
  }
  memory.dots(refused_at, refused_peak, kRed, 4);
  if (!refused_at.empty()) {
    const double x = kWidth - kLegend + 5, y = memory.inner().y + 5.5 * 19;
    canvas.dot({x + 10, y}, 4, kRed);
    canvas.text("out of memory", {x + 22, y}, 9);
  }
  options.title = "";
  options.y_label = "images, rung";
  options.x_label = "step";
  options.y_ticks = 4;
  panel({0, 420, kWidth, 280}, options,
        {{"micro-batch", column(&MemoryRow::micro_batch, 1, false), kBlue, 1.5},
         {"accumulation", column(&MemoryRow::accumulation, 1, false), kGreen, 1.2},
         {"rung", column(&MemoryRow::rung, 1, false), kOrange, 1.5}});
  canvas.save(path);
}

void plot_curves(const CurvePlot& plot, const std::string& path) {
  constexpr int kWidth = 1100, kHeight = 720, kLegend = 290;
  constexpr size_t kMostLegends = 30;  // more classes than this: only the mean is named
  Canvas canvas(kWidth, kHeight);
  Axes::Options options;
  options.title = plot.title;
  options.x_label = plot.x_label;
  options.y_label = plot.y_label;
  options.x = {0, 1};
  options.y = {0, 1.02};
  options.x_ticks = options.y_ticks = 10;
  options.text_size = 10;
  Axes axes(canvas, {0, 0, kWidth - kLegend, kHeight}, options);
  std::vector<LegendEntry> entries = {{plot.mean_name, kBlue, 3}};
  const bool named = plot.curves.size() <= kMostLegends;
  for (size_t i = 0; i < plot.curves.size(); ++i) {
    const cv::Scalar colour = named ? palette_colour(static_cast<int64_t>(i) + 1) : cv::Scalar(190, 190, 190);
    axes.curve(plot.x, plot.curves[i], colour, 1);
    if (named) entries.push_back({i < plot.names.size() ? plot.names[i] : std::to_string(i), colour, 1.5});
  }
  axes.curve(plot.x, plot.mean, kBlue, 3);
  draw_legend(canvas, {kWidth - kLegend + 10, axes.inner().y}, axes.inner().height, entries, 10);
  canvas.save(path);
}

void plot_evaluation_curves(const EvaluationCurves& curves, const std::string& folder) {
  const auto plot = [&](const std::string& file, const std::string& x_label, const std::string& y_label,
                        const std::vector<std::vector<double>>& values, bool is_pr) {
    CurvePlot p;
    p.title = y_label + " - " + x_label;
    p.x_label = x_label;
    p.y_label = y_label;
    p.curves = values;
    p.mean = mean_curve(values);
    const size_t points = p.mean.size();
    for (size_t i = 0; i < points; ++i) p.x.push_back(double(i) / std::max<double>(1, double(points) - 1));
    for (size_t i = 0; i < values.size(); ++i) {
      const std::string name = i < curves.names.size() ? curves.names[i] : std::to_string(i);
      p.names.push_back(is_pr && i < curves.ap50.size() ? with_value(name, curves.ap50[i]) : name);
    }
    p.mean_name = "all classes";
    if (is_pr) {
      double sum = 0;
      for (const double ap : curves.ap50) sum += ap;
      const double mean = curves.ap50.empty() ? 0 : sum / double(curves.ap50.size());
      p.mean_name = with_value("all classes", mean, " %.3f mAP@0.5");
    } else if (points > 0) {
      const auto best = static_cast<size_t>(std::max_element(p.mean.begin(), p.mean.end()) - p.mean.begin());
      p.mean_name = with_value(with_value("all classes", p.mean[best], " %.2f"), p.x[best], " at %.3f");
    }
    plot_curves(p, folder + "/" + file);
  };
  plot("PR_curve.png", "Recall", "Precision", curves.pr, true);
  plot("P_curve.png", "Confidence", "Precision", curves.precision, false);
  plot("R_curve.png", "Confidence", "Recall", curves.recall, false);
  plot("F1_curve.png", "Confidence", "F1", curves.f1, false);
}

}  // namespace yolo9
