#include <yolo9/data/shapes.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <yolo9/core/error.h>
#include <yolo9/data/check.h>
#include <yolo9/data/data_config.h>
#include <yolo9/data/dataset.h>

#include "support/fixture.h"

namespace {

std::map<std::string, std::string> contents(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream stream(entry.path(), std::ios::binary);
    files[std::filesystem::relative(entry.path(), folder).string()] = std::string(
        (std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  }
  return files;
}

const yolo9::ShapesOptions kFew{.seed = 3, .train = 30, .val = 5, .width = 96, .height = 64};

}  // namespace

TEST_CASE("shapes: one seed, one set of bytes", "[data]") {
  const auto a = fixture::temporary_dir("shapes_a"), b = fixture::temporary_dir("shapes_b");
  yolo9::make_shapes(a, kFew);
  yolo9::make_shapes(b, kFew);
  const auto first = contents(a);
  CHECK(first.size() == 1 + 2 * 35);
  CHECK(first == contents(b));
  auto other = kFew;
  other.seed = 4;
  yolo9::make_shapes(b, other);
  CHECK(first != contents(b));
  std::ofstream(b + "/images/train/mine.txt") << "kept";
  yolo9::make_shapes(b, kFew);
  auto again = contents(b);
  CHECK(again.erase("images/train/mine.txt") == 1);
  CHECK(again == first);
}

TEST_CASE("shapes: boxes, polygons and every class, without faults", "[data]") {
  const auto folder = fixture::temporary_dir("shapes");
  yolo9::make_shapes(folder, kFew);
  const auto config = yolo9::load_data_config(folder + "/data.yaml");
  CHECK(config.names == std::vector<std::string>{"circle", "square", "triangle"});
  const auto report = yolo9::check_data(config);
  CHECK(report.findings.empty());
  REQUIRE(report.splits.size() == 2);
  CHECK(report.splits[0].pictures == 30);
  CHECK((report.splits[0].polygons > 0 && report.splits[0].polygons < report.splits[0].objects));
  for (const int64_t count : report.splits[0].class_counts) CHECK(count > 0);
  const yolo9::Dataset dataset(config.split("train"), config.names, {});
  for (int64_t i = 0; i < dataset.size(); ++i) {
    CHECK((dataset.labels(i).size() >= 1 && dataset.labels(i).size() <= 4));
    CHECK(dataset.picture_size(i).width == 96);
  }
}

TEST_CASE("shapes: what cannot be written is a data error", "[data]") {
  const auto folder = fixture::temporary_dir("shapes_unwritable");
  std::ofstream(folder + "/file") << "in the way";
  CHECK_THROWS_AS(yolo9::make_shapes(folder + "/file/below", kFew), yolo9::Error);
  auto wrong = kFew;
  wrong.width = 8;
  CHECK_THROWS_AS(yolo9::make_shapes(folder, wrong), yolo9::Error);
}

TEST_CASE("checking lists every fault with file and line", "[data]") {
  const auto folder = fixture::temporary_dir("check");
  yolo9::make_shapes(folder, kFew);
  std::ofstream(folder + "/labels/train/00001.txt") << "0 0.5 0.5 0.2 0.2 0.9\n9 0.5 0.5 0.2 0.2\n0 nan 0 0 0\n";
  std::ofstream(folder + "/labels/val/00002.txt") << "0 0.5 0.5 0.2 0.2\n0 0.5 0.5 0.2 0.2\n";
  std::ofstream(folder + "/images/val/00003.png").close();
  std::filesystem::remove(folder + "/labels/train/00004.txt");
  auto config = yolo9::load_data_config(folder + "/data.yaml");
  auto report = yolo9::check_data(config);
  CHECK(report.faults() == 4);
  CHECK(report.notes() == 2);
  std::vector<std::string> kinds;
  for (const auto& finding : report.findings) kinds.push_back(finding.kind + ":" + std::to_string(finding.line));
  CHECK(kinds == std::vector<std::string>{"token_count:1", "class_index:2", "not_a_number:3", "no_label_file:0",
                                          "duplicate:2", "unusable_picture:0"});
  CHECK(yolo9::to_string(report.findings[1]).find("labels/train/00001.txt:2: fault: class index 9") !=
        std::string::npos);
  const auto json = nlohmann::json::parse(yolo9::to_json(report));
  CHECK(json["faults"] == 4);
  CHECK(json["findings"].size() == 6);
  CHECK(json["splits"][0]["pictures"] == 30);

  std::filesystem::remove_all(folder + "/images/val");
  report = yolo9::check_data(yolo9::load_data_config(folder + "/data.yaml"));
  CHECK(report.findings.back().kind == "no_pictures");
  CHECK(report.findings.back().is_fault);
}
