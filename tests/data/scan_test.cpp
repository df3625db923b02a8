#include <yolo9/data/scan.h>

#include <atomic>
#include <thread>

#include <yolo9/core/error.h>
#include <catch2/catch.hpp>

#include "data_set_support.h"
#include "image_bytes.h"

using namespace image_bytes;

namespace {

const std::vector<std::string> kNames{"a", "b", "c"};

std::string tiny_png() {
  static const std::string bytes = [] {
    const auto folder = fixture::temporary_dir("scan_tiny");
    yolo9::write_image(folder + "/a.png", cv::Mat(12, 12, CV_8UC3, cv::Scalar(1, 2, 3)));
    return read_all(folder + "/a.png");
  }();
  return bytes;
}

}  // namespace

TEST_CASE("scan: everything comes once, in order, on the calling thread", "[data]") {
  const auto root = fixture::temporary_dir("scan_order");
  std::filesystem::create_directories(root + "/images");
  std::filesystem::create_directories(root + "/labels");
  constexpr int64_t kCount = 333;
  const char* labels[] = {"0 0.5 0.5 0.1 0.1\n", "1 0.5 0.5 0.1 0.1\n", "2 0.5 0.5 0.1 0.1\n"};
  for (int64_t i = 0; i < kCount; ++i) {
    const std::string stem = std::to_string(1000 + i);
    write_all(root + "/images/" + stem + ".png", tiny_png());
    if (i % 2 == 0) write_all(root + "/labels/" + stem + ".txt", labels[i % 3]);
  }
  const yolo9::Annotations annotations({root + "/images"}, kNames);
  int64_t next = 0, told = -1;
  const auto report = yolo9::for_each_scanned(
      annotations,
      [&, caller = std::this_thread::get_id()](int64_t index, yolo9::ScannedImage&& image) {
        REQUIRE(std::this_thread::get_id() == caller);
        REQUIRE(index == next++);
        REQUIRE(image.path == annotations.picture(index));
        REQUIRE((image.height == 12 && image.width == 12 && image.fault.empty()));
        REQUIRE(image.has_label_file == (index % 2 == 0));
        if (image.has_label_file) REQUIRE(image.labels.rows.at(0).class_index == index % 3);
      },
      [&](int64_t done, int64_t total) {
        REQUIRE((done > told && total == kCount));
        told = done;
      });
  CHECK(next == kCount);
  CHECK(told == kCount);
  CHECK(report.pictures == kCount);
  CHECK(report.describe().starts_with("333 pictures in "));
}

TEST_CASE("scan: what the consumer throws ends it", "[data]") {
  const auto root = data_set::make("scan_throws", 40);
  const yolo9::Annotations annotations({root + "/images"}, kNames);
  int seen = 0;
  CHECK_THROWS_AS(yolo9::for_each_scanned(annotations,
                                          [&](int64_t, yolo9::ScannedImage&&) {
                                            if (++seen == 3) throw yolo9::Error(yolo9::ErrorKind::Data, "enough");
                                          }),
                  yolo9::Error);
  CHECK(seen == 3);
}

TEST_CASE("scan: small, misnamed and missing pictures", "[data]") {
  const auto root = data_set::make("scan_kinds", 1);
  const auto images = root + "/images/";
  yolo9::write_image(images + "tiny.png", cv::Mat(1, 1, CV_8UC3, cv::Scalar(0, 0, 0)));
  write_all(images + "really_png.jpg", tiny_png());
  std::filesystem::create_symlink("nowhere.jpg", images + "dangling.jpg");
  const auto scan = [](const std::string& path) { return yolo9::scan_image(yolo9::Annotations({path}, kNames), 0); };
  CHECK(scan(images + "tiny.png").fault_kind == yolo9::ImageFault::TooSmall);
  CHECK(scan(images + "really_png.jpg").fault.empty());
  CHECK(scan(images + "really_png.jpg").is_misnamed());
  CHECK_FALSE(scan(images + "00.png").is_misnamed());
}

TEST_CASE("scan: a slow consumer does not let results pile up", "[data]") {
  // The pictures are never all scanned ahead: those behind are still changed and seen as changed.
  const auto root = fixture::temporary_dir("scan_bounded");
  std::filesystem::create_directories(root + "/images");
  constexpr int64_t kCount = 20000;
  write_all(root + "/one.png", tiny_png());
  for (int64_t i = 0; i < kCount; ++i) {
    std::filesystem::create_hard_link(root + "/one.png", root + "/images/" + std::to_string(10000 + i) + ".png");
  }
  const yolo9::Annotations annotations({root + "/images"}, kNames);
  int64_t missing = 0;
  yolo9::for_each_scanned(annotations, [&](int64_t index, yolo9::ScannedImage&& image) {
    if (index == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));  // the others would be done by now
      std::filesystem::remove_all(root + "/images");
    }
    missing += image.fault_kind == yolo9::ImageFault::Missing ? 1 : 0;
  });
  CHECK(missing > kCount - 2000);
  CHECK(missing < kCount);
}
