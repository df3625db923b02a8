#include <yolo9/data/filters.h>

#include <opencv2/imgproc.hpp>

namespace yolo9 {

FilterDraws draw_filters(double probability, Random& random) {
  FilterDraws draws;
  if (probability <= 0) return draws;
  const auto side = [&random] { return 3 + 2 * static_cast<int>(random.integer(3)); };
  if (random.uniform() < probability) draws.blur_side = side();
  if (random.uniform() < probability) draws.median_side = side();
  draws.grey = random.uniform() < probability;
  if (random.uniform() < probability) draws.clahe_limit = random.uniform(1, 4);
  return draws;
}

void apply_filters(cv::Mat& image, const FilterDraws& draws) {
  if (draws.blur_side > 0) cv::blur(image, image, cv::Size(draws.blur_side, draws.blur_side));
  if (draws.median_side > 0) cv::medianBlur(image, image, draws.median_side);
  if (draws.grey) {
    cv::Mat grey;
    cv::cvtColor(image, grey, cv::COLOR_BGR2GRAY);
    cv::cvtColor(grey, image, cv::COLOR_GRAY2BGR);
  }
  if (draws.clahe_limit > 0) {
    constexpr int kTiles = 8;
    cv::Mat lab;
    cv::cvtColor(image, lab, cv::COLOR_BGR2Lab);
    std::vector<cv::Mat> planes;
    cv::split(lab, planes);
    cv::createCLAHE(draws.clahe_limit, cv::Size(kTiles, kTiles))->apply(planes[0], planes[0]);
    cv::merge(planes, lab);
    cv::cvtColor(lab, image, cv::COLOR_Lab2BGR);
  }
}

}  // namespace yolo9
