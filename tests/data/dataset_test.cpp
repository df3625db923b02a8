#include <yolo9/data/dataset.h>

#include <map>
#include <thread>

#include <yolo9/core/error.h>
#include <catch2/catch.hpp>

#include "data_set_support.h"
#include "golden_support.h"

using namespace golden;

namespace {

const std::vector<std::string> kNames{"a", "b", "c"};

bool same(const yolo9::Sample& a, const yolo9::Sample& b) {
  return a.image.equal(b.image) && a.labels.equal(b.labels) && a.path == b.path;
}

std::string message_of(const std::string& folder, const yolo9::DatasetOptions& options = {}) {
  try {
    const yolo9::Dataset dataset({folder + "/images"}, kNames, options);
  } catch (const yolo9::Error& error) {
    CHECK(error.kind() == yolo9::ErrorKind::Data);
    return error.what();
  }
  return "";
}

yolo9::DatasetOptions small_options(bool augment) {
  yolo9::DatasetOptions options;
  options.image_size = 64;
  options.batch_size = 4;
  options.augment = augment;
  return options;
}

void check_sample(const yolo9::Sample& sample, const nlohmann::json& expected, const torch::Tensor& image) {
  // One level where OpenCV's resizing differs between versions.
  REQUIRE(sample.image.sizes() == image.sizes());
  CHECK((sample.image.to(torch::kInt) - image.to(torch::kInt)).abs().max().item<int>() <= 1);
  CHECK(sample.letterbox.original_height == expected["shape0_hw"][0].get<int64_t>());
  CHECK(sample.letterbox.original_width == expected["shape0_hw"][1].get<int64_t>());
  check_near(sample.letterbox.ratio_height, expected["ratio_hw"][0], kExactTolerance);
  check_near(sample.letterbox.ratio_width, expected["ratio_hw"][1], kExactTolerance);
  CHECK(sample.letterbox.pad_left == expected["pad_wh"][0].get<double>());
  CHECK(sample.letterbox.pad_top == expected["pad_wh"][1].get<double>());
  REQUIRE(sample.labels.size(0) == static_cast<int64_t>(expected["labels"].size()));
  for (int64_t row = 0; row < sample.labels.size(0); ++row) {
    for (int64_t column = 0; column < 5; ++column) {
      const double value = expected["labels"][static_cast<size_t>(row)][static_cast<size_t>(column + 1)];
      check_near(sample.labels[row][column].item<float>(), value, 1e-6);
    }
  }
}

}  // namespace

TEST_CASE("whole samples agree with the fixture", "[data][golden]") {
  const auto json = read("samples");
  if (json.is_null()) return;
  const auto tensors = read_tensors("samples");
  const auto root = fixture::temporary_dir("golden_samples");
  std::filesystem::create_directories(root + "/images");
  std::filesystem::create_directories(root + "/labels");
  for (size_t i = 0; i < json["label_text"].size(); ++i) {
    const auto stem = std::to_string(i);
    yolo9::write_image(root + "/images/" + stem + ".png", picture(tensors.at(stem + ".picture_bgr")));
    data_set::write_label(root + "/labels/" + stem + ".txt", json["label_text"][i]);
  }
  const std::vector<std::string> names(80, "thing");
  auto options = small_options(false);
  const yolo9::Dataset square({root + "/images"}, names, options);
  options.rect = true;
  options.batch_size = 2;
  options.pad = 0.5;
  const yolo9::Dataset rect({root + "/images"}, names, options);
  for (const auto& expected : json["samples"]) {
    const std::string key = expected["key"];
    CAPTURE(key);
    const bool is_rect = key.starts_with("rect.");
    const int64_t position = std::stoll(key.substr(key.find('.') + 1));
    const yolo9::Sample sample = is_rect ? rect.get(position) : square.get(position);
    CHECK(sample.path == root + "/images/" + expected["source"].dump() + ".png");
    check_sample(sample, expected, tensors.at(key + ".tensor"));
  }
}

