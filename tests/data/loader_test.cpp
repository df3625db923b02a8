#include <yolo9/data/loader.h>

#include <filesystem>
#include <iterator>
#include <set>

#include <yolo9/core/error.h>
#include <yolo9/data/sampling.h>
#include <catch2/catch.hpp>

#include "data_set_support.h"

namespace {

std::shared_ptr<yolo9::Dataset> make_dataset(const std::string& name, int count, bool augment, bool rect = false) {
  yolo9::DatasetOptions options;
  options.image_size = rect ? 96 : 64;  // a size at which the test pictures' batches differ in shape
  options.batch_size = 4;
  options.augment = augment;
  options.rect = rect;
  const auto root = data_set::make(name, count);
  return std::make_shared<yolo9::Dataset>(std::vector<std::string>{root + "/images"},
                                          std::vector<std::string>{"a", "b", "c"}, options);
}

std::vector<yolo9::Batch> drain(yolo9::Loader& loader) {
  std::vector<yolo9::Batch> batches;
  while (auto batch = loader.next()) batches.push_back(std::move(*batch));
  return batches;
}

bool same(const yolo9::Batch& a, const yolo9::Batch& b) {
  return a.images.equal(b.images) && a.targets.equal(b.targets) && a.paths == b.paths && a.indices == b.indices;
}

bool same(const std::vector<yolo9::Batch>& a, const std::vector<yolo9::Batch>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!same(a[i], b[i])) return false;
  }
  return true;
}

int64_t threads() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
}

}  // namespace

TEST_CASE("the number of workers changes nothing", "[data]") {
  const auto dataset = make_dataset("workers", 11, true);
  std::vector<std::vector<yolo9::Batch>> runs;
  for (const int64_t workers : {0, 1, 2, 4}) {
    yolo9::Loader loader(dataset, {.batch_size = 4, .workers = workers, .shuffle = true, .seed = 5, .prefetch = 2});
    CHECK(loader.batches() == 3);
    std::vector<yolo9::Batch> batches;
    for (int64_t epoch = 0; epoch < 2; ++epoch) {
      loader.start(epoch);
      for (auto& batch : drain(loader)) batches.push_back(std::move(batch));
    }
    REQUIRE(batches.size() == 6);
    CHECK(batches[2].size() == 3);  // the short one is kept
    runs.push_back(std::move(batches));
  }
  CHECK(same(runs[0], runs[1]));
  CHECK(same(runs[0], runs[2]));
  CHECK(same(runs[0], runs[3]));
  CHECK_FALSE(same(runs[0][0], runs[0][3]));
  std::set<int64_t> seen;
  for (size_t i = 0; i < 3; ++i) seen.insert(runs[0][i].indices.begin(), runs[0][i].indices.end());
  CHECK(seen.size() == 11);
}

TEST_CASE("targets carry the image they belong to", "[data]") {
  const auto dataset = make_dataset("targets", 6, false);
  yolo9::Loader loader(dataset, {.batch_size = 4, .workers = 2});
  loader.start(0);
  const auto batches = drain(loader);
  REQUIRE(batches.size() == 2);
  for (const auto& batch : batches) {
    REQUIRE(batch.targets.size(0) == 2 * batch.size());
    for (int64_t row = 0; row < batch.targets.size(0); ++row) {
      const auto image = batch.targets[row][0].item<int64_t>();
      CHECK(image == row / 2);
      const auto labels = dataset->get(batch.indices[static_cast<size_t>(image)]).labels;
      CHECK(batch.targets[row].slice(0, 1).equal(labels[row % 2]));
    }
  }
}

TEST_CASE("an epoch can begin at any batch", "[data]") {
  const auto dataset = make_dataset("resume", 10, true);
  yolo9::Loader loader(dataset, {.batch_size = 3, .workers = 2, .shuffle = true, .seed = 1});
  loader.start(7);
  const auto all = drain(loader);
  REQUIRE(all.size() == 4);
  for (int64_t first = 0; first <= 4; ++first) {
    loader.start(7, first);
    const auto rest = drain(loader);
    CHECK(same(rest, std::vector<yolo9::Batch>(all.begin() + first, all.end())));
  }
  loader.start(7);
  loader.next();
  loader.start(7, 3);  // leaves the epoch in progress
  CHECK(same(*loader.next(), all[3]));
  CHECK_FALSE(loader.next());
  CHECK_FALSE(loader.next());
}

