#include <yolo9/data/item_table.h>

#include <limits>

#include <c10/util/Exception.h>

namespace yolo9 {
namespace {

uint32_t checked_side(int64_t side) {
  TORCH_CHECK(side >= 0 && side <= std::numeric_limits<int32_t>::max(), "[item_table] a side of ", side, " pixels");
  return static_cast<uint32_t>(side);
}

}  // namespace

uint32_t ItemTable::folder_index(const std::string& folder) {
  if (!folders_.empty() && folders_.back() == folder) return static_cast<uint32_t>(folders_.size() - 1);
  const auto [entry, is_new] = folder_indices_.emplace(folder, static_cast<uint32_t>(folders_.size()));
  if (is_new) folders_.push_back(folder);
  return entry->second;
}

void ItemTable::add(const PictureItem& item) {
  TORCH_CHECK(order_.empty(), "[item_table] a picture added after reordering");
  TORCH_CHECK(entries_.size() < std::numeric_limits<uint32_t>::max(), "[item_table] too many pictures");
  const size_t folder_bytes = item.path.rfind('/') + 1;  // 0 without a folder
  const std::string folder = item.path.substr(0, folder_bytes);
  const size_t name_bytes = item.path.size() - folder_bytes;
  entries_.push_back({folder_index(folder), checked_side(item.size.height), checked_side(item.size.width),
                      static_cast<uint32_t>(name_bytes), names_.size(), rows_.size()});
  names_.append(item.path.data() + folder_bytes, name_bytes);
  for (const LabelRow& row : item.labels) {
    TORCH_CHECK(row.class_index >= 0 && row.class_index <= std::numeric_limits<int32_t>::max(),
                "[item_table] class index ", row.class_index);
    if (!row.polygon.empty()) {
      points_.append(row.polygon.data(), row.polygon.size());
      polygons_.push_back({rows_.size(), points_.size()});
    }
    rows_.push_back({static_cast<int32_t>(row.class_index), row.cx, row.cy, row.w, row.h});
  }
}

int64_t ItemTable::size() const {
  return static_cast<int64_t>(order_.empty() ? entries_.size() : uint64_t{order_.size()});
}

uint64_t ItemTable::place(int64_t index) const {
  TORCH_CHECK(index >= 0 && index < size(), "[item_table] index ", index, " of ", size());
  return order_.empty() ? static_cast<uint64_t>(index) : order_[static_cast<size_t>(index)];
}

uint64_t ItemTable::rows_end(uint64_t place) const {
  return place + 1 < entries_.size() ? entries_[place + 1].row_at : rows_.size();
}

std::string ItemTable::path(int64_t index) const {
  const Entry& entry = entries_[place(index)];
  std::string path = folders_[entry.folder];
  const size_t folder_bytes = path.size();
  path.resize(folder_bytes + entry.name_bytes);
  names_.copy_out(entry.name_at, entry.name_bytes, path.data() + folder_bytes);
  return path;
}

PixelSize ItemTable::picture_size(int64_t index) const {
  const Entry& entry = entries_[place(index)];
  return {entry.height, entry.width};
}

int64_t ItemTable::label_count(int64_t index) const {
  const uint64_t at = place(index);
  return static_cast<int64_t>(rows_end(at) - entries_[at].row_at);
}

std::vector<LabelRow> ItemTable::labels(int64_t index) const {
  const uint64_t at = place(index), begin = entries_[at].row_at, end = rows_end(at);
  // The first polygon of these rows, or of later ones.
  uint64_t polygon = 0;
  for (uint64_t high = polygons_.size(); polygon < high;) {
    const uint64_t middle = polygon + (high - polygon) / 2;
    if (polygons_[middle].row < begin) {
      polygon = middle + 1;
    } else {
      high = middle;
    }
  }
  std::vector<LabelRow> labels(end - begin);
  for (uint64_t i = begin; i < end; ++i) {
    const Row& row = rows_[i];
    LabelRow& label = labels[i - begin];
    label.class_index = row.class_index;
    label.cx = row.cx;
    label.cy = row.cy;
    label.w = row.w;
    label.h = row.h;
    if (polygon >= polygons_.size() || polygons_[polygon].row != i) continue;
    const uint64_t first = polygon > 0 ? polygons_[polygon - 1].end : 0;
    label.polygon.resize(polygons_[polygon].end - first);
    points_.copy_out(first, label.polygon.size(), label.polygon.data());
    ++polygon;
  }
  return labels;
}

PictureItem ItemTable::item(int64_t index) const { return {path(index), picture_size(index), labels(index)}; }

std::vector<int64_t> ItemTable::class_counts(int64_t classes) const {
  std::vector<int64_t> counts(static_cast<size_t>(classes), 0);
  for (uint64_t i = 0; i < rows_.size(); ++i) {
    TORCH_CHECK(rows_[i].class_index < classes, "[item_table] class index ", rows_[i].class_index, " of ", classes);
    ++counts[static_cast<size_t>(rows_[i].class_index)];
  }
  return counts;
}

void ItemTable::reorder(const std::vector<int64_t>& order) {
  TORCH_CHECK(std::ssize(order) == size(), "[item_table] an order of ", order.size(), " for ", size(), " pictures");
  std::vector<uint32_t> places;
  places.reserve(order.size());
  for (const int64_t index : order) places.push_back(static_cast<uint32_t>(place(index)));
  order_ = std::move(places);
}

int64_t ItemTable::bytes() const {
  int64_t total = entries_.bytes() + names_.bytes() + rows_.bytes() + polygons_.bytes() + points_.bytes();
  total += static_cast<int64_t>(order_.capacity() * sizeof(uint32_t));
  // A folder's name is there twice; a node of the map takes about 64 bytes.
  constexpr size_t kNode = 64;
  for (const std::string& folder : folders_) total += static_cast<int64_t>(2 * folder.capacity() + kNode + 32);
  return total;
}

}  // namespace yolo9
