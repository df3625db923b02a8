#include <atomic>
#include <stdexcept>
#include <thread>

#include <yolo9/core/random.h>
#include <yolo9/data/filters.h>
#include <yolo9/data/recent_pictures.h>
#include <catch2/catch.hpp>
#include <opencv2/core.hpp>

#include "data/data_set_support.h"

TEST_CASE("recent_pictures: made once, the longest unused dropped first", "[data]") {
  constexpr int64_t kBytes = 10 * 10 * 3;
  yolo9::RecentPictures recent(3 * kBytes);
  int made = 0;
  const auto get = [&](int64_t index) {
    return recent.get(index, [&] {
      ++made;
      return cv::Mat(10, 10, CV_8UC3, cv::Scalar::all(static_cast<double>(index)));
    });
  };
  for (const int64_t i : {0, 1, 2, 0, 1, 2}) CHECK(get(i).at<cv::Vec3b>(5, 5)[0] == i);
  CHECK(made == 3);
  get(0);
  get(3);  // drops 1
  CHECK(recent.bytes() == 3 * kBytes);
  get(0);
  get(2);
  CHECK(made == 4);
  get(1);
  CHECK(made == 5);
  CHECK_THROWS_AS(recent.get(9, []() -> cv::Mat { throw std::runtime_error("bad"); }), std::runtime_error);
  CHECK(get(9).at<cv::Vec3b>(0, 0)[0] == 9);

  yolo9::RecentPictures none(0);  // smaller than any picture: nothing stays, everything comes
  CHECK_FALSE(none.get(1, [] { return cv::Mat(4, 4, CV_8UC3); }).empty());
  CHECK(none.bytes() == 0);
}

TEST_CASE("recent_pictures: many threads make a picture once", "[data]") {
  yolo9::RecentPictures recent(1 << 30);
  std::atomic<int> made{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      yolo9::Random random{static_cast<uint64_t>(t)};
      for (int i = 0; i < 500; ++i) {
        recent.get(random.integer(20), [&] {
          ++made;
          return cv::Mat(30, 30, CV_8UC3);
        });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(made == 20);
  CHECK(recent.bytes() == 20 * 30 * 30 * 3);
}

TEST_CASE("filters: each comes as often as it should and does what its name says", "[data]") {
  yolo9::Random random{2};
  int64_t blur = 0, median = 0, grey = 0, clahe = 0;
  for (int i = 0; i < 20000; ++i) {
    const yolo9::FilterDraws draws = yolo9::draw_filters(0.01, random);
    blur += draws.blur_side > 0 ? 1 : 0;
    median += draws.median_side > 0 ? 1 : 0;
    grey += draws.grey ? 1 : 0;
    clahe += draws.clahe_limit > 0 ? 1 : 0;
    for (const int side : {draws.blur_side, draws.median_side}) {
      CHECK((side == 0 || side == 3 || side == 5 || side == 7));
    }
  }
  for (const int64_t count : {blur, median, grey, clahe}) CHECK((count > 140 && count < 260));
  CHECK_FALSE(yolo9::draw_filters(0, random).any());

  const cv::Mat picture = data_set::noise(64, 64, 5);
  cv::Scalar mean, deviation, filtered_mean, filtered_deviation;
  cv::meanStdDev(picture, mean, deviation);
  const auto filtered = [&](const yolo9::FilterDraws& draws) {
    cv::Mat copy = picture.clone();
    yolo9::apply_filters(copy, draws);
    REQUIRE(copy.type() == CV_8UC3);
    REQUIRE(copy.size() == picture.size());
    cv::meanStdDev(copy, filtered_mean, filtered_deviation);
    return copy;
  };
  filtered({3, 0, false, 0});
  CHECK(filtered_deviation[0] == Approx(deviation[0] / 3).epsilon(0.15));  // the mean of nine
  filtered({0, 5, false, 0});
  CHECK(filtered_deviation[0] < deviation[0] / 2);
  const cv::Mat no_colour = filtered({0, 0, true, 0});
  for (int x = 0; x < 64; ++x) {
    const cv::Vec3b pixel = no_colour.at<cv::Vec3b>(10, x);
    CHECK((pixel[0] == pixel[1] && pixel[1] == pixel[2]));
  }
  cv::Mat dull = picture / 8 + cv::Scalar::all(100);
  cv::Mat clear = dull.clone();
  yolo9::apply_filters(clear, {0, 0, false, 4});
  cv::meanStdDev(dull, mean, deviation);
  cv::meanStdDev(clear, filtered_mean, filtered_deviation);
  CHECK(filtered_deviation[1] > deviation[1]);
}
