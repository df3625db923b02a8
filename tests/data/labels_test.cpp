#include <yolo9/data/labels.h>

#include <chrono>

#include <yolo9/core/random.h>
#include <yolo9/data/image.h>
#include <yolo9/data/label_builder.h>
#include <yolo9/data/scan.h>
#include <yolo9/data/sources.h>
#include <catch2/catch.hpp>

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

    const auto scanned =
        yolo9::scan_image(yolo9::Annotations({folder + "/images/" + name + ".png"}, std::vector<std::string>(80)), 0);
    const bool accepted = scanned.fault.empty() && scanned.labels.first_error() == nullptr;
    CHECK(accepted == scene["accepted"].get<bool>());
    // Missing, found, empty, corrupt; the original stops at a picture that is too small before it looks for labels.
    const bool found = scanned.has_label_file && scanned.fault.empty();
    const std::vector<int> counts{!scanned.has_label_file, found, scanned.is_empty(), !accepted};
    CHECK(counts == scene["counts_missing_found_empty_corrupt"].get<std::vector<int>>());
    if (!accepted) continue;
    // Boxes without area are kept by the original, and dropped with a note here.
    const int64_t empty_boxes = scanned.labels.count(yolo9::LabelFaultKind::EmptyBox);
    if (empty_boxes > 0) {
      CHECK(static_cast<int64_t>(scanned.labels.rows.size()) + empty_boxes ==
            static_cast<int64_t>(scene["labels"].size()));
      continue;
    }
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
      "0 0.5 0.5 0.2 0.3\n"              // 1
      "3 0.5 0.5 0.2 0.3\n"              // 2 class
      "0 0.5 0.5 0.2 0.3 0.9\n"          // 3 six numbers
      "\n"                               // 4
      "0 nan 0.5 0.2 0.3\n"              // 5
      "0 0.5 0.5 0.2 inf\n"              // 6
      "0 0.5 0.5 0.2 x\n"                // 7
      "0 -0.1 0.5 0.2 0.3\n"             // 8
      "0 0.5 0.5 1.2 0.3\n"              // 9
      "1.5 0.5 0.5 0.2 0.3\n"            // 10
      "-1 0.5 0.5 0.2 0.3\n"             // 11
      "0 0.5 0.5 0.2 0.3\n"              // 12 duplicate of 1
      "1 0.5 0.5 0 0.3\n"                // 13 empty box
      "0 0.1 0.1 0.4 0.1 0.4 0.5 0.1\n"  // 14 odd polygon
      "0 0.5",                           // 15
      3);
  const std::vector<std::pair<Kind, int64_t>> expected{
      {Kind::ClassIndex, 2},  {Kind::TokenCount, 3},     {Kind::NotANumber, 5},     {Kind::NotANumber, 6},
      {Kind::NotANumber, 7},  {Kind::OutsidePicture, 8}, {Kind::OutsidePicture, 9}, {Kind::ClassIndex, 10},
      {Kind::ClassIndex, 11}, {Kind::Duplicate, 12},     {Kind::EmptyBox, 13},      {Kind::TokenCount, 14},
      {Kind::TokenCount, 15}};
  REQUIRE(file.faults.size() == expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i, file.faults[i].text);
    CHECK(file.faults[i].kind == expected[i].first);
    CHECK(file.faults[i].line == expected[i].second);
    CHECK(!file.faults[i].text.empty());
  }
  CHECK(file.rows.size() == 1);
  CHECK(file.count(Kind::Duplicate) == 1);
  CHECK(file.count(Kind::TokenCount) == 3);
  CHECK(file.faults[0].text == "class index 3 is out of range 0..2");
}

