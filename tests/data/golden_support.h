// Reading the fixtures of the data pipeline: pictures from safetensors, boxes and polygons from JSON.
#pragma once

#include <cstring>
#include <string>

#include <catch2/catch.hpp>
#include <opencv2/core.hpp>
#include <yolo9/core/safetensors.h>
#include <yolo9/data/objects.h>

#include "support/fixture.h"

namespace golden {

// Coordinates are compared in the single precision that labels are given in.
constexpr double kCoordinateTolerance = 2e-5;
constexpr double kExactTolerance = 1e-9;

// One JSON file of tests/golden/augment, or null (with a warning) where the folder lacks it.
inline nlohmann::json read(const std::string& name) {
  const auto files = fixture::golden_files("augment", name + ".json");
  for (const auto& file : files) {
    if (file.ends_with("/" + name + ".json")) return fixture::read_json(file);
  }
  WARN("no fixture augment/" << name << ".json");
  return nullptr;
}

inline std::map<std::string, torch::Tensor> read_tensors(const std::string& name) {
  return yolo9::read_safetensors_map(fixture::golden_dir() + "/augment/" + name + ".safetensors");
}

// uint8 [H,W,3] -> a picture of its own.
inline cv::Mat picture(const torch::Tensor& tensor) {
  REQUIRE(tensor.scalar_type() == torch::kUInt8);
  REQUIRE(tensor.dim() == 3);
  const torch::Tensor t = tensor.contiguous();
  cv::Mat image(static_cast<int>(t.size(0)), static_cast<int>(t.size(1)), CV_8UC3);
  std::memcpy(image.data, t.data_ptr<uint8_t>(), static_cast<size_t>(t.numel()));
  return image;
}

// The largest difference of two pictures; 256 if their sizes differ.
inline double difference(const cv::Mat& a, const cv::Mat& b) {
  if (a.size() != b.size() || a.type() != b.type()) return 256;
  return a.empty() ? 0 : cv::norm(a, b, cv::NORM_INF);
}

inline yolo9::Corners corners(const nlohmann::json& v) {
  return {fixture::number(v[0]), fixture::number(v[1]), fixture::number(v[2]), fixture::number(v[3])};
}

inline yolo9::CenterBox center(const nlohmann::json& v) {
  return {fixture::number(v[0]), fixture::number(v[1]), fixture::number(v[2]), fixture::number(v[3])};
}

inline yolo9::Polygon polygon(const nlohmann::json& v) {
  yolo9::Polygon points;
  for (const auto& p : v) points.push_back({fixture::number(p[0]), fixture::number(p[1])});
  return points;
}

// Rows [class, x1, y1, x2, y2] and, where given, one polygon each.
inline yolo9::Objects objects(const nlohmann::json& labels, const nlohmann::json& segments = {}) {
  yolo9::Objects result;
  for (size_t i = 0; i < labels.size(); ++i) {
    const auto& row = labels[i];
    yolo9::Object object{static_cast<int64_t>(row[0].get<double>()),
                         {row[1].get<double>(), row[2].get<double>(), row[3].get<double>(), row[4].get<double>()},
                         {}};
    if (!segments.is_null() && !segments.empty()) object.polygon = polygon(segments.at(i));
    result.push_back(object);
  }
  return result;
}

inline void check_near(double actual, double expected, double tolerance) {
  CHECK(std::abs(actual - expected) <= tolerance * std::max(1.0, std::abs(expected)));
}

inline void check_box(const yolo9::Corners& actual, const yolo9::Corners& expected, double tolerance) {
  check_near(actual.x1, expected.x1, tolerance);
  check_near(actual.y1, expected.y1, tolerance);
  check_near(actual.x2, expected.x2, tolerance);
  check_near(actual.y2, expected.y2, tolerance);
}

inline void check_center(const yolo9::CenterBox& actual, const yolo9::CenterBox& expected, double tolerance) {
  check_near(actual.cx, expected.cx, tolerance);
  check_near(actual.cy, expected.cy, tolerance);
  check_near(actual.w, expected.w, tolerance);
  check_near(actual.h, expected.h, tolerance);
}

inline void check_polygon(const yolo9::Polygon& actual, const yolo9::Polygon& expected, double tolerance) {
  REQUIRE(actual.size() == expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    check_near(actual[i].x, expected[i].x, tolerance);
    check_near(actual[i].y, expected[i].y, tolerance);
  }
}

inline void check_objects(const yolo9::Objects& actual, const yolo9::Objects& expected, double tolerance) {
  REQUIRE(actual.size() == expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    CAPTURE(i);
    CHECK(actual[i].class_index == expected[i].class_index);
    check_box(actual[i].box, expected[i].box, tolerance);
  }
}

}  // namespace golden
