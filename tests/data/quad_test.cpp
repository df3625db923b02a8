#include <yolo9/data/quad.h>

#include <ATen/ops/arange.h>
#include <ATen/ops/upsample_bilinear2d.h>

#include <yolo9/core/random.h>
#include <catch2/catch.hpp>

namespace {

yolo9::Sample make_sample(int64_t index, int64_t height, int64_t width, int64_t labels) {
  yolo9::Random random{static_cast<uint64_t>(index), 3};
  yolo9::Sample sample;
  sample.index = index;
  sample.path = std::to_string(index);
  sample.image = at::empty({3, height, width}, at::kByte);
  for (int64_t i = 0; i < sample.image.numel(); ++i) {
    sample.image.data_ptr<uint8_t>()[i] = static_cast<uint8_t>(random.integer(256));
  }
  sample.labels = at::empty({labels, 5}, at::kFloat);
  for (int64_t i = 0; i < labels; ++i) {
    float* row = sample.labels.data_ptr<float>() + 5 * i;
    const double w = random.uniform(0.01, 1), h = random.uniform(0.01, 1);
    row[0] = static_cast<float>(random.integer(7));
    row[1] = static_cast<float>(random.uniform(w / 2, 1 - w / 2));
    row[2] = static_cast<float>(random.uniform(h / 2, 1 - h / 2));
    row[3] = static_cast<float>(w);
    row[4] = static_cast<float>(h);
  }
  sample.letterbox = {10, 20, 0.5, 0.75, 3, 4};
  return sample;
}

at::Tensor room(int64_t pictures, int64_t height, int64_t width) {
  return at::empty({pictures, 3, 2 * height, 2 * width}, at::kByte);
}

}  // namespace

TEST_CASE("groups of four are enlarged or put together with even chances", "[data]") {
  int64_t enlarged = 0, all = 0;
  for (int64_t batch = 0; batch < 1000; ++batch) {
    const auto pictures = yolo9::plan_quads(16, 5, 2, batch);
    REQUIRE(pictures.size() == 4);
    for (size_t i = 0; i < 4; ++i) {
      CHECK(pictures[i].first == static_cast<int64_t>(4 * i));
      enlarged += pictures[i].enlarged ? 1 : 0;
      ++all;
    }
  }
  // Four standard deviations of a fair coin thrown 4000 times are 126.
  CHECK(std::abs(enlarged - all / 2) < 127);
  const auto signs = [](uint64_t seed, int64_t epoch) {
    std::vector<bool> out;
    for (const auto& picture : yolo9::plan_quads(256, seed, epoch, 0)) out.push_back(picture.enlarged);
    return out;
  };
  CHECK(signs(1, 1) == signs(1, 1));
  CHECK(signs(1, 1) != signs(2, 1));
  CHECK(signs(1, 1) != signs(1, 2));
}

TEST_CASE("what a short batch leaves over is enlarged one by one", "[data]") {
  for (int64_t count = 1; count <= 9; ++count) {
    CAPTURE(count);
    const auto pictures = yolo9::plan_quads(count, 0, 0, 0);
    REQUIRE(static_cast<int64_t>(pictures.size()) == yolo9::quad_pictures(count));
    for (int64_t i = count / 4; i < static_cast<int64_t>(pictures.size()); ++i) {
      CHECK(pictures[static_cast<size_t>(i)].enlarged);
      CHECK(pictures[static_cast<size_t>(i)].first == count / 4 * 3 + i);
    }
  }
}

TEST_CASE("enlarging is bilinear", "[data]") {
  for (const auto& [height, width] : {std::pair<int64_t, int64_t>{1, 1}, {1, 5}, {4, 1}, {6, 8}}) {
    CAPTURE(height, width);
    const auto image = make_sample(height * 10 + width, height, width, 0).image;
    auto out = room(1, height, width);
    yolo9::enlarge_twice(image, out.data_ptr<uint8_t>());
    const auto expected =
        at::upsample_bilinear2d(image.unsqueeze(0).to(at::kFloat), {2 * height, 2 * width}, /*align_corners=*/false);
    CHECK((out.to(at::kFloat) - expected).abs().max().item<float>() <= 0.501f);
  }
}