TEST_CASE("given orders, repeats and mosaic off", "[data]") {
  const auto dataset = make_dataset("order", 6, true);
  yolo9::Loader loader(dataset, {.batch_size = 4, .workers = 3});
  loader.start(2, 0, std::vector<int64_t>{5, 5, 1, 5}, true);
  const auto batch = *loader.next();
  CHECK(batch.indices == std::vector<int64_t>{5, 5, 1, 5});
  CHECK_FALSE(batch.images[0].equal(batch.images[1]));
  CHECK_FALSE(batch.images[1].equal(batch.images[3]));
  CHECK(batch.images[3].equal(dataset->get(5, 2, true, 2).image));
  CHECK_FALSE(loader.next());
  loader.start(2, 0, {}, false);
  CHECK(loader.next()->images[1].equal(dataset->get(1, 2, false).image));
}

TEST_CASE("an exception in a worker reaches the caller, in order", "[data]") {
  // A batch refuses samples of different size.
  const auto dataset = make_dataset("exception", 8, false, true);
  REQUIRE(dataset->get(0).image.sizes() != dataset->get(7).image.sizes());
  for (const int64_t workers : {0, 1, 3}) {
    yolo9::Loader loader(dataset, {.batch_size = 4, .workers = workers});
    loader.start(0, 0, std::vector<int64_t>{0, 1, 2, 3, 0, 7, 1, 6, 0, 1});
    CHECK(loader.next()->size() == 4);
    CHECK_THROWS_AS(loader.next(), c10::Error);
    CHECK_FALSE(loader.next());
    loader.start(0);
    CHECK(drain(loader).size() == 2);
  }
}

TEST_CASE("a picture that is swapped for one of another shape does not end the epoch", "[data]") {
  // After the first look, for one that has no height left in its batch's shape.
  const auto root = data_set::make("swapped", 4);
  for (const char* stem : {"00", "01", "02", "03"}) {
    yolo9::write_image(root + "/images/" + stem + ".png", data_set::noise(80, 20, 1));
  }
  yolo9::DatasetOptions options;
  options.image_size = 64;
  options.batch_size = 2;
  options.rect = true;
  const auto dataset = std::make_shared<yolo9::Dataset>(std::vector<std::string>{root + "/images"},
                                                        std::vector<std::string>{"a", "b", "c"}, options);
  yolo9::write_image(dataset->path(3), data_set::noise(10, 1000, 1));
  for (const int64_t workers : {0, 1, 3}) {
    yolo9::Loader loader(dataset, {.batch_size = 2, .workers = workers});
    loader.start(0);
    const auto batches = drain(loader);
    REQUIRE(batches.size() == 2);
    CHECK(batches[0].images.sizes() == batches[1].images.sizes());
  }
}

TEST_CASE("rectangular batches are of one shape each, also shuffled", "[data]") {
  const auto dataset = make_dataset("rect_loader", 11, false, true);
  for (const bool shuffle : {false, true}) {
    yolo9::Loader loader(dataset, {.batch_size = 4, .workers = 2, .shuffle = shuffle, .seed = 3});
    loader.start(0);
    std::set<int64_t> seen;
    for (const auto& batch : drain(loader)) {
      const auto shape = dataset->sample_size(batch.indices.front());
      CHECK(batch.images.size(2) == shape.height);
      CHECK(batch.images.size(3) == shape.width);
      seen.insert(batch.indices.begin(), batch.indices.end());
    }
    CHECK(seen.size() == 11);
  }
}

TEST_CASE("a rectangular set that is one batch fits any loader that takes it whole", "[data]") {
  const auto dataset = make_dataset("one_rect_batch", 3, false, true);  // of batches of 4
  yolo9::Loader loader(dataset, {.batch_size = 3, .workers = 1, .shuffle = true});
  loader.start(0);
  CHECK(loader.next()->size() == 3);
  CHECK_FALSE(loader.next());
  CHECK_THROWS_AS(yolo9::Loader(dataset, {.batch_size = 2}), c10::Error);
}

TEST_CASE("a loader that is left in the middle stops cleanly", "[data]") {
  const auto dataset = make_dataset("stop", 12, true);
  for (int i = 0; i < 20; ++i) {
    yolo9::Loader loader(dataset, {.batch_size = 2, .workers = 4, .shuffle = true, .prefetch = 1});
    loader.start(i);
    for (int k = 0; k < i % 4; ++k) CHECK(loader.next());
  }
}

