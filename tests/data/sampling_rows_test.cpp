// The inner loops of the direct way: with and without vector instructions, and against OpenCV.
#include <algorithm>
#include <vector>

#include <yolo9/core/random.h>
#include <yolo9/data/augment.h>
#include <yolo9/data/colour_row.h>
#include <yolo9/data/finish.h>
#include <yolo9/data/image.h>
#include <yolo9/data/picture_reader.h>
#include <yolo9/data/sample_row.h>
#include <catch2/catch.hpp>
#include <opencv2/core.hpp>

#include "data/data_set_support.h"

TEST_CASE("sample_row: the same bits with and without vector instructions", "[data]") {
  if (!yolo9::has_sample_row_vector()) return;
  yolo9::Random random{5};
  for (int trial = 0; trial < 400; ++trial) {
    const int height = 2 + static_cast<int>(random.integer(60)), width = 2 + static_cast<int>(random.integer(60));
    const cv::Mat noise = data_set::noise(height, width, static_cast<uint64_t>(trial));
    const cv::Mat picture = yolo9::with_slack(noise);
    const yolo9::PixelSource source{picture.data, static_cast<int32_t>(picture.step), width, height};
    const auto fixed = [&random](double low, double high) {
      return static_cast<int32_t>(random.uniform(low, high) * 65536);
    };
    const yolo9::SampleLine line{fixed(-5, width + 5), fixed(-5, height + 5), fixed(-3, 3), fixed(-3, 3)};
    const int64_t count = 1 + random.integer(40);
    std::vector<uint8_t> plain(3 * static_cast<size_t>(count) + 8, 9), vector = plain;  // 8 that must stay
    yolo9::sample_row_plain(source, line, count, plain.data());
    yolo9::sample_row_vector(source, line, count, vector.data());
    CAPTURE(trial, height, width, count);
    REQUIRE(plain == vector);
    REQUIRE(std::all_of(plain.end() - 8, plain.end(), [](uint8_t byte) { return byte == 9; }));
  }
}

TEST_CASE("sample_row: pixels, halves between them, and the edge beyond", "[data]") {
  cv::Mat picture = yolo9::new_picture(2, 3);
  const uint8_t values[2][3] = {{10, 20, 40}, {110, 120, 140}};
  for (int y = 0; y < 2; ++y) {
    for (int x = 0; x < 3; ++x) picture.at<cv::Vec3b>(y, x) = {values[y][x], 0, 255};
  }
  const yolo9::PixelSource source{picture.data, static_cast<int32_t>(picture.step), 3, 2};
  const auto blues = [&](yolo9::SampleLine line, int64_t count) {
    std::vector<uint8_t> row(3 * static_cast<size_t>(count));
    yolo9::sample_row(source, line, count, row.data());
    std::vector<int> out;
    for (size_t i = 0; i < row.size(); i += 3) {
      out.push_back(row[i]);
      CHECK(row[i + 1] == 0);
      CHECK(row[i + 2] == 255);
    }
    return out;
  };
  constexpr int32_t one = 65536;
  CHECK(blues({0, 0, one, 0}, 3) == std::vector<int>{10, 20, 40});
  CHECK(blues({one / 2, 0, one, 0}, 2) == std::vector<int>{15, 30});
  CHECK(blues({0, 0, 0, one / 2}, 3) == std::vector<int>{10, 60, 110});
  CHECK(blues({-2 * one, -one, one, 0}, 6) == std::vector<int>{10, 10, 10, 20, 40, 40});
  CHECK(blues({2 * one, 0, 0, one}, 4) == std::vector<int>{40, 140, 140, 140});
}

TEST_CASE("colour_row: the same bits both ways, and OpenCV's colours within a level", "[data]") {
  yolo9::Random random{6};
  for (int trial = 0; trial < 60; ++trial) {
    const int width = 1 + static_cast<int>(random.integer(70)), height = 40;
    cv::Mat picture = data_set::noise(height, width, static_cast<uint64_t>(100 + trial));
    if (trial % 3 == 0) picture /= 8;                                  // dark
    if (trial % 3 == 1) picture = picture / 8 + cv::Scalar::all(220);  // bright, hardly any colour
    const double hue = random.uniform(0.9, 1.1), saturation = random.uniform(0, 2), value = random.uniform(0.3, 1.8);
    const yolo9::ColourTables tables(hue, saturation, value);
    cv::Mat expected = picture.clone();
    yolo9::scale_hsv(expected, hue, saturation, value);
    const auto w = static_cast<size_t>(width);
    for (int y = 0; y < height; ++y) {
      std::vector<uint8_t> plain(3 * w), vector(3 * w), mirrored(3 * w);
      const auto row = [w](std::vector<uint8_t>& v) { return yolo9::PlaneRow{&v[0], &v[w], &v[2 * w]}; };
      yolo9::colour_row_plain(picture.ptr(y), width, tables, false, row(plain));
      yolo9::colour_row_plain(picture.ptr(y), width, tables, true, row(mirrored));
      if (yolo9::has_colour_row_vector()) {
        yolo9::colour_row_vector(picture.ptr(y), width, tables, false, row(vector));
        REQUIRE(plain == vector);
        yolo9::colour_row_vector(picture.ptr(y), width, tables, true, row(vector));
        REQUIRE(mirrored == vector);
      }
      for (size_t x = 0; x < w; ++x) {
        for (size_t c = 0; c < 3; ++c) {
          REQUIRE(plain[c * w + x] == mirrored[c * w + w - 1 - x]);
          const int wanted = expected.at<cv::Vec3b>(y, static_cast<int>(x))[static_cast<int>(2 - c)];
          REQUIRE(std::abs(plain[c * w + x] - wanted) <= 1);
        }
      }
    }
  }
}

TEST_CASE("finish_picture: flips and planes", "[data]") {
  const cv::Mat picture = data_set::noise(21, 37, 3);
  for (const bool up_down : {false, true}) {
    for (const bool left_right : {false, true}) {
      cv::Mat expected = picture.clone();
      yolo9::Objects none;
      if (up_down) yolo9::flip_up_down(expected, none);
      if (left_right) yolo9::flip_left_right(expected, none);
      std::vector<uint8_t> wanted(3 * 21 * 37), got(wanted.size());
      yolo9::copy_to_planes(expected, wanted.data());
      yolo9::finish_picture(picture, {{}, up_down, left_right}, got.data());
      CHECK(wanted == got);
      yolo9::scale_hsv(expected, 1.01, 0.7, 1.2);
      yolo9::copy_to_planes(expected, wanted.data());
      yolo9::finish_picture(picture, {{1.01, 0.7, 1.2}, up_down, left_right}, got.data());
      int largest = 0;
      for (size_t i = 0; i < got.size(); ++i) largest = std::max(largest, std::abs(got[i] - wanted[i]));
      CAPTURE(up_down, left_right);
      CHECK(largest <= 1);
    }
  }
}
