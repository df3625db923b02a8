#include <yolo9/data/picture_cache.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>

#include <sys/mman.h>

#include <yolo9/core/error.h>
#include <yolo9/core/resources.h>
#include <yolo9/data/picture_places.h>
#include <opencv2/core.hpp>

namespace yolo9 {

std::string PicturePlaces::describe(const std::string& medium) const {
  std::array<char, 32> size;
  const auto bytes = static_cast<double>(bytes_);
  if (bytes_ >= int64_t{1} << 30) {
    std::snprintf(size.data(), size.size(), "%.1f GiB", bytes / (1 << 30));
  } else {
    std::snprintf(size.data(), size.size(), "%.1f MiB", bytes / (1 << 20));
  }
  if (kept() == count_) return std::to_string(count_) + " pictures in " + size.data() + " of " + medium;
  return std::to_string(kept()) + " of " + std::to_string(count_) + " pictures fit in " + size.data() + " of " +
         medium + "; the others are read each time";
}

namespace {

class MemoryCache : public PictureCache {
 public:
  MemoryCache(PicturePlaces places, uint8_t* memory)
      : places_(std::move(places)), memory_(memory), states_(static_cast<size_t>(places_.kept())) {}
  ~MemoryCache() override {
    if (memory_) ::munmap(memory_, static_cast<size_t>(places_.bytes()));
  }

  bool keeps(int64_t index) const override { return places_.keeps(index); }
  int64_t kept_pictures() const override { return places_.kept(); }
  int64_t bytes() const override { return places_.bytes(); }
  std::string describe() const override { return places_.describe("memory"); }

  cv::Mat find(int64_t index) const override {
    if (!keeps(index) || states_[static_cast<size_t>(index)].load(std::memory_order_acquire) != kReady) return {};
    return places_[index].at(memory_);
  }

  void put(int64_t index, const cv::Mat& picture) override {
    if (!keeps(index) || !places_[index].fits(picture)) return;
    uint8_t expected = kEmpty;
    auto& state = states_[static_cast<size_t>(index)];
    if (!state.compare_exchange_strong(expected, kFilling)) return;
    cv::Mat place = places_[index].at(memory_);
    picture.copyTo(place);
    state.store(kReady, std::memory_order_release);
  }

 private:
  PicturePlaces places_;
  uint8_t* memory_;
  std::vector<std::atomic<uint8_t>> states_;
};

}  // namespace

std::unique_ptr<PictureCache> make_memory_cache(const std::vector<PixelSize>& sizes, int64_t budget_bytes) {
  for (;;) {
    PicturePlaces places(sizes, budget_bytes);
    if (places.bytes() == 0) return std::make_unique<MemoryCache>(std::move(places), nullptr);
    void* memory = ::mmap(nullptr, static_cast<size_t>(places.bytes()), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory != MAP_FAILED) return std::make_unique<MemoryCache>(std::move(places), static_cast<uint8_t*>(memory));
    budget_bytes = places.bytes() / 2;
  }
}

std::string picture_cache_folder() {
  std::string folder = cache_folder("pictures");
  if (folder.empty()) throw Error(ErrorKind::Usage, "there is no folder for --cache disk", "", "set YOLO9_CACHE_DIR");
  return folder;
}

}  // namespace yolo9