TEST_CASE("shuffled orders come from seed and epoch", "[data]") {
  const auto order = yolo9::shuffled_order(50, 1, 2);
  CHECK(std::set<int64_t>(order.begin(), order.end()).size() == 50);
  CHECK(order == yolo9::shuffled_order(50, 1, 2));
  CHECK(order != yolo9::shuffled_order(50, 1, 3));
  CHECK(order != yolo9::shuffled_order(50, 2, 2));
}

TEST_CASE("workers live as long as the loader", "[data]") {
  const auto dataset = make_dataset("persistent", 12, true);
  const int64_t before = threads();
  {
    yolo9::Loader loader(dataset, {.batch_size = 2, .workers = 3, .shuffle = true, .prefetch = 1});
    CHECK(threads() == before);  // none before the first epoch
    for (int i = 0; i < 60; ++i) {
      CAPTURE(i);
      loader.start(i, i % 3, {}, i % 2 == 0);
      CHECK(threads() == before + 3);
      for (int k = 0; k < i % 5; ++k) loader.next();
      if (i % 7 == 0) loader.stop();
    }
    CHECK(threads() == before + 3);
  }
  CHECK(threads() == before);
}

TEST_CASE("nothing of an epoch that was left is given out", "[data]") {
  const auto dataset = make_dataset("left", 12, true);
  yolo9::Loader plain(dataset, {.batch_size = 3, .workers = 0, .shuffle = true, .seed = 9});
  yolo9::Loader loader(dataset, {.batch_size = 3, .workers = 4, .shuffle = true, .seed = 9, .prefetch = 3});
  for (int i = 0; i < 40; ++i) {
    CAPTURE(i);
    loader.start(i);
    if (i % 3 > 0) loader.next();
    // Straight away, while the workers are at the old one: back to an earlier batch, without mosaic.
    const bool mosaic = i % 2 == 0;
    loader.start(i + 1000, i % 2, {}, mosaic);
    plain.start(i + 1000, i % 2, {}, mosaic);
    CHECK(same(drain(loader), drain(plain)));
  }
}

TEST_CASE("a batch that is held keeps its pictures", "[data]") {
  const auto dataset = make_dataset("held", 8, true);
  yolo9::Loader plain(dataset, {.batch_size = 2, .workers = 0});
  yolo9::Loader loader(dataset, {.batch_size = 2, .workers = 2, .prefetch = 1});
  std::vector<at::Tensor> slices;  // a slice is enough
  for (int epoch = 0; epoch < 4; ++epoch) {
    loader.start(epoch);
    while (auto batch = loader.next()) slices.push_back(batch->images.narrow(0, 1, 1));
  }
  size_t i = 0;
  for (int epoch = 0; epoch < 4; ++epoch) {
    plain.start(epoch);
    while (auto batch = plain.next()) CHECK(batch->images.narrow(0, 1, 1).equal(slices.at(i++)));
  }
  CHECK(i == 16);
}

TEST_CASE("quad batches depend on the epoch alone", "[data]") {
  const auto dataset = make_dataset("quad", 11, true);
  std::vector<std::vector<yolo9::Batch>> runs;
  for (const int64_t workers : {0, 1, 4}) {
    yolo9::Loader loader(dataset, {.batch_size = 8, .workers = workers, .shuffle = true, .seed = 5, .quad = true});
    std::vector<yolo9::Batch> batches;
    for (int64_t epoch = 0; epoch < 8; ++epoch) {
      loader.start(epoch);
      for (auto& batch : drain(loader)) batches.push_back(std::move(batch));
    }
    runs.push_back(std::move(batches));
  }
  CHECK(same(runs[0], runs[1]));
  CHECK(same(runs[0], runs[2]));
  REQUIRE(runs[0].size() == 16);
  for (size_t i = 0; i < 16; ++i) {
    const yolo9::Batch& batch = runs[0][i];
    // 8 samples make two pictures; the 3 of the short batch one each.
    CHECK(batch.size() == (i % 2 == 0 ? 2 : 3));
    CHECK(batch.samples == (i % 2 == 0 ? 8 : 3));
    CHECK(batch.images.size(2) == 128);
    CHECK(batch.images.size(3) == 128);
    CHECK(batch.indices.size() == static_cast<size_t>(batch.size()));
  }
}