TEST_CASE("a sample is a function of seed, epoch and index", "[data]") {
  const auto root = data_set::make("pure", 8);
  auto options = small_options(true);
  const yolo9::Dataset first({root + "/images"}, kNames, options), second({root + "/images"}, kNames, options);
  options.seed = 1;
  const yolo9::Dataset other({root + "/images"}, kNames, options);
  for (int64_t i = 0; i < 8; ++i) {
    CHECK(same(first.get(i, 3), second.get(i, 3)));
    CHECK(same(first.get(i, 3), first.get(i, 3)));
    CHECK_FALSE(same(first.get(i, 3), first.get(i, 4)));
    CHECK_FALSE(same(first.get(i, 3), other.get(i, 3)));
    CHECK_FALSE(same(first.get(i, 3, true, 0), first.get(i, 3, true, 1)));
    CHECK(first.get(i, 3).image.sizes() == std::vector<int64_t>{3, 64, 64});
  }
}

TEST_CASE("the cache changes nothing", "[data]") {
  const auto root = data_set::make("cache", 6);
  auto options = small_options(true);
  const yolo9::Dataset plain({root + "/images"}, kNames, options);
  options.keep_pictures = yolo9::PictureKeeping::Memory;
  const yolo9::Dataset cached({root + "/images"}, kNames, options);
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    for (int64_t i = 0; i < 6; ++i) CHECK(same(plain.get(i, epoch), cached.get(i, epoch)));
  }
}

TEST_CASE("labels of samples stay inside and keep their classes", "[data]") {
  const auto root = data_set::make("inside", 9);
  auto options = small_options(true);
  options.augmentation = {
      .degrees = 15, .shear = 4, .flipud = 0.5, .mosaic = 0.8, .mosaic9 = 0.4, .mixup = 0.5, .copy_paste = 0.7};
  for (const double perspective : {0.0, 0.0008}) {
    options.augmentation.perspective = perspective;
    const yolo9::Dataset dataset({root + "/images"}, kNames, options);
    int64_t rows = 0;
    for (int64_t epoch = 0; epoch < 12; ++epoch) {
      for (int64_t i = 0; i < dataset.size(); ++i) {
        const torch::Tensor labels = dataset.get(i, epoch).labels;
        REQUIRE(labels.isfinite().all().item<bool>());
        rows += labels.size(0);
        for (int64_t row = 0; row < labels.size(0); ++row) {
          const float* v = labels[row].data_ptr<float>();
          CHECK((v[0] == 0 || v[0] == 1 || v[0] == 2));
          CHECK((v[3] > 0 && v[4] > 0));
          CHECK((v[1] - v[3] / 2 > -1e-6 && v[2] - v[4] / 2 > -1e-6));
          CHECK((v[1] + v[3] / 2 < 1 + 1e-6 && v[2] + v[4] / 2 < 1 + 1e-6));
        }
      }
    }
    CHECK(rows > 100);
  }
}

TEST_CASE("a polygon's box follows its pixels through a mosaic", "[data]") {
  // One white rectangle on black: wherever a sample has a box, its middle is white.
  const auto root = fixture::temporary_dir("follow");
  std::filesystem::create_directories(root + "/images");
  std::filesystem::create_directories(root + "/labels");
  for (const char* name : {"a", "b", "c", "d"}) {
    cv::Mat image = cv::Mat::zeros(60, 80, CV_8UC3);
    image(cv::Rect(20, 15, 40, 30)).setTo(cv::Scalar(255, 255, 255));
    yolo9::write_image(root + "/images/" + name + ".png", image);
    data_set::write_label(root + "/labels/" + name + ".txt",
                          name[0] < 'c' ? "0 0.5 0.5 0.5 0.5\n" : "0 0.25 0.25 0.75 0.25 0.75 0.75 0.25 0.75\n");
  }
  auto options = small_options(true);
  options.augmentation = {.hsv_h = 0, .hsv_s = 0, .hsv_v = 0, .scale = 0.3, .flipud = 0.5, .mixup = 0, .copy_paste = 0};
  const yolo9::Dataset dataset({root + "/images"}, kNames, options);
  int64_t boxes = 0;
  for (int64_t epoch = 0; epoch < 20; ++epoch) {
    for (int64_t i = 0; i < dataset.size(); ++i) {
      const auto sample = dataset.get(i, epoch, epoch % 4 != 3);
      for (int64_t row = 0; row < sample.labels.size(0); ++row, ++boxes) {
        const auto x = static_cast<int64_t>(sample.labels[row][1].item<float>() * 64);
        const auto y = static_cast<int64_t>(sample.labels[row][2].item<float>() * 64);
        CHECK(sample.image[0][y][x].item<int>() > 200);
      }
    }
  }
  CHECK(boxes > 60);
}

