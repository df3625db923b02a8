#include <yolo9/eval/evaluator.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include <opencv2/imgcodecs.hpp>

#include "support/fixture.h"
#include <yolo9/core/error.h>
#include <yolo9/core/random.h>
#include <yolo9/data/frames.h>
#include <yolo9/eval/detector.h>
#include <yolo9/nn/weights.h>

namespace fs = std::filesystem;

namespace {

// Batches of 64 px pictures that carry their number in every pixel; the "model" looks the truth up by it.
class Scene {
 public:
  Scene(int64_t images, int64_t classes) : classes_(classes) {
    yolo9::Random random({11});
    for (int64_t i = 0; i < images; ++i) {
      truth_.emplace_back();
      for (int64_t k = 0; k < 1 + i % 3; ++k) {
        // Far apart, so that nothing suppresses anything.
        truth_.back().push_back({double(random.integer(classes)), 10.0 + 20 * double(k), random.uniform(12, 50),
                                 random.uniform(8, 14), random.uniform(8, 14)});
      }
    }
  }

  // Network size 64; originals are 128 wide and 96 high: ratio 0.5, 8 px of padding above.
  std::vector<yolo9::Batch> batches(int64_t size) const {
    std::vector<yolo9::Batch> result;
    const auto images = static_cast<int64_t>(truth_.size());
    for (int64_t begin = 0; begin < images; begin += size) {
      yolo9::Batch batch;
      const int64_t count = std::min(size, images - begin);
      batch.images = torch::zeros({count, 3, 64, 64}, torch::kUInt8);
      std::vector<torch::Tensor> targets;
      for (int64_t i = 0; i < count; ++i) {
        batch.images[i].fill_(begin + i);
        for (const auto& t : truth_[size_t(begin + i)]) {
          targets.push_back(torch::tensor({double(i), t[0], t[1] / 64, t[2] / 64, t[3] / 64, t[4] / 64}));
        }
        const std::string stem = begin + i == 1 ? "named" : "00" + std::to_string(begin + i);
        batch.paths.push_back("/pictures/" + stem + ".jpg");
        yolo9::LetterboxInfo info;
        info.original_height = 96, info.original_width = 128;
        info.ratio_height = info.ratio_width = 0.5;
        info.pad_top = 8;
        batch.letterboxes.push_back(info);
        batch.indices.push_back(begin + i);
      }
      batch.targets = torch::stack(targets).to(torch::kFloat32);
      result.push_back(batch);
    }
    return result;
  }

  // Finds everything, with scores that fall from image to image; `miss` leaves out each image's first object.
  torch::Tensor look(const torch::Tensor& images, bool miss = false, int64_t class_shift = 0) const {
    torch::Tensor out = torch::zeros({images.size(0), 4 + classes_, 8});
    for (int64_t i = 0; i < images.size(0); ++i) {
      const auto number = static_cast<size_t>(std::lround(images[i].max().item<double>() * 255));
      for (size_t k = miss ? 1 : 0; k < truth_[number].size(); ++k) {
        const auto& t = truth_[number][k];
        for (int64_t r = 0; r < 4; ++r) out[i][r][int64_t(k)] = t[size_t(r) + 1];
        out[i][4 + (int64_t(t[0]) + class_shift) % classes_][int64_t(k)] = 0.9 - 0.01 * double(number);
      }
    }
    return out;
  }

  std::vector<std::vector<std::array<double, 5>>> truth_;

 private:
  int64_t classes_;
};

yolo9::NextBatch reader(const std::vector<yolo9::Batch>& batches) {
  auto position = std::make_shared<size_t>(0);
  return [&batches, position]() -> std::optional<yolo9::Batch> {
    if (*position == batches.size()) return std::nullopt;
    return batches[(*position)++];
  };
}

yolo9::EvalOptions with_coco() {
  yolo9::EvalOptions options;
  options.coco = true;
  options.names = {"a", "b", "c"};
  return options;
}

std::string tiny_dataset() {
  const std::string dir = fixture::temporary_dir("evalset");
  fs::create_directories(dir + "/images");
  fs::create_directories(dir + "/labels");
  for (int i = 0; i < 5; ++i) {
    cv::Mat picture(48 + 8 * i, 64, CV_8UC3, cv::Scalar(30 * i, 90, 200 - 30 * i));
    picture(cv::Rect(10, 10, 20, 20)).setTo(cv::Scalar(255, 255, 255));
    cv::imwrite(dir + "/images/p" + std::to_string(i) + ".png", picture);
    std::ofstream(dir + "/labels/p" + std::to_string(i) + ".txt") << i % 2 << " 0.3 0.4 0.3 0.3\n";
  }
  return dir;
}

yolo9::DetectionModel tiny_model() {
  yolo9::ModelOptions options;
  options.classes = 2;
  return yolo9::DetectionModel(fixture::source_dir() + "/models/gelan-t.yaml", options);
}

}  // namespace