TEST_CASE("odd but harmless label text", "[data]") {
  const auto rows = [](const std::string& text) {
    const auto file = yolo9::parse_labels(text);
    CAPTURE(text);
    CHECK(file.faults.empty());
    return file.rows.size();
  };
  CHECK(rows("\xEF\xBB\xBF"
             "0 +0.5 .5 0.2 0.3\r\n") == 1);
  CHECK(rows("0 0.5 0.5 0.2 0.3") == 1);
  CHECK(rows("  \t \n") == 0);
  CHECK(rows("") == 0);
  CHECK(rows("0\t0.5\t0.5 0.2\t0.3  \t\r\n\r\n1 0.5 0.5 0.1 0.1\r\n") == 2);
  CHECK(rows("0 0.5 0.5 0.2 0.3\r1 0.5 0.5 0.2 0.3\r") == 2);
  CHECK(rows("0 5e-1 5E-1 2e-1 1.0e-3") == 1);
  CHECK(rows("2.0 1 1 1 1") == 1);
  CHECK(rows("0 1.00000001 0.5 0.2 0.3\n") == 1);  // 1 in single precision
  const auto row = yolo9::parse_labels("0 5e-1 5E-1 2e-1 1.0e-3").rows[0];
  CHECK((row.cx == 0.5F && row.w == 0.2F && row.h == 1e-3F));
}

TEST_CASE("label text that is no text", "[data]") {
  using Kind = yolo9::LabelFaultKind;
  CHECK(yolo9::parse_labels(std::string("0 0.5 0.5 0.2 0.\0003\n", 20)).count(Kind::NotANumber) == 1);
  CHECK(yolo9::parse_labels("1e30 0.5 0.5 0.2 0.3\n").count(Kind::ClassIndex) == 1);
  CHECK(yolo9::parse_labels("0 1e999 0.5 0.2 0.3\n").count(Kind::NotANumber) == 1);
  for (const std::string& text : {std::string("\xFF\xFE"
                                              "0\0 \0",
                                              6),
                                  std::string("\xFE\xFF\0"
                                              "0",
                                              4)}) {
    const auto file = yolo9::parse_labels(text);
    CHECK(file.count(Kind::Unreadable) == 1);
    REQUIRE(file.first_error() != nullptr);
    CHECK(file.first_error()->text.find("UTF-16") != std::string::npos);
  }
  const auto file = yolo9::parse_labels("0 0.5 0.5 0.2 0.3\r0 9 9 9 9\r\n\rx\n");  // every kind of line end counts once
  REQUIRE(file.faults.size() == 2);
  CHECK((file.faults[0].line == 2 && file.faults[1].line == 4));
}

TEST_CASE("polygons that leave the picture are cut at its edges", "[data]") {
  using Kind = yolo9::LabelFaultKind;
  const auto file = yolo9::parse_labels("0 -0.5 0.2 0.5 0.2 0.5 1.6 -0.5 1.6\n");
  REQUIRE(file.rows.size() == 1);
  CHECK(file.count(Kind::ClippedPolygon) == 1);
  CHECK(file.first_error() == nullptr);
  check_center(yolo9::center_box(file.rows[0]), {0.25, 0.6, 0.5, 0.8}, 1e-6);
  for (const float value : file.rows[0].polygon) CHECK((value >= 0 && value <= 1));
  // A triangle over a corner: the cut goes through its sides, not to the corner.
  const auto corner = yolo9::parse_labels("0 0.8 0.9 1.2 0.9 0.8 1.3\n");
  REQUIRE(corner.rows.size() == 1);
  check_center(yolo9::center_box(corner.rows[0]), {0.9, 0.95, 0.2, 0.1}, 1e-6);
  // Nothing of it inside: beside the picture, around a corner, in pixels, or nowhere near.
  for (const char* text :
       {"0 1.1 0 1.5 0 1.5 1\n", "0 1.5 0.9 1.5 1.5 0.9 1.5\n", "0 10 10 90 10 90 80\n", "0 1e9 0 1e200 0 1 1e300\n"}) {
    const auto outside = yolo9::parse_labels(text);
    CAPTURE(text);
    CHECK(outside.rows.empty());
    CHECK(outside.count(Kind::OutsidePicture) == 1);
  }
}