TEST_CASE("without mosaic every sample is one picture", "[data]") {
  const auto root = data_set::make("mosaic_off", 6);
  auto options = small_options(true);
  options.augmentation = {.hsv_h = 0, .hsv_s = 0, .hsv_v = 0, .translate = 0, .scale = 0, .fliplr = 0};
  const yolo9::Dataset dataset({root + "/images"}, kNames, options);
  const yolo9::Dataset plain({root + "/images"}, kNames, small_options(false));
  for (int64_t i = 0; i < 6; ++i) {
    CHECK(dataset.get(i, 0, false).labels.size(0) == 2);
    CHECK(dataset.get(i, 0, false).letterbox.original_height == dataset.picture_size(i).height);
    CHECK(dataset.get(i, 0, true).letterbox.original_height == 64);
    CHECK_FALSE(same(dataset.get(i, 0, false), dataset.get(i, 0, true)));
  }
}

TEST_CASE("statistics, single class and min_items", "[data]") {
  const auto root = data_set::make("statistics", 5);
  data_set::write_label(root + "/labels/03.txt", "");
  std::filesystem::remove(root + "/labels/04.txt");
  auto options = small_options(false);
  const yolo9::Dataset dataset({root + "/images"}, kNames, options);
  CHECK(dataset.size() == 5);
  CHECK(dataset.class_counts() == std::vector<int64_t>{2, 2, 2});
  CHECK(dataset.summary().unlabelled == 1);
  CHECK(dataset.summary().empty == 1);
  CHECK(dataset.summary().objects == 6);
  CHECK(dataset.get(3).labels.size(0) == 0);
  CHECK(dataset.get(4).labels.size(0) == 0);
  options.single_class = true;
  const yolo9::Dataset single({root + "/images"}, kNames, options);
  CHECK(single.names().size() == 1);
  CHECK(single.class_counts() == std::vector<int64_t>{6});
  options.min_items = 2;
  const yolo9::Dataset filtered({root + "/images"}, kNames, options);
  CHECK(filtered.size() == 3);
  CHECK(filtered.summary().left_out == 2);
}

TEST_CASE("dataset: bad rows are dropped, counted by kind, and errors with strict", "[data]") {
  const auto root = data_set::make("bad_rows", 3);
  auto strict = small_options(false);
  strict.strict = true;
  CHECK(message_of(root, strict).empty());
  for (const auto& [row, kind] :
       std::vector<std::pair<std::string, std::string>>{{"7 0.5 0.5 0.2 0.2", "class_index"},
                                                        {"0 nan 0.5 0.2 0.2", "not_a_number"},
                                                        {"0 0.5 0.5 0.2 0.2 0.9", "token_count"},
                                                        {"x 0.5 0.5 0.2 0.2", "not_a_number"},
                                                        {"0 0.5 0.5 0.2 1.2", "outside_picture"},
                                                        {"0 0.5 0.5 0.2 0.2", "duplicate"}}) {
    data_set::write_label(root + "/labels/01.txt", "0 0.5 0.5 0.2 0.2\n\n" + row + "\n" + row + "\n");
    CAPTURE(row);
    const yolo9::Dataset dataset({root + "/images"}, kNames, small_options(false));
    CHECK(dataset.size() == 3);
    CHECK(dataset.labels(1).size() == 1);
    CHECK(dataset.label_count(1) == 1);
    CHECK(dataset.summary().dropped_rows == 2);
    CHECK(dataset.summary().unusable == 0);
    CHECK(dataset.summary().objects == 5);
    CHECK(dataset.summary().duplicates == (kind == "duplicate" ? 2 : 0));
    REQUIRE(dataset.summary().faults.size() == 1);
    const yolo9::FaultCount& fault = dataset.summary().faults[0];
    CHECK((fault.kind == kind && fault.count == 2 && !fault.of_pictures && !fault.text.empty()));
    CHECK(fault.place == root + "/labels/01.txt:3");
    const std::string message = message_of(root, strict);
    CAPTURE(message);
    CHECK(message.starts_with(root + "/labels/01.txt:3: "));
    CHECK(message.find("2 rows dropped (" + kind + ")") != std::string::npos);
    CHECK(message.find('\n') == std::string::npos);
  }
}

