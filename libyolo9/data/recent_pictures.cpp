#include <yolo9/data/recent_pictures.h>

namespace yolo9 {

int64_t RecentPictures::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

void RecentPictures::drop_oldest() {
  const auto entry = entries_.find(by_use_.back());
  bytes_ -= entry->second->bytes;
  entry->second->listed = false;
  entries_.erase(entry);
  by_use_.pop_back();
}

cv::Mat RecentPictures::get(int64_t index, const std::function<cv::Mat()>& make) {
  std::shared_ptr<Entry> entry;
  {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<Entry>& found = entries_[index];
    if (found) {
      by_use_.splice(by_use_.begin(), by_use_, found->place);
    } else {
      found = std::make_shared<Entry>();
      by_use_.push_front(index);
      found->place = by_use_.begin();
    }
    entry = found;
  }
  const std::lock_guard making(entry->mutex);
  if (!entry->picture.empty()) return entry->picture;
  const cv::Mat picture = make();
  const std::lock_guard lock(mutex_);
  if (!entry->listed) return picture;
  entry->picture = picture;
  entry->bytes = static_cast<int64_t>(picture.total() * picture.elemSize());
  bytes_ += entry->bytes;
  while (bytes_ > budget_bytes_ && !by_use_.empty()) drop_oldest();
  return picture;
}

}  // namespace yolo9