TEST_CASE("clipped polygons have the area that is inside", "[data]") {
  // Against a count of points on a grid, for triangles at random.
  yolo9::Random random{5};
  for (int round = 0; round < 200; ++round) {
    std::vector<double> p;
    for (int i = 0; i < 6; ++i) p.push_back(random.uniform(-1, 2));
    const auto area = [](const std::vector<double>& q) {
      double sum = 0;
      for (size_t i = 0, n = q.size() / 2; i < n; ++i) {
        const size_t j = (i + 1) % n;
        sum += q[2 * i] * q[2 * j + 1] - q[2 * j] * q[2 * i + 1];
      }
      return std::abs(sum) / 2;
    };
    const auto side = [&p](size_t a, size_t b, double x, double y) {
      return (p[2 * b] - p[2 * a]) * (y - p[2 * a + 1]) - (p[2 * b + 1] - p[2 * a + 1]) * (x - p[2 * a]) > 0;
    };
    constexpr int kGrid = 200;
    int inside = 0;
    for (int i = 0; i < kGrid * kGrid; ++i) {
      const double x = (i % kGrid + 0.5) / kGrid, y = (i / kGrid + 0.5) / kGrid;
      const bool first = side(0, 1, x, y);
      inside += first == side(1, 2, x, y) && first == side(2, 0, x, y) ? 1 : 0;
    }
    CAPTURE(p);
    CHECK(area(yolo9::clip_to_unit_square(p)) == Approx(inside / double(kGrid * kGrid)).margin(0.02));
  }
}

TEST_CASE("a file of nothing but faults costs little", "[data]") {
  using Kind = yolo9::LabelFaultKind;
  std::string text;
  for (int i = 0; i < 100000; ++i) text += "0 0.5 0.5 7 0.3\n";
  text += "x 0.5 0.5 0.1 0.1\n";
  const auto file = yolo9::parse_labels(text);
  CHECK(file.count(Kind::OutsidePicture) == 100000);
  CHECK(file.count(Kind::NotANumber) == 1);
  REQUIRE(static_cast<int64_t>(file.faults.size()) ==
          yolo9::kMostListedFaults + 1);  // the first of every kind is there
  CHECK(file.faults.back().line == 100001);
  CHECK(yolo9::parse_labels(text, -1, yolo9::kListAllFaults).faults.size() == 100001);
}

TEST_CASE("100,000 rows are read in little more than 100 times the time of 1000", "[data]") {
  const auto seconds = [](int count, bool twins) {
    std::string text;
    for (int i = 0; i < count; ++i) {
      text += std::to_string(twins ? 0 : i) + " 0.5 0.5 0.2 0.3\n";
    }
    const auto begin = std::chrono::steady_clock::now();
    const auto file = yolo9::parse_labels(text);
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
    CHECK(static_cast<int>(file.rows.size()) == (twins ? 1 : count));
    CHECK(file.count(yolo9::LabelFaultKind::Duplicate) == (twins ? count - 1 : 0));
    return time.count();
  };
  for (const bool twins : {false, true}) {
    double small = 1e9, large = 1e9;  // the best of three: other programs run as well
    for (int i = 0; i < 3; ++i) {
      small = std::min(small, seconds(1000, twins));
      large = std::min(large, seconds(100000, twins));
    }
    CHECK(large < 400 * small + 0.05);
  }
}

TEST_CASE("a very long row is one polygon", "[data]") {
  std::string text = "0";
  for (int i = 0; i < 200000; ++i) text += " 0." + std::to_string(100000 + i % 800000) + " 0.25" + (i % 2 ? "1" : "9");
  const auto file = yolo9::parse_labels(text);
  REQUIRE(file.rows.size() == 1);
  CHECK(file.rows[0].polygon.size() == 400000);
  CHECK(yolo9::parse_labels(text + " 0.5").count(yolo9::LabelFaultKind::TokenCount) == 1);
}

TEST_CASE("a row is written as it is read", "[data]") {
  yolo9::Random random{11};
  std::string text;
  for (int i = 0; i < 300; ++i) {
    text += std::to_string(i);
    const int count = i % 2 == 0 ? 4 : 10;
    for (int j = 0; j < count; ++j) text += " " + std::to_string(random.uniform());
    text += "\n";
  }
  const auto file = yolo9::parse_labels(text);
  REQUIRE(file.rows.size() == 300);
  std::string written;
  for (const auto& row : file.rows) written += yolo9::format_row(row) + "\n";
  const auto again = yolo9::parse_labels(written);
  REQUIRE(again.rows.size() == file.rows.size());
  for (size_t i = 0; i < file.rows.size(); ++i) {
    const auto &a = file.rows[i], &b = again.rows[i];
    CHECK((a.class_index == b.class_index && a.cx == b.cx && a.cy == b.cy && a.w == b.w && a.h == b.h));
    CHECK(a.polygon == b.polygon);
  }
}
