#include <yolo9/data/coco_labels.h>

#include <yolo9/core/error.h>
#include <yolo9/core/random.h>
#include <yolo9/data/rle_mask.h>
#include <algorithm>
#include <chrono>

#include <catch2/catch.hpp>

#include "support/fixture.h"

using Kind = yolo9::LabelFaultKind;

namespace {

const std::string kImages = R"("images":[{"id":1,"file_name":"a.jpg","width":100,"height":50}])";
const std::string kCategories = R"("categories":[{"id":7,"name":"cat"},{"id":3,"name":"dog"}])";

// A file with these annotations, one a line from line 2 on.
std::string coco(const std::string& annotations) {
  return "{" + kImages + "," + kCategories + ",\"annotations\":[\n" + annotations + "]}";
}

// One annotation of image 1 with category 3.
std::string object(const std::string& rest) { return R"({"id":5,"image_id":1,"category_id":3,)" + rest + "}"; }

yolo9::CocoLabels labels_of(const std::string& text) {
  yolo9::CocoLabels labels(yolo9::ByteFile::of_text(text), "x.json");
  labels.set_names({"cat", "dog"});
  return labels;
}

yolo9::LabelFile parse(const std::string& annotations, yolo9::PixelSize picture = {50, 100}) {
  return labels_of(coco(annotations)).parse(0, picture);
}

std::string message_of(const std::string& text) {
  try {
    labels_of(text);
  } catch (const yolo9::Error& error) {
    CHECK(error.kind() == yolo9::ErrorKind::Data);
    return error.what();
  }
  return "";
}

void check_box(const yolo9::LabelRow& row, double cx, double cy, double w, double h) {
  CHECK(row.cx == Approx(cx).margin(1e-6));
  CHECK(row.cy == Approx(cy).margin(1e-6));
  CHECK(row.w == Approx(w).margin(1e-6));
  CHECK(row.h == Approx(h).margin(1e-6));
}

// The one fault of one annotation, which drops it.
void check_dropped(const std::string& annotation, Kind kind) {
  const auto file = parse(annotation);
  CAPTURE(annotation);
  CHECK(file.rows.empty());
  CHECK(file.count(kind) == 1);
  REQUIRE(file.faults.size() == 1);
  CHECK(file.faults[0].line == 2);
  CHECK(!file.faults[0].text.empty());
}

}  // namespace

TEST_CASE("coco: boxes in pixels, categories by name", "[data]") {
  const auto file = parse(object(R"("bbox":[10,5,20,10])") + ",\n" +
                          R"({"bbox":[50,25,50,25],"category_id":7,"image_id":1,"iscrowd":0})");
  CHECK(file.faults.empty());
  REQUIRE(file.rows.size() == 2);
  CHECK(file.rows[0].class_index == 1);
  check_box(file.rows[0], 0.2, 0.2, 0.2, 0.2);
  CHECK(file.rows[1].class_index == 0);
  check_box(file.rows[1], 0.75, 0.75, 0.5, 0.5);
  CHECK(labels_of(coco("")).category_names() == std::vector<std::string>{"dog", "cat"});  // by id
}

TEST_CASE("coco: the lists may come in any order, with others between", "[data]") {
  const std::string annotations = "\"annotations\":[" + object(R"("bbox":[10,5,20,10])") + "]";
  const std::string other = R"("info":{"images":[1,{"id":3}],"x":[[]]},"licenses":[{"id":1,"name":"z"}])";
  for (const std::string& text :
       {"{" + annotations + "," + kImages + "," + kCategories + "}",
        "{" + kCategories + "," + annotations + "," + other + "," + kImages + "}",
        "\xEF\xBB\xBF{" + other + "," + kImages + "," + kCategories + "," + annotations + "}"}) {
    CAPTURE(text);
    const auto labels = labels_of(text);
    REQUIRE(labels.size() == 1);
    CHECK(labels.faults().faults.empty());
    CHECK(labels.image(0).file_name == "a.jpg");
    CHECK(labels.parse(0, {}).rows.size() == 1);
  }
}

TEST_CASE("coco: outlines of several parts become one polygon", "[data]") {
  const auto file =
      parse(object(R"("bbox":[10,5,50,20],"segmentation":[[10,5,20,5,20,15,10,15],[40,5,60,5,60,25,40,25]])"));
  CHECK(file.faults.empty());
  REQUIRE(file.rows.size() == 1);
  check_box(file.rows[0], 0.35, 0.3, 0.5, 0.4);
  CHECK(file.rows[0].polygon.size() == 20);  // 4 + 4 corners, and a bridge there and back
  // The area is that of the parts: the bridge has none.
  const auto points = yolo9::polygon_points(file.rows[0]);
  double area = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    const auto &a = points[i], &b = points[(i + 1) % points.size()];
    area += (a.x * b.y - b.x * a.y) / 2;
  }
  CHECK(area == Approx((100 + 400) / 5000.0).margin(1e-6));
}