TEST_CASE("dataset: a training set of nothing but bad rows is refused", "[data]") {
  const auto root = data_set::make("only_bad_rows", 2);
  for (const char* stem : {"00", "01"}) data_set::write_label(root + "/labels/" + stem + ".txt", "7 0.5 0.5 0.1 0.1\n");
  CHECK(message_of(root).empty());  // not for training
  const std::string message = message_of(root, small_options(true));
  CHECK(message.starts_with(root + "/labels/00.txt:1: every labelled row was dropped"));
  data_set::write_label(root + "/labels/00.txt", "2 0.5 0.5 0.1 0.1\n");
  CHECK(message_of(root, small_options(true)).empty());
}

TEST_CASE("dataset: labels that cannot be read take their picture away", "[data]") {
  const auto root = data_set::make("unreadable_labels", 3);
  std::filesystem::remove(root + "/labels/01.txt");
  std::filesystem::create_directories(root + "/labels/01.txt");
  const yolo9::Dataset dataset({root + "/images"}, kNames, small_options(false));
  CHECK(dataset.size() == 2);
  CHECK(dataset.summary().unusable == 1);
  CHECK(dataset.summary().faults.at(0).kind == "unreadable_labels");
}

TEST_CASE("dataset: the cache of the scan changes nothing but the time", "[data]") {
  const auto root = data_set::make("dataset_scan_cache", 6);
  auto options = small_options(true);
  options.scan_folder = fixture::temporary_dir("dataset_scan_cache_c");
  int64_t told = 0;
  options.on_scan = [&told](int64_t done, int64_t) { told = done; };
  std::this_thread::sleep_for(std::chrono::milliseconds(40));
  const yolo9::Dataset plain({root + "/images"}, kNames, small_options(true));
  const yolo9::Dataset first({root + "/images"}, kNames, options), second({root + "/images"}, kNames, options);
  CHECK(told == 6);
  CHECK_FALSE(std::filesystem::is_empty(options.scan_folder));
  for (int64_t i = 0; i < 6; ++i) {
    CHECK(same(plain.get(i, 1), first.get(i, 1)));
    CHECK(same(plain.get(i, 1), second.get(i, 1)));
  }
}

TEST_CASE("damaged pictures are skipped and counted", "[data]") {
  const auto root = data_set::make("damaged", 3);
  const auto images = root + "/images/";
  yolo9::write_image(images + "whole.jpg", data_set::noise(60, 80, 5));
  std::ifstream whole(images + "whole.jpg", std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(whole)), std::istreambuf_iterator<char>());
  std::ofstream(images + "cut.jpg", std::ios::binary) << bytes.substr(0, bytes.size() / 2);
  std::ofstream(images + "trailing.jpg", std::ios::binary) << bytes << "some bytes that a camera added";
  std::ofstream(images + "empty.jpg").close();
  std::ofstream(images + "text.png") << "no picture";
  std::ifstream png_file(images + "00.png", std::ios::binary);
  const std::string png((std::istreambuf_iterator<char>(png_file)), std::istreambuf_iterator<char>());
  std::ofstream(images + "cut.png", std::ios::binary) << png.substr(0, png.size() - 20);
  const yolo9::Dataset dataset({root + "/images"}, kNames, small_options(false));
  CHECK(dataset.size() == 5);
  CHECK(dataset.summary().unusable == 4);
  std::map<std::string, int64_t> kinds;
  for (const yolo9::FaultCount& fault : dataset.summary().faults) kinds[fault.kind] = fault.count;
  CHECK(kinds == std::map<std::string, int64_t>{{"truncated", 2}, {"empty_file", 1}, {"not_a_picture", 1}});
  auto strict = small_options(false);
  strict.strict = true;
  CHECK(message_of(root, strict).find("cut.jpg: the JPEG is cut short (strict: 2 pictures skipped (truncated)") !=
        std::string::npos);
}

