#include <yolo9/data/sample_maker.h>

#include <optional>

#include <yolo9/core/error.h>
#include <yolo9/core/log.h>
#include <yolo9/data/finish.h>
#include <yolo9/data/image.h>
#include <yolo9/data/item_table.h>
#include <yolo9/data/picture_cache.h>
#include <yolo9/data/picture_reader.h>
#include <yolo9/data/recent_pictures.h>
#include <yolo9/data/sample_plan.h>
#include <yolo9/data/stage_clock.h>
#include <yolo9/data/tile_warp.h>
#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>

namespace yolo9 {
namespace {

// Larger pictures are read at a reduced scale even where all of it is wanted exactly: 64 megapixels are 192 MB.
constexpr int64_t kMostPixelsAtOnce = 64 << 20;
constexpr double kOversampling = 4;  // of such a picture before it is averaged to its size

cv::Mat grey_picture(PixelSize size) {
  return cv::Mat(static_cast<int>(size.height), static_cast<int>(size.width), CV_8UC3,
                 cv::Scalar(kFillGrey, kFillGrey, kFillGrey));
}

torch::Tensor label_tensor(const Objects& objects, PixelSize size) {
  const auto width = static_cast<double>(size.width), height = static_cast<double>(size.height);
  torch::Tensor labels = torch::empty({static_cast<int64_t>(objects.size()), 5}, torch::kFloat32);
  float* row = labels.data_ptr<float>();
  for (const Object& object : objects) {
    const CenterBox box = normalise(clip(object.box, width - kClipMargin, height - kClipMargin), width, height);
    for (const double value : {static_cast<double>(object.class_index), box.cx, box.cy, box.w, box.h}) {
      *row++ = static_cast<float>(value);
    }
  }
  return labels;
}

// canvas -> shares of a tile's picture.
AffineMap to_shares(const PlannedTile& tile) {
  const auto width = static_cast<double>(tile.size.width), height = static_cast<double>(tile.size.height);
  return {1 / width, 0,          (0.5 - static_cast<double>(tile.placement.x)) / width,
          0,         1 / height, (0.5 - static_cast<double>(tile.placement.y)) / height};
}

AffineMap whole_picture(const cv::Mat& picture) {
  return {static_cast<double>(picture.cols), 0, -0.5, 0, static_cast<double>(picture.rows), -0.5};
}

// The mirrored canvas through the same window, and the part of the output that pasted copies may cover.
struct Pasting {
  cv::Mat mask;   // of the area
  cv::Rect area;  // in the output
  std::optional<CanvasView> view;
};

Matrix3 moved(const Matrix3& m, double x, double y) {
  Matrix3 result = m;
  for (size_t j = 0; j < 3; ++j) {
    result[j] -= x * m[6 + j];
    result[3 + j] -= y * m[6 + j];
  }
  return result;
}

Pasting plan_pasting(const ScenePlan& scene) {
  Pasting pasting;
  if (scene.pasted.empty()) return pasting;
  constexpr int kSubpixelBits = 4;
  constexpr double kSubpixels = 1 << kSubpixelBits, kFarthest = 20000;
  const Matrix3& m = scene.matrix;
  const double last = static_cast<double>(scene.canvas.width) - 1;
  cv::Mat mask = cv::Mat::zeros(static_cast<int>(scene.output.height), static_cast<int>(scene.output.width), CV_8UC1);
  for (const Polygon& outline : scene.pasted) {
    std::vector<cv::Point> points;
    for (const Point& point : outline) {
      const double x = last - std::floor(point.x), y = std::floor(point.y);
      const double z = scene.divide ? m[6] * x + m[7] * y + m[8] : 1;
      const auto fixed = [&](double value) {
        return static_cast<int>(std::lround(std::clamp(value / z, -kFarthest, kFarthest) * kSubpixels));
      };
      points.emplace_back(fixed(m[0] * x + m[1] * y + m[2]), fixed(m[3] * x + m[4] * y + m[5]));
    }
    // Each by itself: together, overlapping outlines would leave holes.
    cv::fillPoly(mask, std::vector<std::vector<cv::Point>>{points}, cv::Scalar(255), cv::LINE_8, kSubpixelBits);
  }
  pasting.area = cv::boundingRect(mask);
  if (pasting.area.empty()) return pasting;
  pasting.mask = mask(pasting.area);
  Matrix3 mirrored_matrix = m;  // times the mirror image x -> last - x
  for (size_t row = 0; row < 3; ++row) {
    mirrored_matrix[3 * row] = -m[3 * row];
    mirrored_matrix[3 * row + 2] = m[3 * row + 2] + m[3 * row] * last;
  }
  pasting.view.emplace(moved(mirrored_matrix, pasting.area.x, pasting.area.y), pasting.area.height, pasting.area.width);
  return pasting;
}

}  // namespace

SampleMaker::SampleMaker(const DatasetOptions& options, const ItemTable& items,
                         const std::vector<PixelSize>& rect_shapes, PictureCache* cache)
    : options_(options),
      items_(items),
      rect_shapes_(rect_shapes),
      cache_(cache),
      recent_(std::make_unique<RecentPictures>(options.recent_budget_bytes)),
      orders_(items.size(), options.seed) {}

SampleMaker::~SampleMaker() = default;

PixelSize SampleMaker::sample_size(int64_t index) const {
  if (rect_shapes_.empty()) return {options_.image_size, options_.image_size};
  return rect_shapes_.at(static_cast<size_t>(index / options_.batch_size));
}

void SampleMaker::note_failure(int64_t index, const char* what, Failed& failed) const {
  failed.insert(index);
  ++decode_failures_;
  log_warn_once(items_.path(index), std::string(what) + "; a grey picture takes its place");
}

// Empty if the picture cannot be decoded.
cv::Mat SampleMaker::read_resized(int64_t index, Failed& failed) const {
  const std::string path = items_.path(index);
  const PixelSize size = items_.picture_size(index);
  const ResizeRule rule = resize_rule(size.height, size.width, options_.image_size, options_.augment);
  try {
    if (size.height * size.width <= kMostPixelsAtOnce) {
      return resize_longest_side(read_image(path), options_.image_size, options_.augment);
    }
    PartRequest request;
    request.pixels_wide = kOversampling * static_cast<double>(rule.width);
    request.pixels_high = kOversampling * static_cast<double>(rule.height);
    const cv::Mat reduced = turned_upright(read_picture_part(path, request));
    cv::Mat picture;
    cv::resize(reduced, picture, cv::Size(static_cast<int>(rule.width), static_cast<int>(rule.height)), 0, 0,
               cv::INTER_AREA);
    return picture;
  } catch (const Error& error) {
    note_failure(index, error.what(), failed);
    return {};
  }
}

// The picture at its loaded size, to be read only. Empty if it cannot be decoded.
cv::Mat SampleMaker::load(int64_t index, Failed& failed) const {
  if (failed.count(index) > 0) return {};
  if (!cache_ || !cache_->keeps(index)) return read_resized(index, failed);
  cv::Mat picture = cache_->find(index);
  if (picture.empty()) {
    picture = read_resized(index, failed);
    if (!picture.empty()) cache_->put(index, picture);
  }
  return picture;
}

// The way that the recipe is written down: all pictures on a canvas, which is then warped.
cv::Mat SampleMaker::render_on_canvas(const ScenePlan& scene, Failed& failed) const {
  std::vector<cv::Mat> tiles;
  std::vector<TilePlacement> placements;
  for (const PlannedTile& tile : scene.tiles) {
    cv::Mat picture = load(tile.index, failed);
    if (picture.empty()) picture = grey_picture(tile.size);
    if (picture.rows != tile.size.height || picture.cols != tile.size.width) {
      cv::Mat resized;
      cv::resize(picture, resized, cv::Size(static_cast<int>(tile.size.width), static_cast<int>(tile.size.height)), 0,
                 0, cv::INTER_LINEAR);
      picture = resized;
    }
    tiles.push_back(picture);
    placements.push_back(tile.placement);
  }
  cv::Mat canvas = draw_tiles(scene.canvas, tiles, placements);
  paste_mirrored(canvas, scene.pasted);
  return warp(canvas, scene.matrix, scene.divide,
              {(scene.output.height - scene.canvas.height) / 2, (scene.output.width - scene.canvas.width) / 2});
}

// A whole picture for mosaics, no finer than they show it: what load() gives, but that a JPEG is decoded at a reduced
// scale first.
cv::Mat SampleMaker::loaded_part(int64_t index, const PartRequest& request) const {
  const cv::Mat picture = turned_upright(read_picture_part(items_.path(index), request));
  const cv::Size size(static_cast<int>(request.pixels_wide), static_cast<int>(request.pixels_high));
  if (picture.size() == size) return with_slack(picture);
  cv::Mat resized = new_picture(size.height, size.width);
  cv::resize(picture, resized, size, 0, 0, cv::INTER_LINEAR);
  return with_slack(resized);
}

// Fills the tile's picture and where in it the shares of the picture lie.
bool SampleMaker::read_tile(const PlannedTile& planned, const PartRequest& request, bool mosaic, WarpTile& tile,
                            Failed& failed) const {
  const int64_t index = planned.index;
  if (cache_ && cache_->keeps(index)) {
    tile.pixels = load(index, failed);
    if (tile.pixels.empty()) return false;
    const bool kept = cache_->find(index).data == tile.pixels.data;  // then it has slack
    if (!kept || tile.pixels.rows < 2 || tile.pixels.cols < 2) tile.pixels = with_slack(tile.pixels);
    tile.to_pixels = whole_picture(tile.pixels);
    return true;
  }
  try {
    if (mosaic && options_.recent_budget_bytes > 0) {
      PartRequest all;
      all.pixels_wide = static_cast<double>(planned.size.width);
      all.pixels_high = static_cast<double>(planned.size.height);
      tile.pixels = recent_->get(index, [&] { return loaded_part(index, all); });
      tile.to_pixels = whole_picture(tile.pixels);
    } else {
      const PicturePart part = read_picture_part(items_.path(index), request);
      tile.pixels = part.pixels;
      tile.to_pixels = part.to_pixels;
    }
    return true;
  } catch (const Error& error) {
    note_failure(index, error.what(), failed);
    return false;
  }
}

// The same without the canvas: of each picture only what is seen is decoded, no finer than it is shown.
cv::Mat SampleMaker::render_tiles(const ScenePlan& scene, Failed& failed) const {
  const CanvasView view(scene.matrix, scene.output.height, scene.output.width);
  const Pasting pasting = plan_pasting(scene);
  std::vector<WarpTile> tiles;
  for (const PlannedTile& planned : scene.tiles) {
    const TilePlacement& p = planned.placement;
    if (!p.visible() || failed.count(planned.index) > 0) continue;
    // A neighbour of the tile's outermost pixels may be interpolated with them.
    const auto x1 = static_cast<double>(p.x1 - 1), y1 = static_cast<double>(p.y1 - 1);
    const auto x2 = static_cast<double>(p.x2), y2 = static_cast<double>(p.y2);
    CanvasView::Region seen = view.shown(x1, y1, x2, y2);
    if (pasting.view) seen = seen.joined(pasting.view->shown(x1, y1, x2, y2));
    if (seen.empty()) continue;

    const StageTimer timer(SampleStage::Decode);
    const AffineMap shares = to_shares(planned);
    PartRequest request;
    request.x1 = shares.xx * seen.x1 + shares.x0;
    request.x2 = shares.xx * seen.x2 + shares.x0;
    request.y1 = shares.yy * seen.y1 + shares.y0;
    request.y2 = shares.yy * seen.y2 + shares.y0;
    request.pixels_wide = static_cast<double>(planned.size.width) * std::min(view.zoom_x(), 1.0);
    request.pixels_high = static_cast<double>(planned.size.height) * std::min(view.zoom_y(), 1.0);
    WarpTile tile{p.x1, p.y1, p.x2, p.y2, {}, {}};
    if (!read_tile(planned, request, scene.mosaic, tile, failed)) continue;
    tile.to_pixels = after(tile.to_pixels, shares);
    tiles.push_back(std::move(tile));
  }
  const StageTimer timer(SampleStage::Warp);
  cv::Mat out(static_cast<int>(scene.output.height), static_cast<int>(scene.output.width), CV_8UC3);
  warp_tiles(tiles, view, out);
  if (pasting.view) {
    cv::Mat copies(pasting.area.height, pasting.area.width, CV_8UC3);
    warp_tiles(tiles, *pasting.view, copies);
    copies.copyTo(out(pasting.area), pasting.mask);
  }
  return out;
}

cv::Mat SampleMaker::render_scene(const ScenePlan& scene, Failed& failed) const {
  // Without augmentation a picture comes out exactly as evaluation is defined.
  return options_.augment && !options_.through_canvas ? render_tiles(scene, failed) : render_on_canvas(scene, failed);
}

cv::Mat SampleMaker::render(const SamplePlan& plan, Failed& failed) const {
  cv::Mat image = render_scene(plan.scenes[0], failed);
  if (plan.scenes.size() > 1) {
    const cv::Mat other = render_scene(plan.scenes[1], failed);
    const StageTimer timer(SampleStage::Mix);
    image = mix(image, other, plan.mix_ratio);
  }
  const StageTimer timer(SampleStage::Finish);
  if (plan.filters.any()) apply_filters(image, plan.filters);
  return image;
}

Sample SampleMaker::make(int64_t index, int64_t epoch, bool mosaic, int64_t repeat, uint8_t* planes) const {
  Failed failed;
  const auto has_labels = [&failed](int64_t i) { return failed.count(i) == 0; };
  const SampleKey key{index, epoch, repeat, mosaic};
  const std::shared_ptr<const EpochOrder> order = orders_.at(epoch);
  SamplePlan plan;
  {
    const StageTimer timer(SampleStage::Plan);
    plan = plan_sample(options_, items_, *order, sample_size(index), key, has_labels);
  }
  cv::Mat image;
  for (size_t known = 0;; known = failed.size()) {
    image = render(plan, failed);
    if (failed.size() == known) break;
    // Rare: what the pictures that failed would have shown is planned again without them.
    plan = plan_sample(options_, items_, *order, sample_size(index), key, has_labels);
  }
  Sample sample;
  sample.path = items_.path(index);
  sample.index = index;
  sample.letterbox = plan.letterbox;
  const PixelSize size{image.rows, image.cols};
  sample.labels = label_tensor(plan.objects, size);
  if (planes) {
    sample.image = torch::from_blob(planes, {3, size.height, size.width}, torch::kUInt8);
  } else {
    sample.image = torch::empty({3, size.height, size.width}, torch::kUInt8);
    planes = sample.image.data_ptr<uint8_t>();
  }
  const StageTimer timer(SampleStage::Finish);
  finish_picture(image, {plan.hsv, plan.flip_up_down, plan.flip_left_right}, planes);
  return sample;
}

}  // namespace yolo9