TEST_CASE("coco: masks as run lengths", "[data]") {
  // A 2 x 3 block (columns 1..2 of 4, rows 1..3 of 5), column by column.
  const std::string plain = R"("segmentation":{"size":[5,4],"counts":[6,3,2,3,6]})";
  // The same, compressed: 6 3 2, then 3 - 3 = 0, 6 - 2 = 4.
  const std::string compressed = R"("segmentation":{"size":[5,4],"counts":"63204"})";
  for (const std::string& mask : {plain, compressed}) {
    CAPTURE(mask);
    const auto file = parse(object(mask + R"(,"bbox":[1,1,2,3])"));
    CHECK(file.faults.empty());
    REQUIRE(file.rows.size() == 1);
    check_box(file.rows[0], 0.5, 0.5, 0.5, 0.6);
    CHECK(file.rows[0].polygon.size() == 8);
  }
  // What cannot be understood leaves the box, with a note.
  for (const char* bad :
       {R"({"size":[5,4],"counts":[6,30]})", R"({"size":[5],"counts":[6]})", R"({"counts":"63204"})",
        R"({"size":[5,4],"counts":"\u0001"})", R"({"size":[5,4],"counts":"P"})", R"({"size":[1e9,1e8],"counts":[0,1]})",
        R"({"size":[5,4],"counts":[20]})", R"({"size":[5,4],"counts":[-1,3]})", R"({"size":[0,0],"counts":[]})",
        R"([[1,2,3,4]])", R"([[1,2,3,4,5,"x"]])", R"(["abc"])", R"([[1,2,3,4,5,6,7]])", R"([[]])"}) {
    const auto file = parse(object(R"("bbox":[10,5,20,10],"segmentation":)" + std::string(bad)));
    CAPTURE(bad);
    REQUIRE(file.rows.size() == 1);
    check_box(file.rows[0], 0.2, 0.2, 0.2, 0.2);
    CHECK(file.count(Kind::Segmentation) == 1);
    CHECK(file.first_error() == nullptr);
  }
}

namespace {

constexpr int kHeight = 24, kWidth = 17;
using Pixels = std::vector<int>;  // by columns

Pixels draw_blots(uint64_t seed) {
  yolo9::Random random{3, seed};
  Pixels pixels(kHeight * kWidth, 0);
  for (int i = 0; i < 6; ++i) {
    const auto x = random.integer(kWidth), y = random.integer(kHeight);
    const auto right = std::min<int64_t>(kWidth, x + 1 + random.integer(5));
    const auto bottom = std::min<int64_t>(kHeight, y + 1 + random.integer(7));
    for (int64_t u = x; u < right; ++u) {
      for (int64_t v = y; v < bottom; ++v) pixels[static_cast<size_t>(u * kHeight + v)] = 1;
    }
  }
  return pixels;
}

std::vector<int64_t> run_lengths(const Pixels& pixels) {
  std::vector<int64_t> lengths{0};
  int value = 0;
  for (const int pixel : pixels) {
    if (pixel != value) lengths.push_back(0);
    value = pixel;
    ++lengths.back();
  }
  return lengths;
}

// The background that the border reaches; it also passes between things that touch along corners only.
Pixels find_outside(const Pixels& pixels) {
  Pixels outside(pixels.size(), 0);
  const auto is_outside = [&](int x, int y) {
    return x < 0 || y < 0 || x >= kWidth || y >= kHeight || outside[static_cast<size_t>(x * kHeight + y)] == 1;
  };
  for (bool grows = true; grows;) {
    grows = false;
    for (int i = 0; i < kHeight * kWidth; ++i) {
      int& here = outside[static_cast<size_t>(i)];
      if (here == 1 || pixels[static_cast<size_t>(i)] == 1) continue;
      for (int k = 0; k < 9; ++k) {
        if (is_outside(i / kHeight + k / 3 - 1, i % kHeight + k % 3 - 1)) here = 1;
      }
      grows = grows || here == 1;
    }
  }
  return outside;
}

// Whether a ray to the left crosses one of the outlines an odd number of times.
bool is_inside(const std::vector<std::vector<double>>& outlines, double x, double y) {
  return std::any_of(outlines.begin(), outlines.end(), [&](const std::vector<double>& p) {
    int crossings = 0;
    for (size_t i = 0; i < p.size(); i += 2) {
      const size_t j = (i + 2) % p.size();
      crossings += (p[i + 1] > y) != (p[j + 1] > y) && p[i] < x ? 1 : 0;
    }
    return crossings % 2 == 1;
  });
}

}  // namespace

