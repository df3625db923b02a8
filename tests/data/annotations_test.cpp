#include <yolo9/data/annotations.h>

#include <sys/stat.h>

#include <yolo9/core/error.h>
#include <yolo9/data/data_config.h>
#include <yolo9/data/dataset.h>
#include <yolo9/data/sources.h>
#include <catch2/catch.hpp>

#include "data_set_support.h"

namespace fs = std::filesystem;
using data_set::write;
using data_set::write_picture;
using yolo9::Annotations;
using yolo9::LabelFormat;

namespace {

const std::vector<std::string> kNames{"cat", "dog"};

std::string voc(const std::string& name) {
  return "<annotation><object><name>" + name +
         "</name><bndbox><xmin>11</xmin><ymin>6</ymin><xmax>30</xmax><ymax>15</ymax></bndbox></object></annotation>";
}

std::string coco(const std::string& file_name) {
  return R"({"images":[{"id":1,"file_name":")" + file_name + R"(","width":100,"height":50}],)" +
         R"("categories":[{"id":1,"name":"dog"}],"annotations":[{"image_id":1,"category_id":1,"bbox":[10,5,20,10]}]})";
}

// The rows of the only picture.
yolo9::LabelFile read_one(const Annotations& annotations, LabelFormat format) {
  REQUIRE(annotations.size() == 1);
  const auto source = annotations.source(0);
  CHECK(source.format == format);
  CHECK((source.exists && source.readable && source.hash != 0));
  return annotations.parse(0, source, {50, 100});
}

}  // namespace

TEST_CASE("annotations: a picture's label file, by format and name", "[data]") {
  const std::string row = "0 0.5 0.5 0.2 0.2\n";
  struct Layout {
    std::string picture, label, text;
    LabelFormat format;
  };
  int number = 0;
  for (const Layout& layout :
       std::vector<Layout>{{"images/a.png", "labels/a.txt", row, LabelFormat::Yolo},
                           {"images/a.PNG", "labels/a.txt", row, LabelFormat::Yolo},
                           {"images/a.PNG", "labels/a.TXT", row, LabelFormat::Yolo},
                           {"images/x/b #1 %20 ü.png", "labels/x/b #1 %20 ü.txt", row, LabelFormat::Yolo},
                           {"a.png", "a.txt", row, LabelFormat::Yolo},
                           {"a.png", "a.xml", voc("cat"), LabelFormat::Voc},
                           {"JPEGImages/a.png", "Annotations/a.xml", voc("cat"), LabelFormat::Voc},
                           {"images/a.png", "annotations/a.xml", voc("cat"), LabelFormat::Voc},
                           {"images/a.png", "Annotations/a.xml", voc("cat"), LabelFormat::Voc},
                           {"images/t/a.png", "labels/t/a.xml", voc("cat"), LabelFormat::Voc}}) {
    CAPTURE(layout.picture, layout.label);
    const auto root = fixture::temporary_dir("layout" + std::to_string(number++));
    write_picture(root + "/" + layout.picture);
    write(root + "/" + layout.label, layout.text);
    const Annotations annotations({root}, kNames);
    const auto file = read_one(annotations, layout.format);
    CHECK(annotations.source(0).path == root + "/" + layout.label);
    REQUIRE(file.rows.size() == 1);
    CHECK(file.rows[0].w == 0.2F);
  }
}

TEST_CASE("annotations: of both a YOLO and a VOC file the YOLO file counts", "[data]") {
  const auto root = fixture::temporary_dir("both");
  write_picture(root + "/a.png");
  write(root + "/a.xml", voc("dog"));
  CHECK(read_one(Annotations({root}, kNames), LabelFormat::Voc).rows.at(0).class_index == 1);
  const auto before = Annotations({root}, kNames).source(0).hash;
  write(root + "/a.txt", "0 0.5 0.5 0.2 0.2\n");
  CHECK(read_one(Annotations({root}, kNames), LabelFormat::Yolo).rows.at(0).class_index == 0);
  CHECK(Annotations({root}, kNames).source(0).hash != before);
}

TEST_CASE("annotations: label files that cannot be read", "[data]") {
  const auto root = fixture::temporary_dir("unreadable");
  write_picture(root + "/a.png");
  const auto count = [&] {
    const Annotations annotations({root}, kNames);
    const auto source = annotations.source(0);
    CHECK((source.exists && !source.readable));
    return annotations.parse(0, source, {50, 100}).count(yolo9::LabelFaultKind::Unreadable);
  };
  fs::create_directory(root + "/a.txt");
  CHECK(count() == 1);
  fs::remove(root + "/a.txt");
  REQUIRE(::mkfifo((root + "/a.txt").c_str(), 0600) == 0);  // reading it would wait for ever
  CHECK(count() == 1);
}

