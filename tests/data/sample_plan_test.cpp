// Properties of what is drawn for samples, over thousands of draws.
#include <map>
#include <set>

#include <yolo9/data/epoch_order.h>
#include <yolo9/data/item_table.h>
#include <yolo9/data/sample_plan.h>
#include <catch2/catch.hpp>

namespace {

yolo9::ItemTable made_table(int64_t count, yolo9::Random& random, bool polygons) {
  yolo9::ItemTable table;
  for (int64_t i = 0; i < count; ++i) {
    yolo9::PictureItem item{"p" + std::to_string(i), {100 + random.integer(900), 100 + random.integer(900)}, {}};
    for (int64_t k = random.integer(6); k >= 0; --k) {
      yolo9::LabelRow row;
      row.class_index = (i + k) % 7;
      row.w = static_cast<float>(random.uniform(0.02, 0.5));
      row.h = static_cast<float>(random.uniform(0.02, 0.5));
      row.cx = static_cast<float>(random.uniform(row.w / 2, 1 - row.w / 2));
      row.cy = static_cast<float>(random.uniform(row.h / 2, 1 - row.h / 2));
      if (polygons && random.uniform() < 0.5) {  // the box as a polygon: both must go the same way
        const float x1 = row.cx - row.w / 2, y1 = row.cy - row.h / 2, x2 = row.cx + row.w / 2, y2 = row.cy + row.h / 2;
        row.polygon = {x1, y1, x2, y1, x2, y2, x1, y2};
      }
      item.labels.push_back(row);
    }
    table.add(item);
  }
  return table;
}

const auto kAll = [](int64_t) { return true; };

}  // namespace

TEST_CASE("sample_plan: boxes stay inside, classes are those of the tiles, boxes keep two pixels", "[data]") {
  yolo9::Random random{11};
  const yolo9::ItemTable table = made_table(300, random, true);
  yolo9::DatasetOptions options;
  options.augment = true;
  options.image_size = 256;
  options.augmentation.mosaic9 = 0.3;
  options.augmentation.mosaic = 0.8;
  options.augmentation.mixup = 0.3;
  options.augmentation.copy_paste = 0.5;
  options.augmentation.degrees = 30;
  options.augmentation.shear = 5;
  options.augmentation.perspective = 0.0005;
  options.augmentation.flipud = 0.5;
  const yolo9::EpochOrder order(300, 0, 0);
  int64_t objects = 0, pasted = 0, mixed = 0;
  for (int64_t repeat = 0; repeat < 10; ++repeat) {
    for (int64_t index = 0; index < 300; ++index) {
      const yolo9::SamplePlan plan = plan_sample(options, table, order, {256, 256}, {index, 0, repeat, true}, kAll);
      std::set<int64_t> classes;
      for (const yolo9::ScenePlan& scene : plan.scenes) {
        pasted += static_cast<int64_t>(scene.pasted.size());
        for (const yolo9::PlannedTile& tile : scene.tiles) {
          for (const yolo9::LabelRow& row : table.labels(tile.index)) classes.insert(row.class_index);
        }
      }
      mixed += plan.scenes.size() > 1 ? 1 : 0;
      CAPTURE(index, repeat);
      for (const yolo9::Object& object : plan.objects) {
        ++objects;
        REQUIRE(classes.count(object.class_index) == 1);
        const yolo9::Corners& b = object.box;
        REQUIRE((b.x1 >= 0 && b.y1 >= 0 && b.x2 <= 256 && b.y2 <= 256));
        REQUIRE((b.x2 - b.x1 > 2 && b.y2 - b.y1 > 2));
      }
    }
  }
  CHECK(objects > 10000);
  CHECK(pasted > 1000);
  CHECK(mixed > 500);
}