TEST_CASE("coco: traced masks cover the same pixels, and their holes", "[data]") {
  for (uint64_t round = 0; round < 60; ++round) {
    const Pixels pixels = draw_blots(round), outside = find_outside(pixels);
    const auto mask = yolo9::RunMask::make(kHeight, kWidth, run_lengths(pixels));
    REQUIRE(mask);
    CHECK(mask->area() == std::count(pixels.begin(), pixels.end(), 1));
    const auto outlines = mask->outlines(1000);
    REQUIRE(outlines);
    for (int i = 0; i < kHeight * kWidth; ++i) {
      CAPTURE(round, i / kHeight, i % kHeight);
      REQUIRE(is_inside(*outlines, i / kHeight + 0.5, i % kHeight + 0.5) == (outside[static_cast<size_t>(i)] == 0));
    }
    const auto box = mask->box();
    double right = 0, top = kHeight;
    for (const auto& p : *outlines) {
      for (size_t i = 0; i < p.size(); i += 2) {
        right = std::max(right, p[i]);
        top = std::min(top, p[i + 1]);
      }
    }
    CHECK((right == box.x2 && top == box.y1));
  }
}

TEST_CASE("coco: every fault of an annotation has its kind and line", "[data]") {
  check_dropped(object(R"("bbox":[10,5,20,10],"iscrowd":1)"), Kind::Crowd);
  check_dropped(R"({"image_id":1,"category_id":99,"bbox":[10,5,20,10]})", Kind::UnknownCategory);
  check_dropped(R"({"image_id":1,"bbox":[10,5,20,10]})", Kind::UnknownCategory);
  check_dropped(R"({"image_id":1,"category_id":"3","bbox":[10,5,20,10]})", Kind::UnknownCategory);
  check_dropped(object(R"("bbox":[10,5,20])"), Kind::TokenCount);
  check_dropped(object(R"("area":3)"), Kind::TokenCount);
  check_dropped(object(R"("bbox":{"x":1})"), Kind::TokenCount);
  check_dropped(object(R"("bbox":[10,5,"20",10])"), Kind::NotANumber);
  check_dropped(object(R"("bbox":[10,5,null,10])"), Kind::NotANumber);
  check_dropped(object(R"("bbox":[NaN,5,20,10])"), Kind::NotANumber);
  check_dropped(object(R"("bbox":[10,-Infinity,20,10])"), Kind::NotANumber);
  check_dropped(object(R"("bbox":[10,5,1e999,10])"), Kind::NotANumber);
  check_dropped(object(R"("bbox":[10,5,1e30,10])"), Kind::NotANumber);
  check_dropped(object(R"("bbox":[10,5,-20,10])"), Kind::InvertedBox);
  check_dropped(object(R"("bbox":[10,5,0,10])"), Kind::EmptyBox);
  check_dropped(object(R"("bbox":[200,5,20,10])"), Kind::OutsidePicture);
  check_dropped(object(R"("bbox":[200,5,20,10],"segmentation":[[200,5,220,5,220,15]])"), Kind::OutsidePicture);
  const auto twice = parse(object(R"("bbox":[10,5,20,10])") + ",\n" + object(R"("bbox":[10,5,20,10])"));
  CHECK(twice.rows.size() == 1);
  CHECK(twice.count(Kind::Duplicate) == 1);
}

TEST_CASE("coco: what leaves the picture is cut", "[data]") {
  auto file = parse(object(R"("bbox":[-10,5,30,10])"));
  REQUIRE(file.rows.size() == 1);
  CHECK(file.count(Kind::ClippedBox) == 1);
  check_box(file.rows[0], 0.1, 0.2, 0.2, 0.2);
  CHECK(parse(object(R"("bbox":[-0.4,5,30,10])")).faults.empty());  // rounding
  file = parse(object(R"("bbox":[90,5,20,10],"segmentation":[[90,5,110,5,110,15,90,15]])"));
  REQUIRE(file.rows.size() == 1);
  CHECK(file.count(Kind::ClippedPolygon) == 1);
  check_box(file.rows[0], 0.95, 0.2, 0.1, 0.2);
}

