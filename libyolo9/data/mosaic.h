// Mosaics: four pictures around a point, or nine around a picture, on a canvas of twice the image size.
#pragma once

#include <cstdint>
#include <vector>

#include <yolo9/core/random.h>
#include <yolo9/data/labels.h>
#include <yolo9/data/objects.h>

namespace cv {
class Mat;
}

namespace yolo9 {

struct PixelSize {
  int64_t height = 0, width = 0;
};

// Where a tile's (0, 0) comes to stand on the canvas, and the part of the canvas that it fills: empty (x2 <= x1 or
// y2 <= y1) if it lies outside.
struct TilePlacement {
  int64_t x = 0, y = 0;
  int64_t x1 = 0, y1 = 0, x2 = 0, y2 = 0;
  bool visible() const { return x2 > x1 && y2 > y1; }
};

struct MosaicCenter {
  int64_t y = 0, x = 0;
};
// Four: the point where the tiles meet, between a half and one and a half image sizes.
MosaicCenter draw_mosaic4_center(int64_t image_size, Random& random);
// Nine: the corner of the cut from the canvas of three image sizes, between 0 and one image size.
MosaicCenter draw_mosaic9_center(int64_t image_size, Random& random);

// Top-left, top-right, bottom-left, bottom-right. No tile may have a side above image_size.
std::vector<TilePlacement> place_mosaic4(int64_t image_size, MosaicCenter center, const std::vector<PixelSize>& tiles);
// Centre, then clockwise from the top, each beside the one before.
std::vector<TilePlacement> place_mosaic9(int64_t image_size, MosaicCenter center, const std::vector<PixelSize>& tiles);

// A canvas, grey where no tile is; later tiles cover earlier ones.
cv::Mat draw_tiles(PixelSize canvas, const std::vector<cv::Mat>& tiles, const std::vector<TilePlacement>& placements);
// A canvas of 2 x image_size squared, grey where no tile is; later tiles cover earlier ones.
cv::Mat draw_mosaic(int64_t image_size, const std::vector<cv::Mat>& tiles,
                    const std::vector<TilePlacement>& placements);
// Normalised rows of one tile -> objects in canvas pixels, clipped to it. Objects outside stay, without area: the
// cut that follows drops them.
void append_mosaic_objects(Objects& objects, const std::vector<LabelRow>& rows, PixelSize tile,
                           const TilePlacement& placement, int64_t image_size);

}  // namespace yolo9