TEST_CASE("a detector that finds everything scores full marks", "[eval]") {
  const Scene scene(10, 3);
  const auto batches = scene.batches(4);
  auto options = with_coco();
  std::vector<int64_t> seen;
  options.on_batch = [&](int64_t index, const yolo9::Batch& batch, const std::vector<torch::Tensor>& detections) {
    seen.push_back(index);
    REQUIRE(int64_t(detections.size()) == batch.size());
    const auto& truth = scene.truth_[size_t(batch.indices[0])][0];  // in network pixels
    CHECK(detections[0].size(0) == int64_t(scene.truth_[size_t(batch.indices[0])].size()));
    CHECK((detections[0].select(1, 0) - (truth[1] - truth[3] / 2)).abs().min().item<double>() < 1e-3);
  };
  const auto r = yolo9::evaluate([&](const torch::Tensor& x) { return scene.look(x); }, reader(batches), 3, options);
  CHECK(seen == std::vector<int64_t>{0, 1, 2});
  CHECK(r.images == 10);
  CHECK(r.labels == 19);
  CHECK(r.map50 == Approx(0.995).margin(0.006));
  CHECK(r.map == Approx(r.map50));
  CHECK(r.precision == Approx(1.0));
  CHECK(r.recall == Approx(1.0));
  CHECK(r.fitness() == Approx(r.map50));
  CHECK(r.coco.summary.ap == Approx(1.0));
  CHECK(r.batch_halvings == 0);
  int64_t diagonal = 0;
  for (int64_t c = 0; c < 3; ++c) diagonal += int64_t(r.confusion.at(c, c));
  CHECK(diagonal == 19);
  REQUIRE(r.detections.size() == 19);
  // Boxes of the first image in its own pixels: (network - padding) / ratio.
  const auto& t = scene.truth_[0][0];
  CHECK(r.detections[0].image_id == 1);
  CHECK(r.detections[0].box.x == Approx((t[1] - t[3] / 2) / 0.5).margin(1e-3));
  CHECK(r.detections[0].box.y == Approx((t[2] - t[4] / 2 - 8) / 0.5).margin(1e-3));
  CHECK(r.detections[0].box.width == Approx(t[3] / 0.5).margin(1e-3));
  int64_t images_with_class = 0;
  for (const int64_t n : r.class_images) images_with_class += n;
  CHECK(images_with_class >= 10);
  CHECK(r.class_maps(5)[4] == Approx(r.map));
}

TEST_CASE("misses, wrong classes and nothing at all are measured as such", "[eval]") {
  const Scene scene(10, 3);
  const auto batches = scene.batches(3);
  const auto missing =
      yolo9::evaluate([&](const torch::Tensor& x) { return scene.look(x, true); }, reader(batches), 3, with_coco());
  CHECK(missing.recall < 0.7);
  CHECK(missing.coco.summary.ar100 < 0.7);
  const auto wrong =
      yolo9::evaluate([&](const torch::Tensor& x) { return scene.look(x, false, 1); }, reader(batches), 3, with_coco());
  CHECK(wrong.map50 < 0.05);
  auto single = with_coco();
  single.single_class = true;
  const auto one =
      yolo9::evaluate([&](const torch::Tensor& x) { return scene.look(x, false, 1); }, reader(batches), 3, single);
  CHECK(one.map50 > 0.98);
  CHECK(one.ap.classes == std::vector<int64_t>{0});
  CHECK(one.confusion.classes() == 1);
  const auto blind = yolo9::evaluate([](const torch::Tensor& x) { return torch::zeros({x.size(0), 7, 8}); },
                                     reader(batches), 3, with_coco());
  CHECK(blind.fitness() == 0.0);
  CHECK(blind.coco.summary.ap == 0.0);
  const std::vector<yolo9::Batch> none;
  const auto empty =
      yolo9::evaluate([&](const torch::Tensor& x) { return scene.look(x); }, reader(none), 3, with_coco());
  CHECK(empty.images == 0);
  CHECK(empty.map == 0.0);
}