TEST_CASE("four side by side keep their pixels and labels", "[data]") {
  std::vector<yolo9::Sample> samples;
  for (int64_t i = 0; i < 4; ++i) samples.push_back(make_sample(i, 6, 8, 5 * i));
  const yolo9::Batch batch = yolo9::collate_quads(room(1, 6, 8), samples, {{0, false}});
  CHECK(batch.samples == 4);
  CHECK(batch.indices == std::vector<int64_t>{0});
  CHECK(batch.letterboxes[0].original_height == 12);
  CHECK(batch.letterboxes[0].original_width == 16);
  REQUIRE(batch.targets.size(0) == 30);
  int64_t row = 0;
  for (int64_t k = 0; k < 4; ++k) {
    const auto& sample = samples[static_cast<size_t>(k)];
    const auto quadrant = batch.images[0].slice(1, k / 2 * 6, k / 2 * 6 + 6).slice(2, k % 2 * 8, k % 2 * 8 + 8);
    CHECK(quadrant.equal(sample.image));
    for (int64_t i = 0; i < sample.labels.size(0); ++i, ++row) {
      const float* from = sample.labels.data_ptr<float>() + 5 * i;
      const float* to = batch.targets.data_ptr<float>() + 6 * row;
      CHECK(to[0] == 0.0f);
      CHECK(to[1] == from[0]);
      // In pixels of the whole: the box moves by the quadrant's corner and keeps its size.
      CHECK(to[2] * 16 == Approx(from[1] * 8 + static_cast<float>(k % 2 * 8)));
      CHECK(to[3] * 12 == Approx(from[2] * 6 + static_cast<float>(k / 2 * 6)));
      CHECK(to[4] * 16 == Approx(from[3] * 8));
      CHECK(to[5] * 12 == Approx(from[4] * 6));
    }
  }
}

TEST_CASE("labels of quads stay inside their picture", "[data]") {
  for (int64_t round = 0; round < 200; ++round) {
    std::vector<yolo9::Sample> samples;
    for (int64_t i = 0; i < 11; ++i) samples.push_back(make_sample(11 * round + i, 4, 4, i % 6));
    const auto pictures = yolo9::plan_quads(11, 7, 0, round);
    const auto batch = yolo9::collate_quads(room(static_cast<int64_t>(pictures.size()), 4, 4), samples, pictures);
    int64_t expected = 0;
    for (const auto& picture : pictures) {
      for (int64_t k = 0; k < (picture.enlarged ? 1 : 4); ++k) expected += (picture.first + k) % 6;
    }
    REQUIRE(batch.targets.size(0) == expected);
    for (int64_t i = 0; i < expected; ++i) {
      const float* row = batch.targets.data_ptr<float>() + 6 * i;
      REQUIRE((row[0] >= 0 && row[0] < static_cast<float>(pictures.size())));
      for (const int axis : {0, 1}) {
        REQUIRE(row[2 + axis] - row[4 + axis] / 2 >= -1e-6f);
        REQUIRE(row[2 + axis] + row[4 + axis] / 2 <= 1 + 1e-6f);
      }
    }
  }
}

TEST_CASE("an enlarged sample keeps its labels and the way back to its picture", "[data]") {
  std::vector<yolo9::Sample> samples(4);
  samples[0] = make_sample(3, 5, 7, 4);  // the others are not looked at
  const auto batch = yolo9::collate_quads(room(1, 5, 7), samples, {{0, true}});
  CHECK(batch.targets.slice(1, 1).equal(samples[0].labels));
  const auto& box = batch.letterboxes[0];
  CHECK(box.original_height == 10);
  CHECK(box.ratio_height == 1.0);
  CHECK(box.ratio_width == 1.5);
  CHECK(box.pad_left == 6.0);
  CHECK(box.pad_top == 8.0);
  CHECK(batch.samples == 4);
}

TEST_CASE("quads refuse samples of different size", "[data]") {
  std::vector<yolo9::Sample> samples;
  for (int64_t i = 0; i < 4; ++i) samples.push_back(make_sample(i, 4, i == 2 ? 6 : 4, 1));
  CHECK_THROWS_AS(yolo9::collate_quads(room(1, 4, 4), samples, {{0, false}}), c10::Error);
}
