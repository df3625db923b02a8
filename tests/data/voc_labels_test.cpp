#include <yolo9/data/voc_labels.h>

#include <catch2/catch.hpp>

using Kind = yolo9::LabelFaultKind;

namespace {

const std::vector<std::string> kNames{"cat", "dog"};

std::string box(const std::string& xmin, const std::string& ymin, const std::string& xmax, const std::string& ymax) {
  return "<bndbox><xmin>" + xmin + "</xmin><ymin>" + ymin + "</ymin><xmax>" + xmax + "</xmax><ymax>" + ymax +
         "</ymax></bndbox>";
}

std::string object(const std::string& name, const std::string& rest) {
  return "<object><name>" + name + "</name>" + rest + "</object>\n";
}

// With the objects from line 3 on.
std::string voc(const std::string& objects, const std::string& size = "<width>100</width><height>50</height>") {
  return "<annotation><filename>a.jpg</filename>\n<size>" + size + "<depth>3</depth></size>\n" + objects +
         "</annotation>";
}

yolo9::LabelFile parse(const std::string& text, yolo9::PixelSize picture = {50, 100}) {
  return yolo9::parse_voc(text, kNames, picture);
}

void check_box(const yolo9::LabelRow& row, double cx, double cy, double w, double h) {
  CHECK(row.cx == Approx(cx).margin(1e-6));
  CHECK(row.cy == Approx(cy).margin(1e-6));
  CHECK(row.w == Approx(w).margin(1e-6));
  CHECK(row.h == Approx(h).margin(1e-6));
}

void check_one_fault(const std::string& text, Kind kind, int64_t line) {
  const auto file = parse(text);
  CAPTURE(text);
  CHECK(file.rows.empty());
  REQUIRE(file.faults.size() == 1);
  CHECK(file.faults[0].kind == kind);
  CHECK(file.faults[0].line == line);
}

}  // namespace

TEST_CASE("voc: corners are counted from 1 and belong to the box", "[data]") {
  const auto file =
      parse(voc(object("dog", box("11", "6", "30", "15")) + object(" cat\n", box("1", "1", "100", "50"))));
  CHECK(file.faults.empty());
  REQUIRE(file.rows.size() == 2);
  CHECK(file.rows[0].class_index == 1);
  check_box(file.rows[0], 0.2, 0.2, 0.2, 0.2);
  CHECK(file.rows[1].class_index == 0);
  check_box(file.rows[1], 0.5, 0.5, 1, 1);
  CHECK(yolo9::voc_names(voc(object("b", "") + object("a", "") + object("b", ""))) ==
        std::vector<std::string>{"b", "a", "b"});
}

TEST_CASE("voc: difficult ones count, parts do not", "[data]") {
  const auto file =
      parse(voc(object("dog", "<difficult>1</difficult><truncated>1</truncated>" + box("11", "6", "30", "15") +
                                  "<part><name>head</name>" + box("1", "1", "2", "2") + "</part>")));
  CHECK(file.faults.empty());
  REQUIRE(file.rows.size() == 1);
  check_box(file.rows[0], 0.2, 0.2, 0.2, 0.2);
  CHECK(parse("<annotation/>").faults.empty());
  CHECK(parse(voc("")).rows.empty());
  CHECK(parse("\xEF\xBB\xBF<?xml version=\"1.0\" encoding=\"UTF-8\"?>\r\n" +
              voc(object("dog", box("11.0", " 6\n", "3e1", "+15"))))
            .rows.size() == 1);
}