TEST_CASE("running out of memory halves the batch and changes nothing else", "[eval]") {
  const Scene scene(11, 3);
  const auto batches = scene.batches(8);
  const auto plain =
      yolo9::evaluate([&](const torch::Tensor& x) { return scene.look(x, true); }, reader(batches), 3, with_coco());
  std::vector<int64_t> sizes;
  const auto tight = yolo9::evaluate(
      [&](const torch::Tensor& x) {
        sizes.push_back(x.size(0));
        TORCH_CHECK_WITH(OutOfMemoryError, x.size(0) <= 3, "no room for ", x.size(0));
        return scene.look(x, true);
      },
      reader(batches), 3, with_coco());
  CHECK(sizes == std::vector<int64_t>{8, 4, 2, 2, 2, 2, 2, 1});
  CHECK(tight.batch_halvings == 2);
  CHECK(tight.images == 11);
  CHECK(tight.map == plain.map);
  CHECK(tight.coco.summary.figures() == plain.coco.summary.figures());
  CHECK(tight.confusion.rows() == plain.confusion.rows());
  try {
    yolo9::evaluate(
        [&](const torch::Tensor&) -> torch::Tensor { TORCH_CHECK_WITH(OutOfMemoryError, false, "none at all"); },
        reader(batches), 3, with_coco());
    FAIL("accepted");
  } catch (const yolo9::Error& error) {
    CHECK(error.kind() == yolo9::ErrorKind::Memory);
    CHECK_THAT(error.what(), Catch::Contains("64x64"));
  }
  CHECK_THROWS_WITH(
      yolo9::evaluate([&](const torch::Tensor&) -> torch::Tensor { throw std::runtime_error("other"); },
                      reader(batches), 3, with_coco()),
      "other");
}

TEST_CASE("predictions are written under the pictures' names", "[eval]") {
  const Scene scene(3, 3);
  const auto batches = scene.batches(3);
  auto r = yolo9::evaluate([&](const torch::Tensor& x) { return scene.look(x); }, reader(batches), 3, with_coco());
  const std::string path = fixture::temporary_dir("predictions") + "/p.json";
  yolo9::write_predictions(path, r);
  auto json = fixture::read_json(path);
  REQUIRE(json.size() == r.detections.size());
  CHECK(json[0]["image_id"] == 0);
  CHECK(json[1]["image_id"] == "named");
  CHECK(json.back()["image_id"] == 2);
  CHECK(json[0]["category_id"] == r.detections[0].category_id);
  r.names.assign(80, "x");
  r.names[0] = "person", r.names[1] = "bicycle", r.names[79] = "toothbrush";
  r.detections[0].category_id = 79;
  yolo9::write_predictions(path, r);
  CHECK(fixture::read_json(path)[0]["category_id"] == 90);
}

TEST_CASE("a model is evaluated over a loader and left in its mode", "[eval]") {
  const std::string dir = tiny_dataset();
  yolo9::DatasetOptions set;
  set.image_size = 64;
  const auto data = std::make_shared<yolo9::Dataset>(std::vector<std::string>{dir + "/images"},
                                                     std::vector<std::string>{"x", "y"}, set);
  yolo9::LoaderOptions load;
  load.batch_size = 2;
  load.workers = 1;
  yolo9::Loader loader(data, load);
  auto model = tiny_model();
  yolo9::EvalOptions options;
  options.names = data->names();
  for (const bool training : {true, false}) {
    model->train(training);
    const auto before = model->buffers()[0].clone();
    const auto r = yolo9::evaluate(model, loader, options);
    CHECK(r.images == 5);
    CHECK(r.labels == 5);
    CHECK(r.ap.classes == std::vector<int64_t>{0, 1});
    CHECK(r.inference_ms > 0);
    CHECK(model->is_training() == training);
    CHECK(torch::equal(before, model->buffers()[0]));
  }
  model->train(true);
  options.on_batch = [](int64_t, const yolo9::Batch&, const std::vector<torch::Tensor>&) {
    throw std::runtime_error("stop");
  };
  CHECK_THROWS_WITH(yolo9::evaluate(model, loader, options), "stop");
  CHECK(model->is_training());
}

TEST_CASE("the detector gives boxes in the picture's own pixels", "[eval]") {
  auto model = tiny_model();
  yolo9::NmsOptions nms;
  nms.confidence = 0;
  nms.max_detections = 20;
  yolo9::Detector detector(model, nms);
  CHECK(detector.stride() == 32);
  const torch::Tensor picture = fixture::uniform("input:3x90x200", {3, 90, 200}).mul(255).to(torch::kUInt8);
  yolo9::LetterboxInfo info;
  const torch::Tensor input = yolo9::letterbox_picture(picture, 128, 32, info);
  CHECK(input.size(2) == 128);
  CHECK(input.size(1) == 64);
  const torch::Tensor found = detector.detect(input, info);
  REQUIRE(found.size(0) > 0);
  CHECK(found.size(0) <= 20);
  CHECK(found.select(1, 2).max().item<float>() <= 200);
  CHECK(found.select(1, 3).max().item<float>() <= 90);
  CHECK(found.slice(1, 0, 2).min().item<float>() >= 0);
}
