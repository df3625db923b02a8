#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>

#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>

#include "support/fixture.h"
#include <yolo9/core/error.h>
#include <yolo9/core/random.h>
#include <yolo9/monitor/chart.h>
#include <yolo9/monitor/pictures.h>
#include <yolo9/monitor/plots.h>

namespace {

// YOLO9_KEEP_PLOTS names a folder to look at; otherwise a temporary one.
std::string plot_dir() {
  static const char* keep = std::getenv("YOLO9_KEEP_PLOTS");
  static const std::string temporary = keep ? "" : fixture::temporary_dir("plots");
  return keep ? keep : temporary;
}

// Share of pixels that are not white.
double inked(const cv::Mat& image) {
  cv::Mat grey;
  cv::cvtColor(image, grey, cv::COLOR_BGR2GRAY);
  return double(cv::countNonZero(grey < 250)) / double(grey.total());
}

cv::Mat load(const std::string& path) {
  const cv::Mat image = cv::imread(path);
  CAPTURE(path);
  REQUIRE_FALSE(image.empty());
  return image;
}

std::vector<yolo9::ResultsRow> run_of(int64_t epochs) {
  std::vector<yolo9::ResultsRow> rows;
  yolo9::Random random({3});
  for (int64_t e = 0; e < epochs; ++e) {
    const double t = double(e) / 40;
    yolo9::ResultsRow row;
    row.epoch = e;
    row.train_loss = {1 + 3 * std::exp(-3 * t) + 0.05 * random.normal(), 0.5 + 4 * std::exp(-5 * t), 1.2};
    row.precision = 0.9 * (1 - std::exp(-4 * t)) + 0.02 * random.normal();
    row.recall = 0.8 * (1 - std::exp(-4 * t));
    row.map50 = 0.85 * (1 - std::exp(-3 * t));
    row.map5095 = 0.55 * (1 - std::exp(-3 * t));
    rows.push_back(row);
  }
  return rows;
}

const std::vector<std::string> kNames = {"circle", "square", "triangle", "Röhrchen", "a rather long class name"};

}  // namespace

TEST_CASE("results.png grows with the run and takes odd values", "[monitor]") {
  const std::string path = plot_dir() + "/results.png";
  yolo9::plot_results({}, path);
  const double empty = inked(load(path));
  auto rows = run_of(40);
  rows[3].recall = std::nan("");
  rows[4].val_loss[0] = std::numeric_limits<double>::infinity();
  yolo9::plot_results(rows, path);
  const cv::Mat image = load(path);
  CHECK(image.cols == 1500);
  CHECK(inked(image) > empty);
  yolo9::plot_results(run_of(1), plot_dir() + "/results_1.png");
  CHECK(inked(load(plot_dir() + "/results_1.png")) > 0.01);
  CHECK_THROWS_WITH(yolo9::plot_results(rows, "/nonexistent/results.png"), Catch::Contains("cannot write the picture"));
}

TEST_CASE("memory.png shows budget, use and refusals", "[monitor]") {
  std::vector<yolo9::MemoryRow> rows;
  for (int64_t s = 1; s <= 200; ++s) {
    yolo9::MemoryRow row;
    row.step = s;
    row.budget_bytes = 8LL << 30;
    row.micro_batch = s < 60 ? 16 : 8;
    row.accumulation = s < 60 ? 4 : 8;
    row.peak_bytes = (row.micro_batch * 400LL << 20) + s * (1 << 20);
    row.allocated_bytes = 2LL << 30;
    row.reserved_bytes = row.peak_bytes + (300LL << 20);
    row.predicted_bytes = s > 20 ? row.peak_bytes * 11 / 10 : 0;
    row.ooms = s < 60 ? 0 : 1;
    row.rung = s > 120;
    rows.push_back(row);
  }
  const std::string path = plot_dir() + "/memory.png";
  yolo9::plot_memory({}, path);
  const double empty = inked(load(path));
  yolo9::plot_memory({rows[0]}, path);
  CHECK(inked(load(path)) > empty);
  yolo9::plot_memory(rows, path);
  CHECK(inked(load(path)) > empty);
}