TEST_CASE("sample_plan: a box and the same box as a polygon go the same way", "[data]") {
  yolo9::Random random{12};
  yolo9::ItemTable boxes, polygons;
  for (int64_t i = 0; i < 60; ++i) {
    yolo9::LabelRow row{
        0, 0.5f, 0.5f, static_cast<float>(random.uniform(0.2, 0.6)), static_cast<float>(random.uniform(0.2, 0.6)), {}};
    yolo9::PictureItem item{"p", {300 + random.integer(200), 300 + random.integer(200)}, {row}};
    boxes.add(item);
    const float x1 = row.cx - row.w / 2, y1 = row.cy - row.h / 2, x2 = row.cx + row.w / 2, y2 = row.cy + row.h / 2;
    item.labels[0].polygon = {x1, y1, x2, y1, x2, y2, x1, y2};
    polygons.add(item);
  }
  yolo9::DatasetOptions options;
  options.augment = true;
  options.image_size = 256;
  options.augmentation.mosaic = 0;
  options.augmentation.scale = 0.3;  // everything stays inside
  options.augmentation.translate = 0.02;
  options.augmentation.degrees = 10;
  const yolo9::EpochOrder order(60, 0, 0);
  int64_t compared = 0;
  for (int64_t epoch = 0; epoch < 40; ++epoch) {
    for (int64_t i = 0; i < 60; ++i) {
      const yolo9::SampleKey key{i, epoch, 0, true};
      const yolo9::SamplePlan a = plan_sample(options, boxes, order, {256, 256}, key, kAll);
      const yolo9::SamplePlan b = plan_sample(options, polygons, order, {256, 256}, key, kAll);
      REQUIRE(a.objects.size() == 1);
      REQUIRE(b.objects.size() == 1);
      const yolo9::Corners &p = a.objects[0].box, &q = b.objects[0].box;
      if (p.x1 <= 0 || p.y1 <= 0 || p.x2 >= 256 || p.y2 >= 256) continue;  // clipped: polygons drop points instead
      ++compared;
      // Resampling to 1,000 points may cut a corner by the distance of two of them.
      REQUIRE(std::max({std::abs(p.x1 - q.x1), std::abs(p.y1 - q.y1), std::abs(p.x2 - q.x2), std::abs(p.y2 - q.y2)}) <
              1);
    }
  }
  CHECK(compared > 1000);
}

TEST_CASE("sample_plan: areas keep their share of the picture under zoom and shift", "[data]") {
  yolo9::ItemTable table;
  table.add({"p", {400, 400}, {{0, 0.5f, 0.5f, 0.2f, 0.1f, {}}}});
  yolo9::DatasetOptions options;
  options.augment = true;
  options.image_size = 400;
  options.augmentation.mosaic = 0;
  options.augmentation.scale = 0.5;
  options.augmentation.translate = 0.1;
  const yolo9::EpochOrder order(1, 0, 0);
  for (int64_t epoch = 0; epoch < 2000; ++epoch) {
    const yolo9::SamplePlan plan = plan_sample(options, table, order, {400, 400}, {0, epoch, 0, true}, kAll);
    REQUIRE(plan.objects.size() == 1);
    const yolo9::Corners& b = plan.objects[0].box;
    const double zoom = plan.scenes[0].matrix[0];
    REQUIRE(b.x2 - b.x1 == Approx(80 * zoom).epsilon(1e-6));
    REQUIRE(b.y2 - b.y1 == Approx(40 * zoom).epsilon(1e-6));
  }
}

TEST_CASE("epoch_order: partners are near, all places equally likely, another order every epoch", "[data]") {
  constexpr int64_t kCount = 1000, kDraws = 20000;
  const yolo9::EpochOrder order(kCount, 7, 3), other(kCount, 7, 4);
  yolo9::Random random{1};
  std::map<int64_t, int64_t> seen, seen_later;
  for (int64_t i = 0; i < kDraws; ++i) ++seen[order.draw_near(5, random)];
  for (int64_t i = 0; i < kDraws; ++i) ++seen_later[other.draw_near(5, random)];
  CHECK(seen.size() == 2 * yolo9::EpochOrder::kReach + 1);
  for (const auto& [index, count] : seen) CHECK(count > kDraws / 129 / 2);
  int64_t common = 0;
  for (const auto& [index, count] : seen) common += static_cast<int64_t>(seen_later.count(index));
  CHECK(common < 60);  // 17 are expected by chance
  // A small set has no stretches: any picture may come.
  const yolo9::EpochOrder small(10, 7, 3);
  std::set<int64_t> all;
  for (int i = 0; i < 500; ++i) all.insert(small.draw_near(0, random));
  CHECK(all.size() == 10);
}
