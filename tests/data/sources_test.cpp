#include <yolo9/data/sources.h>

#include <yolo9/core/error.h>
#include <yolo9/data/data_config.h>
#include <catch2/catch.hpp>

#include "data_set_support.h"
#include "support/fixture.h"

namespace fs = std::filesystem;

namespace {

void touch(const std::string& path) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path) << "x";
}

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const yolo9::Error& error) {
    CHECK(error.kind() == yolo9::ErrorKind::Data);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("pictures are found in folders, lists and links", "[data]") {
  const auto root = fixture::temporary_dir("sources");
  touch(root + "/images/a/1.jpg");
  touch(root + "/images/a/b/2.JPG");
  touch(root + "/images/größe #3.PNG");
  touch(root + "/images/notes.txt");
  touch(root + "/elsewhere/4.webp");
  fs::create_directory_symlink(root + "/elsewhere", root + "/images/link");
  fs::create_directory_symlink(root + "/images", root + "/images/a/loop");
  const auto images = yolo9::find_images({root + "/images"});
  CHECK(images == std::vector<std::string>{root + "/images/a/1.jpg", root + "/images/a/b/2.JPG",
                                           root + "/images/größe #3.PNG", root + "/images/link/4.webp"});

  std::ofstream(root + "/list.txt") << "./images/a/1.jpg\r\n\nimages/größe #3.PNG\n" << root << "/elsewhere/4.webp\n";
  const auto listed = yolo9::find_images({root + "/list.txt"});
  CHECK(listed ==
        std::vector<std::string>{root + "/elsewhere/4.webp", root + "/images/a/1.jpg", root + "/images/größe #3.PNG"});
  CHECK(yolo9::find_images({root + "/images/a/b", root + "/list.txt"}).size() == 4);

  fs::create_directories(root + "/nothing");
  CHECK(message_of([&] { yolo9::find_images({root + "/nothing"}); }).find("no pictures") != std::string::npos);
  CHECK(message_of([&] { yolo9::find_images({root + "/absent"}); }).find("/absent") != std::string::npos);
}

TEST_CASE("list files of every kind", "[data]") {
  const auto root = fixture::temporary_dir("lists");
  for (const char* name : {"/#1 of 2%20.jpg", "/b.JPEG", "/c  d.png"}) touch(root + name);
  fs::create_symlink(root + "/b.JPEG", root + "/link.jpg");
  fs::create_symlink(root + "/loop.jpg", root + "/loop.jpg");  // points to itself: listed, and found missing later
  const std::vector<std::string> expected{root + "/#1 of 2%20.jpg", root + "/b.JPEG", root + "/c  d.png"};
  for (const std::string text : {"#1 of 2%20.jpg\nb.JPEG\nc  d.png\n",
                                 "\xEF\xBB\xBF#1 of 2%20.jpg\r\n\r\n  b.JPEG\t\r\n"
                                 "c  d.png",
                                 "./#1 of 2%20.jpg\n./b.JPEG\nx/../c  d.png\n"}) {
    std::ofstream(root + "/list.txt", std::ios::binary) << text;
    CAPTURE(text);
    CHECK(yolo9::find_images({root + "/list.txt"}) == expected);
  }
  CHECK(yolo9::find_images({root}).size() == 5);
  std::ofstream(root + "/empty.txt");
  CHECK(message_of([&] { yolo9::find_images({root + "/empty.txt"}); }).find("no pictures") != std::string::npos);
}

TEST_CASE("COCO files among the sources", "[data]") {
  CHECK(!yolo9::as_coco_source("a/b.txt"));
  CHECK(!yolo9::as_coco_source("a/b|c"));
  CHECK(yolo9::as_coco_source("a/b.JSON")->json == "a/b.JSON");
  CHECK(yolo9::as_coco_source("a|b.json")->json == "a|b.json");
  const auto coco = yolo9::as_coco_source(yolo9::to_source({"x y.json", "pictures/1"}));
  REQUIRE(coco);
  CHECK((coco->json == "x y.json" && coco->images == "pictures/1"));
  CHECK(yolo9::voc_paths("/d/JPEGImages/a.b.jpg") ==
        std::vector<std::string>{"/d/JPEGImages/a.b.xml", "/d/Annotations/a.b.xml"});
}

TEST_CASE("label files stand beside images", "[data]") {
  CHECK(yolo9::label_path("/d/images/train/größe #3.v2.JPG") == "/d/labels/train/größe #3.v2.txt");
  CHECK(yolo9::label_path("/d/images.v1/x") == "/d/images.v1/x.txt");
}

TEST_CASE("data.yaml: paths and names", "[data]") {
  const auto root = fixture::temporary_dir("data_yaml");
  touch(root + "/set/images/train/1.jpg");
  touch(root + "/set/images/val/2.jpg");
  const auto write = [&](const std::string& text) {
    std::ofstream(root + "/data.yaml") << text;
    return root + "/data.yaml";
  };
  auto config = yolo9::load_data_config(
      write("path: set\ntrain: images/train\nval: [images/val, images/train]\nnames: {0: a, 1: b c}\nnc: 2\n"));
  CHECK(config.names == std::vector<std::string>{"a", "b c"});
  CHECK(config.split("train") == std::vector<std::string>{root + "/set/images/train"});
  CHECK(config.split("val").size() == 2);
  CHECK(!message_of([&] { config.split("test"); }).empty());

  config = yolo9::load_data_config(write("path: " + root + "/set\ntrain: images/train\nval: nowhere\nnames: [x]\n"));
  CHECK(config.split("train").front() == root + "/set/images/train");
  const auto message = message_of([&] { config.split("val"); });
  CHECK(message.find("data.yaml:3") != std::string::npos);
  CHECK(message.find("nowhere") != std::string::npos);
  config = yolo9::load_data_config(write("train: ../set/images/train\nval: set/images/val\nnames: [x]\n"));
  CHECK(config.split("train").front() == root + "/set/images/train");
}

TEST_CASE("data.yaml: every mistake names file and line", "[data]") {
  const auto root = fixture::temporary_dir("data_yaml_faults");
  const auto message = [&](const std::string& text) {
    std::ofstream(root + "/data.yaml") << text;
    return message_of([&] { yolo9::load_data_config(root + "/data.yaml"); });
  };
  const auto contains = [](const std::string& text, const std::string& part) {
    INFO(text);
    return text.find(part) != std::string::npos && text.find('\n') == std::string::npos;
  };
  CHECK(contains(message("val: v\nnames: [a]\n"), "\"train\" is missing"));
  CHECK(contains(message("train: t\nnames: [a]\n"), "\"val\" is missing"));
  CHECK(contains(message("train: t\nval: v\n"), "\"names\" is missing"));
  CHECK(contains(message("train: t\nval: v\nnames: [a, b]\nnc: 3\n"), "data.yaml:4"));
  CHECK(contains(message("train: t\nval: v\nnames: {0: a, 2: b}\n"), "class 1 is missing"));
  CHECK(contains(message("train: t\nval: v\nnames: {a: b}\n"), "not a whole number"));
  CHECK(contains(message("train: t\nval: v\nnames: 5\n"), "data.yaml:3"));
  CHECK(contains(message("train: t\nval: v\nnames: []\n"), "no class names"));
  CHECK(contains(message("- 1\n"), "data.yaml:1"));
  CHECK(contains(message("train: [\n"), "data.yaml"));
  CHECK(contains(message_of([&] { yolo9::load_data_config(root + "/absent.yaml"); }), "absent.yaml"));
}

TEST_CASE("labels are found from inside the data set's folder", "[data]") {
  const std::string root = data_set::make("inside", 2);
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(root);
  const auto images = yolo9::find_images({"images"});
  const bool found = std::filesystem::exists(yolo9::label_path(images.at(0)));
  std::filesystem::current_path(before);
  CHECK(images.at(0) == "./images/00.png");
  CHECK(found);
}
