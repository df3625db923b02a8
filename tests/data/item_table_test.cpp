#include <yolo9/data/item_table.h>

#include <catch2/catch.hpp>

namespace {

yolo9::PictureItem item(int i, int rows) {
  yolo9::PictureItem made;
  made.path = "folder" + std::to_string(i % 3) + "/" + std::to_string(i) + ".jpg";
  if (i % 5 == 4) made.path = std::to_string(i) + ".jpg";
  made.size = {100 + i, 200 + i};
  for (int j = 0; j < rows; ++j) {
    yolo9::LabelRow row;
    row.class_index = (i + j) % 4;
    row.cx = static_cast<float>(i) / 1000;
    row.h = static_cast<float>(j) / 10;
    if ((i + j) % 3 == 0) row.polygon.assign(static_cast<size_t>(6 + 2 * (j % 40)), static_cast<float>(i + j) / 2000);
    made.labels.push_back(row);
  }
  return made;
}

void check_same(const yolo9::PictureItem& a, const yolo9::PictureItem& b) {
  REQUIRE(a.path == b.path);
  REQUIRE((a.size.height == b.size.height && a.size.width == b.size.width));
  REQUIRE(a.labels.size() == b.labels.size());
  for (size_t i = 0; i < a.labels.size(); ++i) {
    const auto &x = a.labels[i], &y = b.labels[i];
    REQUIRE((x.class_index == y.class_index && x.cx == y.cx && x.cy == y.cy && x.w == y.w && x.h == y.h));
    REQUIRE(x.polygon == y.polygon);
  }
}

}  // namespace

TEST_CASE("item_table: gives back what was put in", "[data]") {
  yolo9::ItemTable table;
  constexpr int kItems = 3000;  // several blocks of each kind
  std::vector<int64_t> counts(4, 0);
  for (int i = 0; i < kItems; ++i) {
    table.add(item(i, i % 9));
    for (const auto& row : item(i, i % 9).labels) ++counts[static_cast<size_t>(row.class_index)];
  }
  REQUIRE(table.size() == kItems);
  for (int i = 0; i < kItems; ++i) check_same(table.item(i), item(i, i % 9));
  CHECK(table.class_counts(4) == counts);
  std::vector<int64_t> order;
  for (int i = 0; i < kItems; ++i) order.push_back(kItems - 1 - i);
  table.reorder(order);
  for (int i = 0; i < kItems; ++i) {
    check_same(table.item(i), item(kItems - 1 - i, (kItems - 1 - i) % 9));
    REQUIRE(table.label_count(i) == (kItems - 1 - i) % 9);
  }
  CHECK(table.class_counts(4) == counts);
  CHECK_THROWS(table.item(kItems));
  CHECK_THROWS(table.path(-1));
}

TEST_CASE("item_table: 212 bytes a picture of 7 boxes and a name of 40 characters", "[data]") {
  yolo9::ItemTable table;
  yolo9::PictureItem one;
  one.path = "/data/images/train/" + std::string(40, 'n');
  one.size = {480, 640};
  one.labels.resize(7);
  constexpr int64_t kItems = 50000;
  for (int64_t i = 0; i < kItems; ++i) table.add(one);
  const double each = static_cast<double>(table.bytes()) / kItems;
  CHECK(each >= 212);
  CHECK(each < 220);  // up to a block of each kind is begun
}