TEST_CASE("voc: every fault has its kind and line", "[data]") {
  check_one_fault(voc(object("cow", box("1", "1", "9", "9"))), Kind::UnknownCategory, 3);
  check_one_fault(voc("\n\n" + object("", box("1", "1", "9", "9"))), Kind::UnknownCategory, 5);
  check_one_fault(voc(object("dog", "")), Kind::TokenCount, 3);
  check_one_fault(voc(object("dog", "<bndbox><xmin>1</xmin></bndbox>")), Kind::TokenCount, 3);
  for (const char* bad : {"x", "", "nan", "inf", "1e999", "1e30", "1 2"}) {
    check_one_fault(voc(object("dog", box("1", "1", bad, "9"))), Kind::NotANumber, 3);
  }
  check_one_fault(voc(object("dog", box("9", "1", "1", "9"))), Kind::InvertedBox, 3);
  check_one_fault(voc(object("dog", box("1", "9", "9", "1"))), Kind::InvertedBox, 3);
  check_one_fault(voc(object("dog", box("200", "1", "209", "9"))), Kind::OutsidePicture, 3);
  const auto clipped = parse(voc(object("dog", box("-9", "6", "20", "15"))));
  REQUIRE(clipped.rows.size() == 1);
  CHECK(clipped.count(Kind::ClippedBox) == 1);
  check_box(clipped.rows[0], 0.1, 0.2, 0.2, 0.2);
  CHECK(parse(voc(object("dog", box("0", "0", "20", "15")))).faults.empty());  // counted from 0
  const auto twice = parse(voc(object("dog", box("1", "1", "9", "9")) + object("dog", box("1", "1", "9", "9"))));
  CHECK(twice.rows.size() == 1);
  CHECK(twice.count(Kind::Duplicate) == 1);
}

TEST_CASE("voc: the size that pixels are of", "[data]") {
  const std::string dog = object("dog", box("11", "6", "30", "15"));
  for (const char* size : {"", "<width>0</width><height>0</height>", "<width>x</width><height>50</height>"}) {
    const auto file = parse(voc(dog, size));
    CHECK(file.faults.empty());
    check_box(file.rows.at(0), 0.2, 0.2, 0.2, 0.2);
    CHECK(parse(voc(dog, size), {}).count(Kind::SizeUnknown) == 1);
  }
  auto file = parse(voc(dog), {100, 200});
  REQUIRE(file.faults.size() == 1);
  CHECK((file.faults[0].kind == Kind::SizeDiffers && file.faults[0].line == 2));
  check_box(file.rows.at(0), 0.2, 0.2, 0.2, 0.2);
  file = parse(voc(dog), {100, 50});  // width and height swapped in the file
  CHECK(file.count(Kind::SizeDiffers) == 1);
  check_box(file.rows.at(0), 0.4, 0.1, 0.4, 0.1);
}

TEST_CASE("voc: what is no VOC file is unreadable", "[data]") {
  check_one_fault("", Kind::Unreadable, 1);
  check_one_fault("0 0.5 0.5 0.1 0.1\n", Kind::Unreadable, 1);
  check_one_fault("<html>\n</html>", Kind::Unreadable, 1);
  check_one_fault("<annotation>\n<object>\n</annotation>", Kind::Unreadable, 3);
  check_one_fault(voc(object("dog", box("1", "1", "9", "9"))).substr(0, 160), Kind::Unreadable, 3);
  check_one_fault(
      "<annotation>\n" +
          [] {
            std::string deep;
            for (int i = 0; i < 100000; ++i) deep += "<a>";
            return deep;
          }(),
      Kind::Unreadable, 2);
}

TEST_CASE("voc: entities are refused", "[data]") {
  const std::string laughs =
      "<?xml version=\"1.0\"?>\n<!DOCTYPE a [\n<!ENTITY a \"ha\">\n<!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;\">\n]>\n"
      "<annotation><object><name>&b;</name></object></annotation>";
  check_one_fault(laughs, Kind::Unreadable, 3);
  CHECK(parse(laughs).faults[0].text.find("entities") != std::string::npos);
  check_one_fault("<!DOCTYPE a [\n<!ENTITY x SYSTEM \"file:///etc/passwd\">]>\n<annotation>&x;</annotation>",
                  Kind::Unreadable, 2);
  check_one_fault("<!DOCTYPE a [\n<!ENTITY % x SYSTEM \"file:///etc/passwd\">%x;]>\n<annotation/>", Kind::Unreadable,
                  2);
  // A document type alone does no harm.
  CHECK(parse("<!DOCTYPE annotation SYSTEM \"/nowhere/voc.dtd\">\n" + voc(object("dog", box("1", "1", "9", "9"))))
            .rows.size() == 1);
}