TEST_CASE("coco: the size that pixels are of", "[data]") {
  const std::string box = object(R"("bbox":[10,5,20,10])");
  auto file = parse(box, {100, 200});  // scaled since
  CHECK(file.count(Kind::SizeDiffers) == 1);
  check_box(file.rows.at(0), 0.2, 0.2, 0.2, 0.2);
  file = parse(box, {100, 50});  // swapped in the file
  CHECK(file.count(Kind::SizeDiffers) == 1);
  check_box(file.rows.at(0), 0.4, 0.1, 0.4, 0.1);
  file = parse(box, {});  // not known
  CHECK(file.faults.empty());
  const std::string bare =
      R"({"images":[{"id":1,"file_name":"a.jpg"}],)" + kCategories + ",\"annotations\":[" + box + "]}";
  check_box(labels_of(bare).parse(0, {50, 100}).rows.at(0), 0.2, 0.2, 0.2, 0.2);
  CHECK(labels_of(bare).parse(0, {}).count(Kind::SizeUnknown) == 1);
}

TEST_CASE("coco: faults that belong to no picture", "[data]") {
  const auto labels = labels_of(
      "{\"images\":[{\"id\":1,\"file_name\":\"a.jpg\"},\n{\"id\":1,\"file_name\":\"b.jpg\"},\n{\"id\":2},\n"
      "{\"file_name\":\"c.jpg\"},\n7],\"annotations\":[\n"
      "{\"id\":5,\"image_id\":9},\n{\"id\":5,\"image_id\":1},\n{\"id\":6}],\n\"categories\":[{\"id\":4}]}");
  CHECK(labels.size() == 1);
  const auto& faults = labels.faults().faults;
  const std::vector<std::pair<Kind, int64_t>> expected{
      {Kind::DuplicateImage, 2}, {Kind::UnknownImage, 3}, {Kind::UnknownImage, 4}, {Kind::TokenCount, 5},
      {Kind::UnknownImage, 6},   {Kind::DuplicateId, 7},  {Kind::UnknownImage, 8}, {Kind::UnknownCategory, 9}};
  REQUIRE(faults.size() == expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i, faults[i].text);
    CHECK(faults[i].kind == expected[i].first);
    CHECK(faults[i].line == expected[i].second);
  }
}

TEST_CASE("coco: files that are none are refused with their line", "[data]") {
  const auto begins = [](const std::string& text, const std::string& begin) {
    const std::string message = message_of(text);
    CAPTURE(text, message);
    CHECK(message.starts_with(begin));
    CHECK(message.find('\n') == std::string::npos);
  };
  begins("", "x.json:1: is not JSON");
  begins("{\"images\":[\n", "x.json:2: is not JSON");
  begins("{\n\"images\":[}]}", "x.json:2: is not JSON");
  begins("[1,2]", "x.json:1: is a list");
  begins("7", "x.json:1: is not a COCO");
  begins("{}", "x.json: is not a COCO");
  begins("{\"images\":7}", "x.json:1: \"images\" is not a list");
  begins("{\"images\":[],\"annotations\":{}}", "x.json:1: \"annotations\" is not a list");
  begins("{\"images\":[" + std::string(1000000, '[') + std::string(1000000, ']') + "]}", "x.json:1: is nested");
  begins("{\"a\":\"\xFF\"}", "x.json:1: is not JSON");
  begins("{\"images\":[]} x", "x.json:1: is not JSON");
}

TEST_CASE("coco: hostile masks cost nothing", "[data]") {
  // Very large ones of one run, with very many parts, and with an outline so long that the box is taken instead.
  std::string counts = "[0";
  for (int i = 0; i < 60000; ++i) counts += ",1,1";
  const auto start = std::chrono::steady_clock::now();
  auto file = parse(object(R"("segmentation":{"size":[65536,65536],"counts":[0,900000000]})"));
  CHECK(file.rows.size() == 1);
  file = parse(object(R"("segmentation":{"size":[3,65536],"counts":)" + counts + "]}"));
  CHECK(file.rows.size() == 1);
  std::string comb = "[0";
  for (int i = 0; i < 100; ++i) comb += ",65537,65535";
  file = parse(object(R"("segmentation":{"size":[65536,200],"counts":)" + comb + "]}"));
  REQUIRE(file.rows.size() == 1);
  CHECK(file.rows[0].polygon.empty());
  check_box(file.rows[0], 0.5, 0.5, 1, 1);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  CHECK(seconds.count() < 5);
}