TEST_CASE("a picture that vanishes after the first look becomes a grey one", "[data]") {
  const auto root = data_set::make("vanishing", 4);
  for (const bool augment : {false, true}) {
    const yolo9::Dataset dataset({root + "/images"}, kNames, small_options(augment));
    const auto path = dataset.path(2);
    std::filesystem::rename(path, path + ".away");
    const auto sample = dataset.get(2, 0, false);
    CHECK(sample.labels.size(0) == 0);
    CHECK(sample.image.sizes() == std::vector<int64_t>{3, 64, 64});
    CHECK(same(sample, dataset.get(2, 0, false)));
    CHECK(dataset.decode_failures() == 2);
    for (int64_t epoch = 0; epoch < 5; ++epoch) CHECK_NOTHROW(dataset.get(1, epoch));
    std::filesystem::rename(path + ".away", path);
  }
}

TEST_CASE("sets that cannot be used are data errors", "[data]") {
  const auto root = fixture::temporary_dir("unusable");
  std::filesystem::create_directories(root + "/images");
  CHECK(message_of(root).find("no pictures") != std::string::npos);
  std::ofstream(root + "/images/a.jpg").close();
  CHECK(message_of(root).find("none of the 1 pictures") != std::string::npos);
  yolo9::write_image(root + "/images/b.png", data_set::noise(40, 40, 1));
  CHECK(message_of(root).empty());  // a background picture
  CHECK(message_of(root, small_options(true)).find("no picture has a label file") != std::string::npos);
}

TEST_CASE("dataset: pictures kept on disk are not used for others of the same size and time", "[data]") {
  const std::string root = fixture::temporary_dir("kept_stale");
  const std::string picture = root + "/images/a.bmp";
  std::filesystem::create_directories(root + "/images");
  data_set::write(root + "/labels/a.txt", "0 0.5 0.5 0.5 0.5\n");
  yolo9::write_image(picture, data_set::noise(64, 64, 1));
  const auto time = std::filesystem::last_write_time(picture);
  yolo9::DatasetOptions options;
  options.image_size = 64;
  options.keep_pictures = yolo9::PictureKeeping::Disk;
  options.keep_folder = root + "/kept";
  const auto sample = [&] { return yolo9::Dataset({root + "/images"}, {"a"}, options).get(0).image; };
  const torch::Tensor before = sample();
  CHECK(torch::equal(before, sample()));
  yolo9::write_image(picture, data_set::noise(64, 64, 2));
  std::filesystem::last_write_time(picture, time);
  const torch::Tensor after = sample();
  CHECK_FALSE(torch::equal(before, after));
  options.keep_pictures = yolo9::PictureKeeping::None;
  CHECK(torch::equal(after, sample()));
}

TEST_CASE("dataset: a label that is a link to nowhere does not make its picture background", "[data]") {
  const std::string root = data_set::make("dangling", 3);
  std::filesystem::remove(root + "/labels/01.txt");
  std::filesystem::create_symlink(root + "/nowhere.txt", root + "/labels/01.txt");
  const yolo9::Dataset dataset({root + "/images"}, {"a", "b", "c"}, {});
  CHECK(dataset.size() == 2);
  CHECK(dataset.summary().unlabelled == 0);
  yolo9::DatasetOptions strict;
  strict.strict = true;
  CHECK_THROWS_AS(yolo9::Dataset({root + "/images"}, {"a", "b", "c"}, strict), yolo9::Error);
}
