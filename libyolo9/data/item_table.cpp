#include <yolo9/data/item_table.h>

#include <c10/util/Exception.h>

namespace yolo9 {

void ItemTable::add(PictureItem item) { items_.push_back(std::move(item)); }

int64_t ItemTable::size() const { return static_cast<int64_t>(items_.size()); }

std::string ItemTable::path(int64_t index) const { return items_.at(static_cast<size_t>(index)).path; }

PixelSize ItemTable::picture_size(int64_t index) const { return items_.at(static_cast<size_t>(index)).size; }

std::vector<LabelRow> ItemTable::labels(int64_t index) const { return items_.at(static_cast<size_t>(index)).labels; }

PictureItem ItemTable::item(int64_t index) const {
  TORCH_CHECK(index >= 0 && index < size(), "[item_table] index ", index, " of ", size());
  return items_[static_cast<size_t>(index)];
}

void ItemTable::reorder(const std::vector<int64_t>& order) {
  std::vector<PictureItem> ordered;
  ordered.reserve(items_.size());
  for (const int64_t position : order) ordered.push_back(std::move(items_.at(static_cast<size_t>(position))));
  items_ = std::move(ordered);
}

}  // namespace yolo9
