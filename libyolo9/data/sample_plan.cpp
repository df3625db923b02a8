#include <yolo9/data/sample_plan.h>

#include <yolo9/data/epoch_order.h>
#include <yolo9/data/image.h>
#include <yolo9/data/item_table.h>

namespace yolo9 {
namespace {

class Planner {
 public:
  Planner(const DatasetOptions& options, const ItemTable& items, const EpochOrder& order, PixelSize shape,
          const std::function<bool(int64_t)>& has_labels, Random& random)
      : options_(options), items_(items), order_(order), shape_(shape), has_labels_(has_labels), random_(random) {}

  ScenePlan single(int64_t index, Objects& objects, LetterboxInfo& info);
  ScenePlan mosaic(int64_t index, Objects& objects);

 private:
  PixelSize loaded_size(int64_t index) const {
    const PixelSize size = items_.picture_size(index);
    const ResizeRule rule = resize_rule(size.height, size.width, options_.image_size, options_.augment);
    return {rule.height, rule.width};
  }
  void draw_view(ScenePlan& scene, Objects& objects);

  const DatasetOptions& options_;
  const ItemTable& items_;
  const EpochOrder& order_;
  PixelSize shape_;
  const std::function<bool(int64_t)>& has_labels_;
  Random& random_;
};

void Planner::draw_view(ScenePlan& scene, Objects& objects) {
  const PerspectiveDraws draws = draw_perspective(options_.augmentation, random_);
  scene.divide = options_.augmentation.perspective != 0;
  scene.matrix =
      perspective_matrix(draws, scene.canvas.height, scene.canvas.width, scene.output.height, scene.output.width);
  objects = warp_objects(objects, scene.matrix, draws.scale, scene.divide, scene.output.height, scene.output.width);
}

ScenePlan Planner::single(int64_t index, Objects& objects, LetterboxInfo& info) {
  const PixelSize file = items_.picture_size(index), loaded = loaded_size(index);
  LetterboxOptions box;
  box.height = shape_.height;
  box.width = shape_.width;
  box.enlarge = options_.augment;
  const LetterboxGeometry g = letterbox_geometry(loaded.height, loaded.width, box);
  const double height = g.ratio_height * static_cast<double>(loaded.height);
  const double width = g.ratio_width * static_cast<double>(loaded.width);
  info = {file.height, file.width,  height / static_cast<double>(file.height), width / static_cast<double>(file.width),
          g.pad_width, g.pad_height};
  ScenePlan scene;
  scene.canvas = scene.output = {g.height(), g.width()};
  scene.tiles.push_back({index,
                         {g.inner_height, g.inner_width},
                         {g.left, g.top, g.left, g.top, g.left + g.inner_width, g.top + g.inner_height}});
  if (has_labels_(index)) {
    for (const LabelRow& row : items_.labels(index)) {
      objects.push_back({row.class_index, denormalise(center_box(row), width, height, g.pad_width, g.pad_height),
                         denormalise(polygon_points(row), width, height, g.pad_width, g.pad_height)});
    }
  }
  if (options_.augment) draw_view(scene, objects);
  return scene;
}

ScenePlan Planner::mosaic(int64_t index, Objects& objects) {
  const AugmentOptions& augmentation = options_.augmentation;
  const int64_t size = options_.image_size;
  const bool nine = augmentation.mosaic9 > 0 && random_.uniform() < augmentation.mosaic9;
  std::vector<int64_t> members{index};
  while (members.size() < (nine ? 9u : 4u)) members.push_back(order_.draw_near(index, random_));
  ScenePlan scene;
  scene.mosaic = true;
  scene.canvas = {2 * size, 2 * size};
  scene.output = {size, size};
  std::vector<PixelSize> sizes;
  for (const int64_t position : random_.permutation(static_cast<int64_t>(members.size()))) {
    const int64_t member = members[static_cast<size_t>(position)];
    sizes.push_back(loaded_size(member));
    scene.tiles.push_back({member, sizes.back(), {}});
  }
  const std::vector<TilePlacement> placements = nine ? place_mosaic9(size, draw_mosaic9_center(size, random_), sizes)
                                                     : place_mosaic4(size, draw_mosaic4_center(size, random_), sizes);
  for (size_t i = 0; i < scene.tiles.size(); ++i) {
    PlannedTile& tile = scene.tiles[i];
    tile.placement = placements[i];
    if (!has_labels_(tile.index)) continue;
    append_mosaic_objects(objects, items_.labels(tile.index), tile.size, tile.placement, size);
  }
  if (augmentation.copy_paste > 0) {
    const std::vector<int64_t> candidates = paste_candidates(objects, scene.canvas.width);
    for (const int64_t chosen : draw_pasted(candidates, augmentation.copy_paste, random_)) {
      scene.pasted.push_back(objects[static_cast<size_t>(chosen)].polygon);
      objects.push_back(mirrored(objects[static_cast<size_t>(chosen)], static_cast<double>(scene.canvas.width)));
    }
  }
  draw_view(scene, objects);
  return scene;
}

}  // namespace

SamplePlan plan_sample(const DatasetOptions& options, const ItemTable& items, const EpochOrder& order, PixelSize shape,
                       const SampleKey& key, const std::function<bool(int64_t)>& has_labels) {
  const AugmentOptions& augmentation = options.augmentation;
  Random random{options.seed, static_cast<uint64_t>(key.epoch), static_cast<uint64_t>(key.index),
                static_cast<uint64_t>(key.repeat)};
  Planner planner(options, items, order, shape, has_labels, random);
  SamplePlan plan;
  if (options.augment && !options.rect && key.mosaic && random.uniform() < augmentation.mosaic) {
    plan.scenes.push_back(planner.mosaic(key.index, plan.objects));
    if (random.uniform() < augmentation.mixup) {
      Objects others;
      plan.scenes.push_back(planner.mosaic(order.draw_near(key.index, random), others));
      plan.mix_ratio = draw_mixup_ratio(random);
      plan.objects.insert(plan.objects.end(), others.begin(), others.end());
    }
    plan.letterbox.original_height = plan.letterbox.original_width = options.image_size;
  } else {
    plan.scenes.push_back(planner.single(key.index, plan.objects, plan.letterbox));
  }
  if (!options.augment) return plan;

  plan.filters = draw_filters(augmentation.filters, random);
  if (augmentation.hsv_h != 0 || augmentation.hsv_s != 0 || augmentation.hsv_v != 0) {
    plan.hsv = draw_hsv(augmentation, random);
  }
  const auto height = static_cast<double>(plan.scenes[0].output.height);
  const auto width = static_cast<double>(plan.scenes[0].output.width);
  plan.flip_up_down = random.uniform() < augmentation.flipud;
  plan.flip_left_right = random.uniform() < augmentation.fliplr;
  for (Object& object : plan.objects) {
    if (plan.flip_up_down) object.box = {object.box.x1, height - object.box.y2, object.box.x2, height - object.box.y1};
    if (plan.flip_left_right) object.box = {width - object.box.x2, object.box.y1, width - object.box.x1, object.box.y2};
  }
  return plan;
}

}  // namespace yolo9