TEST_CASE("annotations: where the pictures of a COCO file are", "[data]") {
  int number = 0;
  for (const auto& [json, picture, name] : std::vector<std::tuple<std::string, std::string, std::string>>{
           {"a.json", "p.png", "p.png"},
           {"a.json", "images/p.png", "p.png"},
           {"annotations/a.json", "p.png", "p.png"},
           {"annotations/a.json", "images/p.png", "p.png"},
           {"annotations/instances_train2017.json", "train2017/p.png", "p.png"},
           {"annotations/instances_train2017.json", "images/train2017/p.png", "p.png"},
           {"annotations/train.json", "images/train/p.png", "p.png"},
           {"annotations/a.json", "x/deep er/p ü#.png", "x/deep er/p ü#.png"}}) {
    CAPTURE(json, picture);
    const auto root = fixture::temporary_dir("coco_layout" + std::to_string(number++));
    write_picture(root + "/" + picture);
    write(root + "/" + json, coco(name));
    const Annotations annotations({root + "/" + json}, kNames);
    CHECK(annotations.picture(0) == root + "/" + picture);
    CHECK(read_one(annotations, LabelFormat::Coco).rows.at(0).class_index == 1);
    CHECK(annotations.source(0).path == root + "/" + json);
  }
  // A picture that is not there is listed, so that it is missed.
  const auto root = fixture::temporary_dir("coco_missing");
  write(root + "/a.json", coco("none.png"));
  CHECK(Annotations({root + "/a.json"}, kNames).picture(0) == root + "/none.png");
}

TEST_CASE("annotations: a COCO file's hash changes with it, and differs by picture", "[data]") {
  const auto root = fixture::temporary_dir("coco_hash");
  const std::string two = R"({"images":[{"id":1,"file_name":"a.png"},{"id":2,"file_name":"b.png"}]})";
  write(root + "/a.json", two);
  const auto hash = [&](int64_t i) { return Annotations({root + "/a.json"}, kNames).source(i).hash; };
  const auto first = hash(0);
  CHECK(first != hash(1));
  CHECK(first == hash(0));
  write(root + "/a.json", two + "\n");
  CHECK(first != hash(0));
}

TEST_CASE("data.yaml: COCO files and folders of their pictures", "[data]") {
  const auto root = fixture::temporary_dir("coco_yaml");
  write_picture(root + "/pictures of mine/p.png");
  write(root + "/labels/t.json", coco("p.png"));
  const auto load = [&](const std::string& text) {
    write(root + "/data.yaml", text + "\nval: labels/t.json\nnames: [cat, dog]\n");
    return yolo9::load_data_config(root + "/data.yaml");
  };
  const auto config = load("train: {annotations: labels/t.json, images: pictures of mine}");
  const Annotations annotations(config.split("train"), config.names);
  CHECK(annotations.picture(0) == root + "/pictures of mine/p.png");
  CHECK(config.split("val") == std::vector<std::string>{root + "/labels/t.json"});
  CHECK(load("train: [{annotations: labels/t.json}, pictures of mine]").split("train").size() == 2);

  const auto message = [&](const std::string& text) {
    try {
      load(text).split("train");
    } catch (const yolo9::Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(message("train: {annotations: none.json}").find("none.json does not exist") != std::string::npos);
  CHECK(message("train: {annotations: labels/t.json, images: nowhere}").find("nowhere does not exist") !=
        std::string::npos);
  CHECK(message("train: {annotations: labels}").find("data.yaml:1") != std::string::npos);
  CHECK(message("train: {images: labels}").find("annotations") != std::string::npos);
  CHECK(message("train: {annotations: labels/t.json, image: x}").find("data.yaml:1") != std::string::npos);
}

TEST_CASE("annotations: VOC's lists of ids", "[data]") {
  const auto root = fixture::temporary_dir("voc_ids");
  write_picture(root + "/JPEGImages/2007_000032.png");
  write_picture(root + "/JPEGImages/2007_000039.PNG");
  write(root + "/Annotations/2007_000032.xml", voc("dog"));
  write(root + "/ImageSets/Main/train.txt", "2007_000039\r\n2007_000032\n");
  const Annotations annotations({root + "/ImageSets/Main/train.txt"}, kNames);
  REQUIRE(annotations.size() == 2);
  CHECK(annotations.picture(0) == root + "/JPEGImages/2007_000032.png");
  CHECK(annotations.picture(1) == root + "/JPEGImages/2007_000039.PNG");
  CHECK(annotations.parse(0, annotations.source(0), {50, 100}).rows.size() == 1);
  CHECK(!annotations.source(1).exists);
}

TEST_CASE("dataset: COCO and VOC in place, with strict", "[data]") {
  const auto root = fixture::temporary_dir("mixed_formats");
  write_picture(root + "/p.png");
  write(root + "/a.json", R"({"images":[{"id":1,"file_name":"p.png"}],"categories":[{"id":1,"name":"dog"}],
      "annotations":[{"image_id":1,"category_id":1,"bbox":[10,5,20,10]},
      {"image_id":9,"category_id":1,"bbox":[10,5,20,10]}]})");
  write_picture(root + "/voc/q.png");
  write(root + "/voc/q.xml", voc("dog"));
  yolo9::DatasetOptions options;
  options.image_size = 64;
  options.batch_size = 1;
  const std::vector<std::string> sources{root + "/a.json", root + "/voc"};
  const yolo9::Dataset dataset(sources, kNames, options);
  REQUIRE(dataset.size() == 2);
  CHECK(dataset.summary().objects == 2);
  CHECK(dataset.summary().dropped_rows == 1);  // of a picture that is not listed
  options.strict = true;
  try {
    const yolo9::Dataset strict(sources, kNames, options);
    FAIL("strict took it");
  } catch (const yolo9::Error& error) {
    CHECK(std::string(error.what()).starts_with(root + "/a.json:3: "));
  }
}
