#include <yolo9/data/convert.h>

#include <yolo9/core/error.h>
#include <yolo9/data/annotations.h>
#include <yolo9/data/data_config.h>
#include <catch2/catch.hpp>

#include "data_set_support.h"

namespace fs = std::filesystem;
using data_set::write;
using data_set::write_picture;

namespace {

std::string object(const std::string& name, int xmin) {
  return "<object><name>" + name + "</name><bndbox><xmin>" + std::to_string(xmin) +
         "</xmin><ymin>6</ymin><xmax>37</xmax><ymax>15</ymax></bndbox></object>";
}

std::string make_voc(const std::string& name) {
  const auto root = fixture::temporary_dir(name);
  write_picture(root + "/JPEGImages/a b #1.png");
  write_picture(root + "/JPEGImages/c.png");
  write(root + "/Annotations/a b #1.xml",
        "<annotation>" + object("dog", 3) + object("cat", 7) + object("dog", -30) + object("dog", 3) + "</annotation>");
  return root;
}

std::string make_coco(const std::string& name) {
  const auto root = fixture::temporary_dir(name);
  write_picture(root + "/images/a.png");
  write_picture(root + "/images/x/a.png");  // the same name in another folder
  write(root + "/a.json", R"({"images":[{"id":1,"file_name":"a.png","width":100,"height":50},
      {"id":2,"file_name":"x/a.png"},{"id":3,"file_name":"none.png"}],
      "categories":[{"id":9,"name":"b: \"odd\""},{"id":2,"name":"dog"}],"annotations":[
      {"image_id":1,"category_id":9,"bbox":[3.3,5.1,7.7,9.9]},
      {"image_id":1,"category_id":2,"bbox":[0,0,5,5],"iscrowd":1},
      {"image_id":2,"category_id":2,"segmentation":[[1.7,2.3,33.3,4,20,41.9,-7,30]],"bbox":[1,2,3,4]},
      {"image_id":2,"category_id":2,"segmentation":{"size":[50,100],"counts":[55,7,43,9,41,3]},"bbox":[1,2,3,4]}]})");
  return root;
}

// The rows of all pictures, by picture.
std::vector<std::vector<yolo9::LabelRow>> rows_of(const std::vector<std::string>& sources,
                                                  const std::vector<std::string>& names) {
  const yolo9::Annotations annotations(sources, names);
  std::vector<std::vector<yolo9::LabelRow>> rows;
  for (int64_t i = 0; i < annotations.size(); ++i) {
    if (!fs::exists(annotations.picture(i))) continue;
    const auto source = annotations.source(i);
    rows.push_back(source.exists ? annotations.parse(i, source, {50, 100}).rows : std::vector<yolo9::LabelRow>{});
  }
  return rows;
}

void check_equal(const std::vector<std::vector<yolo9::LabelRow>>& a,
                 const std::vector<std::vector<yolo9::LabelRow>>& b) {
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    REQUIRE(a[i].size() == b[i].size());
    for (size_t j = 0; j < a[i].size(); ++j) {
      const auto &p = a[i][j], &q = b[i][j];
      CHECK((p.class_index == q.class_index && p.cx == q.cx && p.cy == q.cy && p.w == q.w && p.h == q.h));
      CHECK(p.polygon == q.polygon);
    }
  }
}

