// Small data sets on disk for the tests.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include <yolo9/core/random.h>
#include <yolo9/data/image.h>
#include <opencv2/core.hpp>

#include "support/fixture.h"

namespace data_set {

// A picture of noise, so that no two samples are alike.
inline cv::Mat noise(int height, int width, uint64_t seed) {
  yolo9::Random random{seed, 77};
  cv::Mat image(height, width, CV_8UC3);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < 3 * width; ++x) image.ptr<uint8_t>(y)[x] = static_cast<uint8_t>(random.integer(256));
  }
  return image;
}

// Any file, and a small picture, with the folders that they need.
inline void write(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
}
inline void write_picture(const std::string& path) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  yolo9::write_image(path, noise(50, 100, 1));
}

inline void write_label(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

// `count` pictures of different sizes with a box and a polygon each, in folder/images and folder/labels.
inline std::string make(const std::string& name, int count) {
  const std::string root = fixture::temporary_dir(name);
  std::filesystem::create_directories(root + "/images");
  std::filesystem::create_directories(root + "/labels");
  for (int i = 0; i < count; ++i) {
    const std::string stem = (i < 10 ? "0" : "") + std::to_string(i);
    yolo9::write_image(root + "/images/" + stem + ".png",
                       noise(24 + 14 * (i % 5), 48 + 20 * (i % 3), static_cast<uint64_t>(i)));
    std::string rows = std::to_string(i % 3);  // appended to: GCC 12 warns of sums of strings for no reason
    rows += " 0.5 0.5 0.4 0.6\n";
    rows += std::to_string((i + 1) % 3);
    rows += " 0.1 0.1 0.7 0.15 0.6 0.8\n";
    write_label(root + "/labels/" + stem + ".txt", rows);
  }
  return root;
}

}  // namespace data_set
