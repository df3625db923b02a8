// Epochs cost no memory, and leave no threads.
#include <filesystem>
#include <fstream>
#include <iterator>

#include <unistd.h>

#include <yolo9/data/loader.h>
#include <catch2/catch.hpp>

#include "data_set_support.h"

namespace {

namespace fs = std::filesystem;

constexpr int64_t kMiB = int64_t{1} << 20;

// The resident set without mapped files, whose pages come and go as the system likes.
int64_t resident_bytes() {
  int64_t size = 0, resident = 0, shared = 0;
  std::ifstream("/proc/self/statm") >> size >> resident >> shared;
  return (resident - shared) * static_cast<int64_t>(sysconf(_SC_PAGESIZE));
}

int64_t threads() { return std::distance(fs::directory_iterator("/proc/self/task"), fs::directory_iterator()); }

std::string make_pictures(const std::string& name, int count) {
  const std::string root = fixture::temporary_dir(name);
  fs::create_directories(root + "/images");
  fs::create_directories(root + "/labels");
  for (int i = 0; i < count; ++i) {
    const std::string stem = std::to_string(i);
    yolo9::write_image(root + "/images/" + stem + ".jpg", data_set::noise(64, 64, static_cast<uint64_t>(i)));
    data_set::write_label(root + "/labels/" + stem + ".txt",
                          i % 2 == 0 ? "0 0.5 0.5 0.4 0.6\n" : "2 0.4 0.5 0.2 0.3\n");
  }
  return root;
}

// Bytes that the resident set grows by per epoch, after `settle` epochs.
double growth(yolo9::PictureKeeping keeping, bool quad, int64_t epochs, int64_t settle) {
  yolo9::DatasetOptions options;
  options.image_size = 64;
  options.augment = true;
  options.augmentation.mosaic = 1;
  options.keep_pictures = keeping;
  const std::string root = make_pictures("growth", 500);
  const auto dataset = std::make_shared<yolo9::Dataset>(std::vector<std::string>{root + "/images"},
                                                        std::vector<std::string>{"a", "b", "c"}, options);
  const int64_t threads_before = threads();
  int64_t settled = 0;
  {
    yolo9::Loader loader(dataset, {.batch_size = 16, .workers = 2, .shuffle = true, .quad = quad});
    for (int64_t epoch = 0; epoch < epochs; ++epoch) {
      if (epoch == settle) settled = resident_bytes();
      loader.start(epoch, 0, {}, epoch + 3 < epochs);
      int64_t samples = 0;
      while (const auto batch = loader.next()) samples += batch->samples > 0 ? batch->samples : batch->size();
      CHECK(samples == 500);
      CHECK(threads() == threads_before + 2);
      // An epoch that is left in the middle leaves nothing either.
      loader.start(epoch + 1000);
      loader.next();
    }
  }
  CHECK(threads() == threads_before);
  return static_cast<double>(resident_bytes() - settled) / static_cast<double>(epochs - settle);
}

}  // namespace

TEST_CASE("thirty epochs do not grow the process", "[data]") {
  CHECK(growth(yolo9::PictureKeeping::None, false, 30, 5) < kMiB);
}

TEST_CASE("nor do epochs of quads from pictures kept in memory", "[data]") {
  CHECK(growth(yolo9::PictureKeeping::Memory, true, 10, 4) < kMiB);
}
