// The pictures of a data set that can be used, with their labels: all that stays in memory of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <yolo9/data/labels.h>
#include <yolo9/data/mosaic.h>

namespace yolo9 {

struct PictureItem {
  std::string path;
  PixelSize size;  // of the file, turned as its orientation says
  std::vector<LabelRow> labels;
};

class ItemTable {
 public:
  void add(PictureItem item);

  int64_t size() const;
  std::string path(int64_t index) const;
  PixelSize picture_size(int64_t index) const;
  std::vector<LabelRow> labels(int64_t index) const;
  PictureItem item(int64_t index) const;

  // Puts item order[i] in place i.
  void reorder(const std::vector<int64_t>& order);

 private:
  std::vector<PictureItem> items_;
};

}  // namespace yolo9