std::string message_of(const yolo9::ConvertOptions& options) {
  try {
    yolo9::convert_data(options);
  } catch (const yolo9::Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("convert: COCO's labels are those that are read directly", "[data]") {
  const auto root = make_coco("convert_coco");
  const auto out = fixture::temporary_dir("convert_coco_out") + "/new";
  const auto report = yolo9::convert_data({yolo9::ConvertFrom::Coco, root + "/a.json", out, "", {}, false});
  CHECK(report.names == std::vector<std::string>{"dog", "b: \"odd\""});
  REQUIRE(report.splits.size() == 1);
  CHECK((report.splits[0].pictures == 2 && report.splits[0].objects == 3));
  CHECK(report.missing_pictures == 1);
  CHECK(report.faults.at("crowd") == 1);
  CHECK(report.faults.at("clipped_polygon") == 1);
  const auto config = yolo9::load_data_config(out + "/data.yaml");
  CHECK(config.names == report.names);
  CHECK(config.split("val") == config.split("train"));
  const auto direct = rows_of({root + "/a.json"}, report.names);
  CHECK((direct[0].size() == 1 && direct[1].size() == 2));
  check_equal(rows_of(config.split("train"), config.names), direct);
  CHECK(fs::is_symlink(out + "/images/train/a.png"));
  CHECK(fs::exists(out + "/labels/train/a_2.txt"));
}

TEST_CASE("convert: VOC's labels are those that are read directly", "[data]") {
  const auto root = make_voc("convert_voc");
  const auto out = fixture::temporary_dir("convert_voc_out");
  for (const auto& input : {root, root + "/", root + "/Annotations"}) {
    const auto report = yolo9::convert_data({yolo9::ConvertFrom::Voc, input, out, "", {}, true});
    CAPTURE(input);
    CHECK(report.names == std::vector<std::string>{"cat", "dog"});
    CHECK((report.splits[0].pictures == 2 && report.splits[0].objects == 3));
    CHECK(report.faults.at("duplicate") == 1);
    const auto config = yolo9::load_data_config(out + "/data.yaml");
    check_equal(rows_of(config.split("train"), config.names), rows_of({root + "/JPEGImages"}, config.names));
    CHECK(!fs::is_symlink(out + "/images/train/c.png"));
  }
  // By the lists of the set, and from XML files that stand far from their pictures.
  write(root + "/ImageSets/Main/train.txt", "a b #1\n");
  write(root + "/ImageSets/Main/val.txt", "c\n");
  auto report = yolo9::convert_data({yolo9::ConvertFrom::Voc, root, out, "", {"dog"}, false});
  REQUIRE(report.splits.size() == 2);
  CHECK((report.splits[0].objects == 2 && report.splits[1].pictures == 1));
  CHECK(report.faults.at("unknown_category") == 1);
  CHECK(report.example.at("unknown_category").starts_with(root + "/Annotations/a b #1.xml:1: \"cat\""));
  const auto far = fixture::temporary_dir("convert_voc_far");
  fs::copy(root + "/JPEGImages", far + "/pictures");
  report = yolo9::convert_data({yolo9::ConvertFrom::Voc, root + "/Annotations", out, far + "/pictures", {}, false});
  CHECK((report.splits[0].pictures == 2 && report.splits[0].objects == 3));
}

TEST_CASE("convert: splits from several COCO files", "[data]") {
  const auto root = make_coco("convert_splits");
  fs::create_directories(root + "/annotations");
  fs::copy(root + "/a.json", root + "/annotations/instances_train.json");
  fs::copy(root + "/a.json", root + "/annotations/instances_val.json");
  const auto out = fixture::temporary_dir("convert_splits_out");
  const auto report =
      yolo9::convert_data({yolo9::ConvertFrom::Coco, root + "/annotations", out, root + "/images", {"dog"}, false});
  REQUIRE(report.splits.size() == 2);
  CHECK((report.splits[0].name == "train" && report.splits[1].name == "val"));
  CHECK(report.faults.at("unknown_category") == 2);
  CHECK(yolo9::load_data_config(out + "/data.yaml").split("val") == std::vector<std::string>{out + "/images/val"});
}

TEST_CASE("convert: what is refused, and stays as it was", "[data]") {
  const auto root = make_coco("convert_refused");
  const auto out = fixture::temporary_dir("convert_refused_out");
  write(out + "/mine.txt", "mine");
  yolo9::ConvertOptions options{yolo9::ConvertFrom::Coco, root + "/a.json", out, "", {}, false};
  CHECK(message_of(options).find("holds something already") != std::string::npos);
  CHECK(std::distance(fs::directory_iterator(out), {}) == 1);
  options.output = out + "/mine.txt";
  CHECK(message_of(options).find("not a folder") != std::string::npos);
  options.output = root;
  CHECK(message_of(options).find("holds the input") != std::string::npos);
  CHECK(fs::exists(root + "/images/a.png"));
  options.output = out + "/new";
  options.input = root + "/none.json";
  CHECK(!message_of(options).empty());
  options.input = root + "/images";
  CHECK(message_of(options).find("no COCO file") != std::string::npos);
  options = {yolo9::ConvertFrom::Voc, root + "/a.json", out + "/new", "", {}, false};
  CHECK(message_of(options).find("not a folder") != std::string::npos);
  CHECK(!fs::exists(out + "/new"));  // nothing was begun
}
