#include <yolo9/data/sample_maker.h>

#include <yolo9/core/error.h>
#include <yolo9/core/log.h>
#include <yolo9/data/image.h>
#include <yolo9/data/item_table.h>
#include <yolo9/data/picture_cache.h>
#include <opencv2/core.hpp>

namespace yolo9 {

// A picture on its way to becoming a sample.
struct SampleMaker::Scene {
  cv::Mat image;
  Objects objects;
};

SampleMaker::SampleMaker(const DatasetOptions& options, const ItemTable& items,
                         const std::vector<PixelSize>& rect_shapes, PictureCache* cache)
    : options_(options), items_(items), rect_shapes_(rect_shapes), cache_(cache) {}

PixelSize SampleMaker::sample_size(int64_t index) const {
  if (rect_shapes_.empty()) return {options_.image_size, options_.image_size};
  return rect_shapes_.at(static_cast<size_t>(index / options_.batch_size));
}

// Empty if the picture cannot be decoded.
cv::Mat SampleMaker::read_resized(int64_t index) const {
  const PictureItem i = items_.item(index);
  try {
    return resize_longest_side(read_image(i.path), options_.image_size, options_.augment);
  } catch (const Error& error) {
    ++decode_failures_;
    log_warn_once(i.path, std::string(error.what()) + "; a grey picture takes its place");
    return {};
  }
}

// The picture at its loaded size, to be read only. Empty if it cannot be decoded.
cv::Mat SampleMaker::load(int64_t index) const {
  if (!cache_ || !cache_->keeps(index)) return read_resized(index);
  cv::Mat picture = cache_->find(index);
  if (picture.empty()) {
    picture = read_resized(index);
    if (!picture.empty()) cache_->put(index, picture);
  }
  return picture;
}

SampleMaker::Scene SampleMaker::single(int64_t index, Random& random, LetterboxInfo& info) const {
  const PictureItem i = items_.item(index);
  cv::Mat image = load(index);
  const bool decoded = !image.empty();
  if (!decoded) {
    const ResizeRule rule = resize_rule(i.size.height, i.size.width, options_.image_size, options_.augment);
    image = cv::Mat(static_cast<int>(rule.height), static_cast<int>(rule.width), CV_8UC3,
                    cv::Scalar(kFillGrey, kFillGrey, kFillGrey));
  }
  const PixelSize shape = sample_size(index);
  LetterboxOptions box;
  box.height = shape.height;
  box.width = shape.width;
  box.enlarge = options_.augment;
  LetterboxGeometry g;
  Scene scene{letterbox(image, box, &g), {}};
  const double height = g.ratio_height * image.rows, width = g.ratio_width * image.cols;
  info = {i.size.height,
          i.size.width,
          height / static_cast<double>(i.size.height),
          width / static_cast<double>(i.size.width),
          g.pad_width,
          g.pad_height};
  if (decoded) {
    for (const LabelRow& row : i.labels) {
      scene.objects.push_back({row.class_index, denormalise(center_box(row), width, height, g.pad_width, g.pad_height),
                               denormalise(polygon_points(row), width, height, g.pad_width, g.pad_height)});
    }
  }
  if (options_.augment) {
    const PerspectiveDraws draws = draw_perspective(options_.augmentation, random);
    apply_perspective(scene.image, scene.objects, draws, options_.augmentation.perspective != 0, {});
  }
  return scene;
}

SampleMaker::Scene SampleMaker::mosaic_scene(int64_t index, Random& random) const {
  const AugmentOptions& augmentation = options_.augmentation;
  const int64_t size = options_.image_size;
  const bool nine = augmentation.mosaic9 > 0 && random.uniform() < augmentation.mosaic9;
  std::vector<int64_t> members{index};
  while (members.size() < (nine ? 9u : 4u)) members.push_back(random.integer(items_.size()));
  std::vector<int64_t> shuffled;
  for (const int64_t position : random.permutation(static_cast<int64_t>(members.size()))) {
    shuffled.push_back(members[static_cast<size_t>(position)]);
  }
  std::vector<cv::Mat> tiles;
  std::vector<PixelSize> sizes;
  for (const int64_t member : shuffled) {
    tiles.push_back(load(member));
    sizes.push_back({tiles.back().rows, tiles.back().cols});  // 0 x 0, hence invisible, if it cannot be decoded
  }
  const std::vector<TilePlacement> placements = nine ? place_mosaic9(size, draw_mosaic9_center(size, random), sizes)
                                                     : place_mosaic4(size, draw_mosaic4_center(size, random), sizes);
  Scene scene{draw_mosaic(size, tiles, placements), {}};
  for (size_t k = 0; k < tiles.size(); ++k) {
    if (tiles[k].empty()) continue;
    append_mosaic_objects(scene.objects, items_.labels(shuffled[k]), sizes[k], placements[k], size);
  }
  if (augmentation.copy_paste > 0) {
    const std::vector<int64_t> candidates = paste_candidates(scene.objects, scene.image.cols);
    copy_paste(scene.image, scene.objects, draw_pasted(candidates, augmentation.copy_paste, random));
  }
  const PerspectiveDraws draws = draw_perspective(augmentation, random);
  apply_perspective(scene.image, scene.objects, draws, augmentation.perspective != 0, {-size / 2, -size / 2});
  return scene;
}

namespace {

void colour_and_flip(cv::Mat& image, Objects& objects, const AugmentOptions& options, Random& random) {
  if (options.hsv_h != 0 || options.hsv_s != 0 || options.hsv_v != 0) {
    const HsvGains gains = draw_hsv(options, random);
    scale_hsv(image, gains.hue, gains.saturation, gains.value);
  }
  if (random.uniform() < options.flipud) flip_up_down(image, objects);
  if (random.uniform() < options.fliplr) flip_left_right(image, objects);
}

torch::Tensor label_tensor(const Objects& objects, double width, double height) {
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

}  // namespace

Sample SampleMaker::make(int64_t index, int64_t epoch, bool mosaic, int64_t repeat) const {
  const AugmentOptions& augmentation = options_.augmentation;
  Random random{options_.seed, static_cast<uint64_t>(epoch), static_cast<uint64_t>(index),
                static_cast<uint64_t>(repeat)};
  Sample sample;
  sample.path = items_.path(index);
  sample.index = index;
  Scene scene;
  if (options_.augment && !options_.rect && mosaic && random.uniform() < augmentation.mosaic) {
    scene = mosaic_scene(index, random);
    if (random.uniform() < augmentation.mixup) {
      const Scene other = mosaic_scene(random.integer(items_.size()), random);
      scene.image = mix(scene.image, other.image, draw_mixup_ratio(random));
      scene.objects.insert(scene.objects.end(), other.objects.begin(), other.objects.end());
    }
    sample.letterbox.original_height = scene.image.rows;
    sample.letterbox.original_width = scene.image.cols;
  } else {
    scene = single(index, random, sample.letterbox);
  }
  if (options_.augment) colour_and_flip(scene.image, scene.objects, augmentation, random);
  sample.labels = label_tensor(scene.objects, scene.image.cols, scene.image.rows);
  sample.image = to_tensor(scene.image);
  return sample;
}

}  // namespace yolo9
