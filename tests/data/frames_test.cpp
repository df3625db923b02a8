#include <yolo9/data/frames.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include <opencv2/imgcodecs.hpp>

#include "support/fixture.h"
#include <yolo9/core/error.h>

namespace fs = std::filesystem;

namespace {

std::string five_pictures() {
  const std::string dir = fixture::temporary_dir("sources");
  fs::create_directories(dir + "/images");
  fs::create_directories(dir + "/labels");
  for (int i = 0; i < 5; ++i) {
    cv::imwrite(dir + "/images/p" + std::to_string(i) + ".png", cv::Mat(20, 30, CV_8UC3, cv::Scalar(30 * i, 90, 200)));
    std::ofstream(dir + "/labels/p" + std::to_string(i) + ".txt") << "0 0.3 0.4 0.3 0.3\n";
  }
  fs::create_directory_symlink(dir, dir + "/images/back");
  return dir;
}

}  // namespace

TEST_CASE("sources are files, folders, patterns and lists", "[data]") {
  const std::string dir = five_pictures();
  CHECK(yolo9::expand_source(dir + "/images").size() == 5);
  CHECK(yolo9::expand_source(dir).size() == 5);
  CHECK(yolo9::expand_source(dir + "/images/p0.png") == std::vector<std::string>{dir + "/images/p0.png"});
  CHECK(yolo9::expand_source(dir + "/images/p[01].*").size() == 2);
  std::ofstream(dir + "/list.txt") << "images/p3.png\n\n" << dir << "/images/p1.png  \nimages/p?.png\n";
  const auto listed = yolo9::expand_source(dir + "/list.txt");
  REQUIRE(listed.size() == 7);
  CHECK(fs::path(listed[0]).filename() == "p3.png");
  std::ofstream(dir + "/loop.txt") << "loop.txt\n";
  fs::create_directories(dir + "/empty");
  for (const std::string bad : {"/loop.txt", "/empty", "/absent.png", "/images/*.gif", "/labels/p0.txt"}) {
    CAPTURE(bad);
    try {
      yolo9::expand_source(dir + bad);
      FAIL("accepted");
    } catch (const yolo9::Error& error) {
      CHECK(error.kind() == yolo9::ErrorKind::Data);
      CHECK_THAT(error.what(), !Catch::Contains("\n"));
    }
  }
}

TEST_CASE("frames come from pictures and videos, and damaged files are passed over", "[data]") {
  const std::string dir = fixture::temporary_dir("frames");
  const torch::Tensor grey = torch::full({3, 64, 96}, 100, torch::kUInt8);
  {
    yolo9::VideoSink sink(dir + "/v.mp4", 10, 64, 96);
    for (int i = 0; i < 7; ++i) sink.write(grey + 20 * i);
  }
  cv::imwrite(dir + "/a.png", cv::Mat(20, 30, CV_8UC3, cv::Scalar(1, 2, 3)));
  std::ofstream(dir + "/b.jpg") << "not a picture";
  std::ofstream(dir + "/c.mp4") << "not a video";
  yolo9::FrameSource source(yolo9::expand_source(dir));
  std::vector<yolo9::Frame> frames;
  while (auto frame = source.next()) frames.push_back(*frame);
  REQUIRE(frames.size() == 8);
  CHECK_FALSE(frames[0].video);
  CHECK(frames[0].image[0][0][0].item<int>() == 3);  // red first
  CHECK(frames[7].video);
  CHECK(frames[7].number == 6);
  CHECK(frames[7].frames_per_second == Approx(10));
  CHECK(std::abs(frames[4].image.to(torch::kFloat32).mean().item<double>() - 160) < 8);
  CHECK(source.unreadable() == 2);
  yolo9::FrameSource broken({dir + "/b.jpg", dir + "/c.mp4"});
  CHECK_THROWS_AS(broken.next(), yolo9::Error);
  CHECK_THROWS_AS(yolo9::VideoSink("/nonexistent/v.mp4", 10, 64, 96), yolo9::Error);
}
