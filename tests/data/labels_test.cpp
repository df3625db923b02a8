#include <yolo9/data/labels.h>

#include <catch2/catch.hpp>
#include <yolo9/data/image.h>
#include <yolo9/data/scan.h>
#include <yolo9/data/sources.h>

#include "golden_support.h"

using namespace golden;

namespace {

std::vector<size_t> tokens_per_row(const std::string& text) {
  std::vector<size_t> counts;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    size_t count = 0;
    for (std::string word; words >> word;) ++count;
    if (count > 0) counts.push_back(count);
  }
  return counts;
}

// Whether boxes and polygons share the file. The original then misreads the boxes as two-point polygons; they are
// read row by row here, so only its polygon rows say something.
bool is_mixed(const std::vector<size_t>& counts) {
  const auto is_box = [](size_t count) { return count == 5; };
  return std::any_of(counts.begin(), counts.end(), is_box) && !std::all_of(counts.begin(), counts.end(), is_box);
}

void check_row(const yolo9::LabelRow& row, const nlohmann::json& label) {
  CHECK(row.class_index == static_cast<int64_t>(label[0].get<double>()));
  const std::vector<double> box{label[1], label[2], label[3], label[4]};
  check_center(yolo9::center_box(row), {box[0], box[1], box[2], box[3]}, 1e-7);
}

void check_rows(const std::vector<yolo9::LabelRow>& rows, const nlohmann::json& scene, bool mixed) {
  const auto& labels = scene["labels"];
  REQUIRE(rows.size() == labels.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    CAPTURE(i);
    const bool polygon_row = !rows[i].polygon.empty();
    if (!mixed || polygon_row) check_row(rows[i], labels[i]);
    CHECK(polygon_row == (!scene["segments"].empty() && (!mixed || scene["segments"][i].size() > 2)));
    if (polygon_row) check_polygon(yolo9::polygon_points(rows[i]), polygon(scene["segments"][i]), 1e-7);
  }
}

}  // namespace

TEST_CASE("label files agree with the fixture", "[data][golden]") {
  const auto json = read("loader");
  if (json.is_null()) return;
  const auto folder = fixture::temporary_dir("label_files");
  std::filesystem::create_directories(folder + "/images");
  std::filesystem::create_directories(folder + "/labels");
  for (const auto& [name, scene] : json["label_files"].items()) {
    CAPTURE(name);
    const bool tiny = name.find("under_10_pixels") != std::string::npos;
    yolo9::write_image(folder + "/images/" + name + ".png", cv::Mat(tiny ? 8 : 32, 32, CV_8UC3, cv::Scalar(9, 9, 9)));
    const std::string text = scene["text"].is_null() ? "" : scene["text"].get<std::string>();
    if (!scene["text"].is_null()) std::ofstream(folder + "/labels/" + name + ".txt") << text;

    const auto scanned = yolo9::scan_image(folder + "/images/" + name + ".png", 80);
    const bool accepted = scanned.fault.empty() && scanned.labels.first_error() == nullptr;
    CHECK(accepted == scene["accepted"].get<bool>());
    // Missing, found, empty, corrupt; the original stops at a picture that is too small before it looks for labels.
    const bool found = scanned.has_label_file && scanned.fault.empty();
    const std::vector<int> counts{!scanned.has_label_file, found, scanned.is_empty(), !accepted};
    CHECK(counts == scene["counts_missing_found_empty_corrupt"].get<std::vector<int>>());
    if (!accepted) continue;
    check_rows(scanned.labels.rows, scene, is_mixed(tokens_per_row(text)));
  }
  for (const auto& pair : json["label_path_of_image"]) {
    CHECK(yolo9::label_path(pair[0].get<std::string>()) == pair[1].get<std::string>());
  }
}

TEST_CASE("boxes and polygons may share a file", "[data]") {
  const auto file = yolo9::parse_labels("2 0.1 0.1 0.4 0.1 0.4 0.5 0.1 0.5\n1 0.5 0.5 0.2 0.3\n");
  REQUIRE(file.faults.empty());
  REQUIRE(file.rows.size() == 2);
  CHECK(file.rows[0].polygon.size() == 8);
  CHECK(file.rows[1].polygon.empty());
  check_center(yolo9::center_box(file.rows[1]), {0.5, 0.5, 0.2, 0.3}, 1e-7);
}

TEST_CASE("every label fault has its kind and line", "[data]") {
  using Kind = yolo9::LabelFaultKind;
  const auto file = yolo9::parse_labels(
      "0 0.5 0.5 0.2 0.3\n"        // 1
      "3 0.5 0.5 0.2 0.3\n"        // 2 class
      "0 0.5 0.5 0.2 0.3 0.9\n"    // 3 six numbers
      "\n"                         // 4
      "0 nan 0.5 0.2 0.3\n"        // 5
      "0 0.5 0.5 0.2 inf\n"        // 6
      "0 0.5 0.5 0.2 x\n"          // 7
      "0 -0.1 0.5 0.2 0.3\n"       // 8
      "0 0.5 0.5 1.2 0.3\n"        // 9
      "1.5 0.5 0.5 0.2 0.3\n"      // 10
      "-1 0.5 0.5 0.2 0.3\n"       // 11
      "0 0.5 0.5 0.2 0.3\n"        // 12 duplicate of 1
      "1 0.5 0.5 0 0.3\n"          // 13 empty box
      "0 0.1 0.1 0.4 0.1 0.4 0.5 0.1\n"  // 14 odd polygon
      "0 0.5",                     // 15
      3);
  const std::vector<std::pair<Kind, int64_t>> expected{
      {Kind::ClassIndex, 2},      {Kind::TokenCount, 3},      {Kind::NotANumber, 5},  {Kind::NotANumber, 6},
      {Kind::NotANumber, 7},      {Kind::OutsidePicture, 8},  {Kind::OutsidePicture, 9}, {Kind::ClassIndex, 10},
      {Kind::ClassIndex, 11},     {Kind::Duplicate, 12},      {Kind::EmptyBox, 13},   {Kind::TokenCount, 14},
      {Kind::TokenCount, 15}};
  REQUIRE(file.faults.size() == expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i, file.faults[i].text);
    CHECK(file.faults[i].kind == expected[i].first);
    CHECK(file.faults[i].line == expected[i].second);
    CHECK(!file.faults[i].text.empty());
  }
  CHECK(file.rows.size() == 2);
  CHECK(file.duplicates == 1);
  CHECK(file.faults[0].text == "class index 3 is out of range 0..2");
}

TEST_CASE("odd but harmless label text", "[data]") {
  CHECK(yolo9::parse_labels("\xEF\xBB\xBF" "0 +0.5 .5 0.2 0.3\r\n").rows.size() == 1);
  CHECK(yolo9::parse_labels("0 0.5 0.5 0.2 0.3").rows.size() == 1);
  CHECK(yolo9::parse_labels("  \t \n").faults.empty());
  CHECK(yolo9::parse_labels(std::string("0 0.5 0.5 0.2 0.\0003\n", 20)).first_error() != nullptr);
  CHECK(yolo9::parse_labels("1e30 0.5 0.5 0.2 0.3\n").first_error() != nullptr);
  CHECK(yolo9::parse_labels("0 1.00000001 0.5 0.2 0.3\n").first_error() == nullptr);  // 1 in single precision
}
