// The direct way to a sample against the way through a canvas.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>

#include <yolo9/data/dataset.h>
#include <yolo9/data/picture_reader.h>
#include <yolo9/data/sample_row.h>
#include <yolo9/data/tile_warp.h>
#include <catch2/catch.hpp>
#include <opencv2/imgcodecs.hpp>

#include "support/fixture.h"

namespace {

namespace fs = std::filesystem;

// Waves of at least 150 pixels around the colour of the border, so that there is no sharp edge anywhere, not even where
// two pictures meet: OpenCV rounds positions to a 32nd of a pixel, which moves an edge of 200 levels by 3.
cv::Mat smooth_picture(int height, int width, int seed) {
  cv::Mat picture(height, width, CV_8UC3);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < 3; ++c) {
        const double u = static_cast<double>(x) / width, v = static_cast<double>(y) / height;
        const double wave = std::sin(4 * u + seed + c) + std::cos(3 * v + 2 * seed - c);
        picture.at<cv::Vec3b>(y, x)[c] = static_cast<uint8_t>(114.5 + 7 * wave);
      }
    }
  }
  return picture;
}

struct SmoothSet {
  std::string folder;
  SmoothSet(const std::string& extension, bool polygons)
      : folder(fixture::temporary_dir(polygons ? "smooth_polygons" : "smooth_boxes")) {
    fs::create_directories(folder + "/images");
    fs::create_directories(folder + "/labels");
    const std::vector<std::pair<int, int>> sizes{{480, 640},  {640, 480}, {200, 300},
                                                 {960, 1280}, {333, 500}, {640, 640}};
    for (size_t i = 0; i < sizes.size(); ++i) {
      const std::string name = "p" + std::to_string(i);
      cv::imwrite(folder + "/images/" + name + extension,
                  smooth_picture(sizes[i].first, sizes[i].second, static_cast<int>(i)),
                  {cv::IMWRITE_JPEG_QUALITY, 100});
      std::ofstream labels(folder + "/labels/" + name + ".txt");
      labels << "0 0.3 0.4 0.3 0.2\n1 0.7 0.6 0.5 0.5\n";
      if (polygons) labels << "2 0.1 0.1 0.35 0.15 0.3 0.4 0.12 0.3\n2 0.6 0.55 0.9 0.6 0.8 0.9\n";
    }
  }
  yolo9::Dataset open(yolo9::DatasetOptions options, bool through_canvas) const {
    options.augment = true;
    options.seed = 3;
    options.through_canvas = through_canvas;
    return yolo9::Dataset({folder + "/images"}, {"a", "b", "c"}, options);
  }
};

struct Difference {
  int largest = 0;
  double share_above_one = 0;
};
Difference difference(const torch::Tensor& a, const torch::Tensor& b) {
  REQUIRE(a.sizes() == b.sizes());
  const torch::Tensor gap = (a.to(torch::kInt32) - b.to(torch::kInt32)).abs();
  return {gap.max().item<int>(), gap.gt(1).to(torch::kDouble).mean().item<double>()};
}

}  // namespace

TEST_CASE("the direct way gives the canvas's samples within one level", "[data]") {
  // With and without pictures kept for a while, that is, decoded as a whole or only what is seen.
  const int64_t recent_bytes = GENERATE(0, 1 << 28);
  const std::string extension = GENERATE(".png", ".jpg");
  const int kind = GENERATE(0, 1, 2, 3, 4);
  yolo9::DatasetOptions options;
  options.image_size = 320;
  options.recent_budget_bytes = recent_bytes;
  options.augmentation.hsv_h = options.augmentation.hsv_s = options.augmentation.hsv_v = 0;  // steps of its own
  options.augmentation.filters = 0;
  options.augmentation.mixup = 0.3;
  options.augmentation.flipud = 0.3;
  options.augmentation.copy_paste = 0;
  if (kind == 1) options.augmentation.mosaic9 = 1;
  if (kind == 2) options.augmentation.mosaic = 0;
  if (kind == 3) options.augmentation.degrees = 20, options.augmentation.shear = 5;
  if (kind == 4) options.augmentation.perspective = 0.0005, options.augmentation.degrees = 5;
  const SmoothSet set(extension, true);
  const yolo9::Dataset direct = set.open(options, false), canvas = set.open(options, true);
  for (int64_t epoch = 0; epoch < 4; ++epoch) {
    for (int64_t i = 0; i < direct.size(); ++i) {
      CAPTURE(recent_bytes, extension, kind, epoch, i);
      const yolo9::Sample a = direct.get(i, epoch), b = canvas.get(i, epoch);
      CHECK(torch::equal(a.labels, b.labels));
      const Difference d = difference(a.image, b.image);
      CAPTURE(d.share_above_one);
      // A second interpolation rounds once more: a value in a hundred thousand may be two levels apart. In a JPEG the
      // colour is stored apart and coarser, and rounds differently where it is decoded at half its size.
      CHECK(d.share_above_one <= (extension == ".png" ? 1e-5 : 2e-3));
      CHECK(d.largest <= (extension == ".png" ? 2 : 3));
    }
  }
}

