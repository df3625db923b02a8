#include <yolo9/data/mosaic.h>

#include <yolo9/data/image.h>
#include <opencv2/core.hpp>

namespace yolo9 {
namespace {

TilePlacement place(int64_t x, int64_t y, PixelSize tile, int64_t image_size) {
  const int64_t side = 2 * image_size;
  return {x,
          y,
          std::max<int64_t>(x, 0),
          std::max<int64_t>(y, 0),
          std::min(x + tile.width, side),
          std::min(y + tile.height, side)};
}

}  // namespace

MosaicCenter draw_mosaic4_center(int64_t image_size, Random& random) {
  const auto side = static_cast<double>(image_size);
  MosaicCenter center;
  center.y = static_cast<int64_t>(random.uniform(side / 2, side * 3 / 2));
  center.x = static_cast<int64_t>(random.uniform(side / 2, side * 3 / 2));
  return center;
}

MosaicCenter draw_mosaic9_center(int64_t image_size, Random& random) {
  MosaicCenter center;
  center.y = static_cast<int64_t>(random.uniform(0, static_cast<double>(image_size)));
  center.x = static_cast<int64_t>(random.uniform(0, static_cast<double>(image_size)));
  return center;
}

std::vector<TilePlacement> place_mosaic4(int64_t image_size, MosaicCenter center, const std::vector<PixelSize>& tiles) {
  TORCH_CHECK(tiles.size() == 4, "[place_mosaic4] expected 4 tiles, got ", tiles.size());
  return {place(center.x - tiles[0].width, center.y - tiles[0].height, tiles[0], image_size),
          place(center.x, center.y - tiles[1].height, tiles[1], image_size),
          place(center.x - tiles[2].width, center.y, tiles[2], image_size),
          place(center.x, center.y, tiles[3], image_size)};
}

std::vector<TilePlacement> place_mosaic9(int64_t image_size, MosaicCenter center, const std::vector<PixelSize>& tiles) {
  TORCH_CHECK(tiles.size() == 9, "[place_mosaic9] expected 9 tiles, got ", tiles.size());
  // The middle tile's corners on the canvas of three image sizes.
  const int64_t left = image_size, top = image_size;
  const int64_t right = left + tiles[0].width, bottom = top + tiles[0].height;
  const std::vector<TilePlacement> corners{
      {.x = left, .y = top},                                                          // centre
      {.x = left, .y = top - tiles[1].height},                                        // top
      {.x = left + tiles[1].width, .y = top - tiles[2].height},                       // top right
      {.x = right, .y = top},                                                         // right
      {.x = right, .y = top + tiles[3].height},                                       // bottom right
      {.x = right - tiles[5].width, .y = bottom},                                     // bottom
      {.x = right - tiles[5].width - tiles[6].width, .y = bottom},                    // bottom left
      {.x = left - tiles[7].width, .y = bottom - tiles[7].height},                    // left
      {.x = left - tiles[8].width, .y = bottom - tiles[7].height - tiles[8].height},  // top left
  };
  std::vector<TilePlacement> placements;
  for (size_t i = 0; i < tiles.size(); ++i) {
    placements.push_back(place(corners[i].x - center.x, corners[i].y - center.y, tiles[i], image_size));
  }
  return placements;
}

cv::Mat draw_tiles(PixelSize size, const std::vector<cv::Mat>& tiles, const std::vector<TilePlacement>& placements) {
  cv::Mat canvas(static_cast<int>(size.height), static_cast<int>(size.width), CV_8UC3,
                 cv::Scalar(kFillGrey, kFillGrey, kFillGrey));
  for (size_t i = 0; i < tiles.size(); ++i) {
    const TilePlacement& p = placements.at(i);
    if (!p.visible()) continue;
    const cv::Rect target(static_cast<int>(p.x1), static_cast<int>(p.y1), static_cast<int>(p.x2 - p.x1),
                          static_cast<int>(p.y2 - p.y1));
    const cv::Rect source = target - cv::Point(static_cast<int>(p.x), static_cast<int>(p.y));
    cv::Mat part = canvas(target);
    tiles[i](source).copyTo(part);
  }
  return canvas;
}

cv::Mat draw_mosaic(int64_t image_size, const std::vector<cv::Mat>& tiles,
                    const std::vector<TilePlacement>& placements) {
  return draw_tiles({2 * image_size, 2 * image_size}, tiles, placements);
}

void append_mosaic_objects(Objects& objects, const std::vector<LabelRow>& rows, PixelSize tile,
                           const TilePlacement& placement, int64_t image_size) {
  const auto width = static_cast<double>(tile.width), height = static_cast<double>(tile.height);
  const auto x = static_cast<double>(placement.x), y = static_cast<double>(placement.y);
  const double side = 2.0 * static_cast<double>(image_size);
  for (const LabelRow& row : rows) {
    Object object{row.class_index, clip(denormalise(center_box(row), width, height, x, y), side, side),
                  denormalise(polygon_points(row), width, height, x, y)};
    for (Point& point : object.polygon) {
      point = {std::clamp(point.x, 0.0, side), std::clamp(point.y, 0.0, side)};
    }
    objects.push_back(std::move(object));
  }
}

}  // namespace yolo9
