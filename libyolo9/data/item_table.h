// The pictures of a data set that can be used, with their labels: all that stays in memory of them, in blocks that
// never move, so that growing needs no second copy.
// 32 bytes a picture, its file name, and 20 bytes a row: 212 bytes for 7 boxes and a name of 40 characters (212 MB a
// million pictures). A polygon adds 16 bytes and 8 a point; a folder's name counts once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <yolo9/data/labels.h>
#include <yolo9/data/mosaic.h>

namespace yolo9 {

struct PictureItem {
  std::string path;
  PixelSize size;  // of the file, turned as its orientation says
  std::vector<LabelRow> labels;
};

// An array that only grows, in blocks of 64 KiB.
template <class T>
class BlockArray {
 public:
  void push_back(const T& value) {
    if (size_ % kBlock == 0) blocks_.push_back(std::make_unique<T[]>(kBlock));
    blocks_.back()[size_++ % kBlock] = value;
  }
  void append(const T* values, size_t count) {
    for (size_t i = 0; i < count; ++i) push_back(values[i]);
  }
  const T& operator[](uint64_t index) const { return blocks_[index / kBlock][index % kBlock]; }
  void copy_out(uint64_t begin, uint64_t count, T* to) const {
    while (count > 0) {
      const uint64_t offset = begin % kBlock, part = std::min<uint64_t>(count, kBlock - offset);
      std::memcpy(to, blocks_[begin / kBlock].get() + offset, part * sizeof(T));
      to += part;
      begin += part;
      count -= part;
    }
  }
  uint64_t size() const { return size_; }
  int64_t bytes() const {
    return static_cast<int64_t>(blocks_.size() * kBlock * sizeof(T) + blocks_.capacity() * sizeof(blocks_[0]));
  }

 private:
  static constexpr size_t kBlock = (size_t{1} << 16) / sizeof(T);
  std::vector<std::unique_ptr<T[]>> blocks_;
  uint64_t size_ = 0;
};

class ItemTable {
 public:
  // Class indices and sizes must fit 31 bits.
  void add(const PictureItem& item);

  int64_t size() const;
  std::string path(int64_t index) const;
  PixelSize picture_size(int64_t index) const;
  std::vector<LabelRow> labels(int64_t index) const;
  int64_t label_count(int64_t index) const;
  PictureItem item(int64_t index) const;
  // Objects of each class, over all pictures. The class indices must be below `classes`.
  std::vector<int64_t> class_counts(int64_t classes) const;

  // Puts item order[i] in place i.
  void reorder(const std::vector<int64_t>& order);

  // Held in memory, as allocated.
  int64_t bytes() const;

 private:
  // Names and rows end where those of the next one added begin.
  struct Entry {
    uint32_t folder, height, width;
    uint32_t name_bytes;
    uint64_t name_at, row_at;
  };
  struct Row {
    int32_t class_index;
    float cx, cy, w, h;
  };
  struct PolygonEnd {
    uint64_t row, end;  // the polygon of this row ends here in `points_`
  };

  uint32_t folder_index(const std::string& folder);
  uint64_t place(int64_t index) const;  // of an item, in the order in which they were added
  uint64_t rows_end(uint64_t place) const;

  BlockArray<Entry> entries_;
  BlockArray<char> names_;
  BlockArray<Row> rows_;
  BlockArray<PolygonEnd> polygons_;  // by row
  BlockArray<float> points_;
  std::vector<std::string> folders_;  // with the slash at the end
  std::unordered_map<std::string, uint32_t> folder_indices_;
  std::vector<uint32_t> order_;  // empty: as added
};

}  // namespace yolo9