TEST_CASE("evaluation curves are drawn for few and for many classes", "[monitor]") {
  for (const size_t classes : {size_t{0}, size_t{1}, size_t{5}, size_t{80}}) {
    CAPTURE(classes);
    yolo9::EvaluationCurves curves;
    for (size_t c = 0; c < classes; ++c) {
      curves.names.push_back(c < kNames.size() ? kNames[c] : "class " + std::to_string(c));
      curves.ap50.push_back(0.9 - 0.01 * double(c));
      std::vector<double> p, r, f, pr;
      for (int i = 0; i < 1000; ++i) {
        const double x = i / 999.0;
        p.push_back(0.5 + 0.5 * x);
        r.push_back((1 - x * x) * (1 - 0.01 * double(c)));
        f.push_back(2 * p.back() * r.back() / (p.back() + r.back()));
        pr.push_back(x < 0.9 - 0.01 * double(c) ? 1 - 0.2 * x : 0);
      }
      curves.precision.push_back(p), curves.recall.push_back(r), curves.f1.push_back(f), curves.pr.push_back(pr);
    }
    yolo9::plot_evaluation_curves(curves, plot_dir());
    for (const char* name : {"PR_curve.png", "P_curve.png", "R_curve.png", "F1_curve.png"}) {
      CHECK(inked(load(plot_dir() + "/" + name)) > 0.01);
    }
    if (classes == 5) std::filesystem::copy_file(plot_dir() + "/PR_curve.png", plot_dir() + "/PR_curve_5.png",
                                                 std::filesystem::copy_options::overwrite_existing);
  }
}

TEST_CASE("the confusion matrix darkens where counts are", "[monitor]") {
  const std::string path = plot_dir() + "/confusion_matrix.png";
  const size_t n = kNames.size() + 1;
  std::vector<std::vector<double>> matrix(n, std::vector<double>(n, 0.0));
  yolo9::plot_confusion_matrix(matrix, kNames, path);
  const double blank = cv::mean(load(path))[2];
  for (size_t i = 0; i < n - 1; ++i) {
    matrix[i][i] = 30;
    matrix[n - 1][i] = 10 + double(i);
    matrix[i][n - 1] = 4;
    matrix[i][(i + 1) % (n - 1)] = 5;
  }
  yolo9::plot_confusion_matrix(matrix, kNames, path);
  CHECK(cv::mean(load(path))[2] < blank - 5);
  std::vector<std::vector<double>> big(81, std::vector<double>(81, 1.0));
  for (size_t i = 0; i < 81; ++i) big[i][i] = 300;
  std::vector<std::string> names;
  for (int i = 0; i < 80; ++i) names.push_back("class " + std::to_string(i));
  yolo9::plot_confusion_matrix(big, names, plot_dir() + "/confusion_80.png");
  CHECK(load(plot_dir() + "/confusion_80.png").rows < 1500);
}

TEST_CASE("labels.jpg shows classes, outlines, centres and sizes", "[monitor]") {
  yolo9::Random random({5});
  std::vector<yolo9::LabelBox> boxes;
  for (int i = 0; i < 3000; ++i) {
    boxes.push_back({random.integer(5), std::clamp(0.5 + 0.15 * random.normal(), 0.0, 1.0), random.uniform(0.1, 0.9),
                     random.uniform(0.02, 0.5), random.uniform(0.02, 0.3)});
  }
  boxes.push_back({7, std::nan(""), 2, -1, 0.5});
  const std::string path = plot_dir() + "/labels.jpg";
  yolo9::plot_labels({}, kNames, path);
  const double empty = inked(load(path));
  yolo9::plot_labels(boxes, kNames, path);
  CHECK(inked(load(path)) > empty + 0.1);
  std::vector<std::string> many(80, "x");
  yolo9::plot_labels(boxes, many, plot_dir() + "/labels_80.jpg");
}