TEST_CASE("pasted copies come the direct way as on the canvas", "[data]") {
  const SmoothSet set(".png", true);
  yolo9::DatasetOptions options;
  options.image_size = 320;
  options.augmentation.hsv_h = options.augmentation.hsv_s = options.augmentation.hsv_v = 0;
  options.augmentation.filters = options.augmentation.mixup = 0;
  options.augmentation.copy_paste = 1;
  const yolo9::Dataset direct = set.open(options, false), canvas = set.open(options, true);
  options.augmentation.copy_paste = 0;
  const yolo9::Dataset plain = set.open(options, false);
  int64_t more_objects = 0;
  double apart = 0, changed = 0;
  for (int64_t epoch = 0; epoch < 10; ++epoch) {
    for (int64_t i = 0; i < direct.size(); ++i) {
      CAPTURE(epoch, i);
      const yolo9::Sample a = direct.get(i, epoch), b = canvas.get(i, epoch);
      CHECK(torch::equal(a.labels, b.labels));
      // Only the outlines' edges differ: on the canvas they are of whole pixels.
      const double share = difference(a.image, b.image).share_above_one;
      CHECK(share < 0.03);
      apart += share;
      more_objects += a.labels.size(0) - plain.get(i, epoch).labels.size(0);
      changed += difference(a.image, plain.get(i, epoch).image).share_above_one;
    }
  }
  CHECK(more_objects > 20);
  CHECK(apart < changed / 10);  // the copies themselves are there
}

TEST_CASE("copy-paste is left off, and says so, where no label is a polygon", "[data]") {
  yolo9::DatasetOptions options;
  options.image_size = 64;
  const SmoothSet boxes(".png", false);
  const yolo9::Dataset without = boxes.open(options, false);
  CHECK(without.options().augmentation.copy_paste == 0);
  CHECK(without.summary().polygons == 0);
  const SmoothSet polygons(".png", true);
  const yolo9::Dataset with = polygons.open(options, false);
  CHECK(with.options().augmentation.copy_paste == 0.3);
  CHECK(with.summary().polygons == 12);
}

TEST_CASE("tiles that the crop does not show are not read", "[data]") {
  const SmoothSet set(".png", false);
  yolo9::DatasetOptions options;
  options.image_size = 320;
  options.augmentation.mixup = 0;
  options.augmentation.scale = 0.9;
  options.recent_budget_bytes = GENERATE(0, 1 << 28);
  const yolo9::Dataset dataset = set.open(options, false);
  fs::remove_all(set.folder + "/images");  // now every picture that is read is counted
  int64_t samples = 0, all_shown = 0;
  for (int64_t epoch = 0; epoch < 20; ++epoch) {
    for (int64_t i = 0; i < dataset.size(); ++i, ++samples) {
      const int64_t before = dataset.decode_failures();
      const yolo9::Sample sample = dataset.get(i, epoch);
      CHECK(sample.labels.size(0) == 0);
      CHECK(sample.image.min().item<int>() >= 60);  // grey, or grey made darker
      const int64_t read = dataset.decode_failures() - before;
      CHECK((read >= 1 && read <= 4));
      all_shown += read == 4 ? 1 : 0;
    }
  }
  CHECK(all_shown < samples / 2);
  CHECK(dataset.decode_failures() < 3 * samples);
}
