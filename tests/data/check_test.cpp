#include <yolo9/data/check.h>

#include <catch2/catch.hpp>

#include "data_set_support.h"

namespace fs = std::filesystem;
using data_set::write;
using data_set::write_picture;

namespace {

// A set whose val split is one good picture.
yolo9::DataReport check(const std::string& root, const std::string& train) {
  write_picture(root + "/val/v.png");
  write(root + "/val/v.txt", "0 0.5 0.5 0.2 0.2\n");
  write(root + "/data.yaml", "train: " + train + "\nval: val\nnames: [cat]\n");
  return yolo9::check_data(yolo9::load_data_config(root + "/data.yaml"));
}

int64_t count(const yolo9::DataReport& report, const std::string& kind) {
  for (const auto& k : report.kinds()) {
    if (k.kind == kind) return k.count;
  }
  return 0;
}

bool has(const yolo9::DataReport& report, const std::string& line) {
  for (const auto& finding : report.findings) {
    if (yolo9::to_string(finding).starts_with(line)) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("check: a good set has no findings", "[data]") {
  const auto root = fixture::temporary_dir("check_good");
  write_picture(root + "/train/a.png");
  write(root + "/train/a.txt", "0 0.5 0.5 0.2 0.2\n0 0.1 0.1 0.4 0.1 0.4 0.5\n");
  const auto report = check(root, "train");
  CHECK(report.findings.empty());
  REQUIRE(report.splits.size() == 2);
  CHECK(report.splits[0].objects == 2);
  CHECK(report.splits[0].polygons == 1);
}

TEST_CASE("check: every row of a YOLO file that is dropped or changed is listed", "[data]") {
  const auto root = fixture::temporary_dir("check_yolo");
  write_picture(root + "/train/a.png");
  std::string text = "0 0.5 0.5 0.2 0.2\n0 0.5 0.5 0.2 0.2\n0 0.5 0.5 0 0.2\n0 -0.1 0.1 0.4 0.1 0.4 0.5\n";
  for (int i = 0; i < 150; ++i) text += "7 0.5 0.5 0.2 0.2\n";
  write(root + "/train/a.txt", text);
  write_picture(root + "/train/b.png");
  write(root + "/train/c.png", "no picture");
  const auto report = check(root, "train");
  CHECK(count(report, "class_index") == 150);
  CHECK(has(report, root + "/train/a.txt:154: fault: class index 7"));
  CHECK(has(report, root + "/train/a.txt:2: note: the same object as in line 1"));
  CHECK(has(report, root + "/train/a.txt:3: note: a box without width"));
  CHECK(has(report, root + "/train/a.txt:4: note: the polygon leaves"));
  CHECK(has(report, root + "/train/b.png: note: has no label file"));
  CHECK(has(report, root + "/train/c.png: fault: is not a picture"));
  CHECK(report.faults() == 151);
  const auto json = nlohmann::json::parse(yolo9::to_json(report));
  CHECK(json["kinds"]["class_index"] == 150);
  CHECK(json["kinds"]["clipped_polygon"] == 1);
  CHECK(json["findings"].size() == report.findings.size());
}

TEST_CASE("check: VOC and COCO", "[data]") {
  const auto root = fixture::temporary_dir("check_others");
  write_picture(root + "/train/a.png");
  write(root + "/train/a.xml",
        "<annotation>\n<object><name>cow</name></object>\n<object><name>cat</name><bndbox>"
        "<xmin>-20</xmin><ymin>1</ymin><xmax>9</xmax><ymax>9</ymax></bndbox></object></annotation>");
  auto report = check(root, "train");
  CHECK(has(report, root + "/train/a.xml:2: fault: \"cow\" is none"));
  CHECK(has(report, root + "/train/a.xml:3: note: the box leaves"));
  CHECK(report.splits[0].objects == 1);
  CHECK((report.faults() == 1 && report.notes() == 1));

  write(root + "/a.json",
        "{\"images\":[{\"id\":1,\"file_name\":\"train/a.png\",\"width\":100,\"height\":50},\n"
        "{\"id\":2,\"file_name\":\"none.png\"}],\"categories\":[{\"id\":1,\"name\":\"cat\"}],\"annotations\":[\n"
        "{\"image_id\":1,\"category_id\":1,\"bbox\":[1,1,9,9],\"iscrowd\":1},\n"
        "{\"image_id\":3,\"category_id\":1,\"bbox\":[1,1,9,9]},\n{\"image_id\":1,\"category_id\":1,\"bbox\":[1,1,9,9]}]"
        "}");
  report = check(root, "a.json");
  CHECK(has(report, root + "/a.json:3: note: annotation without id of \"train/a.png\": a crowd"));
  CHECK(has(report, root + "/a.json:4: fault: an annotation of image 3"));
  CHECK(has(report, root + "/none.png: fault: there is no such file"));
  CHECK((report.splits[0].pictures == 2 && report.splits[0].objects == 1));
  CHECK(report.faults() == 2);
  write(root + "/a.json", "{\"images\":[\n}");
  CHECK(count(check(root, "a.json"), "no_pictures") == 1);
}