TEST_CASE("boxes are drawn where they are", "[monitor]") {
  const torch::Tensor grey = torch::full({3, 240, 320}, 114, torch::kUInt8);
  yolo9::DrawnBox box;
  box.x1 = 100, box.y1 = 80, box.x2 = 200, box.y2 = 160, box.class_index = 3, box.score = 0.875;
  yolo9::DrawStyle bare;
  bare.labels = false;
  bare.line_thickness = 2;
  const auto changed = [&](const torch::Tensor& image) { return (image != grey).any(0); };
  const torch::Tensor out = changed(yolo9::draw_boxes(grey, {box}, kNames, bare));
  CHECK(out[80][150].item<bool>());
  CHECK(out[160][150].item<bool>());
  CHECK(out[120][100].item<bool>());
  CHECK(out[120][200].item<bool>());
  CHECK_FALSE(out[120][150].item<bool>());
  CHECK_FALSE(out[70][150].item<bool>());
  // The class's colour, red first: palette number 3.
  const torch::Tensor pixel = yolo9::draw_boxes(grey, {box}, kNames, bare).select(1, 80).select(1, 150);
  CHECK(pixel[0].item<int>() == 214);
  CHECK(pixel[2].item<int>() == 40);

  yolo9::DrawStyle thick = bare, named = bare, scored = bare;
  thick.line_thickness = 9;
  named.labels = true, named.scores = false;
  scored.labels = true;
  const auto count = [&](const yolo9::DrawStyle& style) {
    return changed(yolo9::draw_boxes(grey, {box}, kNames, style)).sum().item<int64_t>();
  };
  CHECK(count(thick) > count(bare));
  CHECK(count(named) > count(bare));
  CHECK(count(scored) > count(named));
  // Boxes off the picture, huge, or not numbers, must do no harm.
  std::vector<yolo9::DrawnBox> odd(4, box);
  odd[0].x1 = -1e9, odd[0].x2 = 1e9;
  odd[1].y1 = std::nan("");
  odd[2].x1 = 5000, odd[2].x2 = 6000;
  odd[3].class_index = 1000;
  CHECK(yolo9::draw_boxes(grey, odd, kNames).sizes() == grey.sizes());
  CHECK(grey.eq(114).all().item<bool>());
  CHECK_THROWS_WITH(yolo9::draw_boxes(grey.to(torch::kFloat32), {}, {}), Catch::Contains("[pictures]"));
}

TEST_CASE("mosaics hold every picture once, up to the limit", "[monitor]") {
  torch::Tensor images = torch::full({20, 3, 96, 128}, 60, torch::kUInt8);
  for (int64_t i = 0; i < 20; ++i) images[i].fill_(40 + 10 * i);
  std::vector<yolo9::DrawnBox> boxes;
  std::vector<std::string> captions;
  for (int64_t i = 0; i < 20; ++i) {
    yolo9::DrawnBox box;
    box.image = i, box.x1 = 20, box.y1 = 30, box.x2 = 90, box.y2 = 80, box.class_index = i % 5, box.score = 0.5;
    boxes.push_back(box);
    captions.push_back("picture" + std::to_string(i) + ".jpg");
  }
  const std::string path = plot_dir() + "/mosaic.jpg";
  yolo9::save_mosaic(images, boxes, captions, kNames, path);
  const cv::Mat sheet = load(path);
  CHECK(sheet.cols == 4 * 256);
  CHECK(sheet.rows == 4 * 192);
  for (int i = 0; i < 16; ++i) {  // a corner without box or caption keeps the picture's grey
    CHECK(std::abs(int(sheet.at<cv::Vec3b>(i / 4 * 192 + 12, i % 4 * 256 + 240)[0]) - (40 + 10 * i)) < 6);
  }
  yolo9::save_mosaic(torch::full({2, 3, 2000, 3000}, 9, torch::kUInt8), {}, {}, {}, plot_dir() + "/large.jpg");
  CHECK(load(plot_dir() + "/large.jpg").cols <= 1920);
  CHECK_THROWS_AS(yolo9::save_image(images[0], "/nonexistent/a.jpg"), yolo9::Error);
  CHECK_THROWS_AS(yolo9::save_image(images[0], plot_dir() + "/no_extension"), yolo9::Error);
}

TEST_CASE("ticks are round and inside the range", "[monitor]") {
  CHECK(yolo9::round_ticks({0, 1}, 5) == std::vector<double>{0, 0.2, 0.4, 0.6000000000000001, 0.8, 1});
  for (const yolo9::Range range : {yolo9::Range{-3, 7}, {1e-7, 3e-7}, {1e9, 5e9}, {0.4999, 0.5001}}) {
    const auto ticks = yolo9::round_ticks(range, 6);
    CHECK(ticks.size() >= 3);
    CHECK(ticks.size() <= 12);
    for (const double t : ticks) {
      CHECK(t >= range.low - 1e-6 * (range.high - range.low));
      CHECK(t <= range.high + 1e-6 * (range.high - range.low));
    }
  }
  CHECK(yolo9::round_ticks({1, 1}, 6).empty());
  CHECK(yolo9::round_ticks({0, std::numeric_limits<double>::infinity()}, 6).empty());
  CHECK(yolo9::tick_text(0.6000000000000001, 0.2) == "0.6");
  CHECK(yolo9::tick_text(1200, 200) == "1200");
  const yolo9::Range flat = yolo9::range_of({2, 2});
  CHECK(flat.low < 2);
  CHECK(flat.high > 2);
}
