#include <yolo9/data/scan.h>

#include <atomic>
#include <exception>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>
#include <thread>

#include <yolo9/data/image.h>
#include <yolo9/data/image_header.h>
#include <yolo9/data/sources.h>

namespace yolo9 {
namespace {

void read_label_file(ScannedImage& image, int64_t class_count) {
  std::error_code ignored;
  if (!std::filesystem::exists(image.label_path, ignored)) return;
  image.has_label_file = true;
  std::ifstream stream(image.label_path, std::ios::binary);
  std::ostringstream text;
  if (std::filesystem::is_directory(image.label_path, ignored) || !stream) {
    image.labels.faults.push_back({LabelFaultKind::Unreadable, 0, "the label file cannot be read"});
    return;
  }
  text << stream.rdbuf();
  image.labels = parse_labels(text.str(), class_count);
}

}  // namespace

ScannedImage scan_image(const std::string& path, int64_t class_count) {
  ScannedImage image;
  image.path = path;
  image.label_path = label_path(path);
  const ImageHeader header = probe_image(path);
  image.height = header.height;
  image.width = header.width;
  if (!header.ok) {
    image.fault = header.fault;
  } else if (std::min(header.height, header.width) < kSmallestSide) {
    image.fault = "a side is shorter than " + std::to_string(kSmallestSide) + " pixels";
  }
  read_label_file(image, class_count);
  return image;
}

std::vector<ScannedImage> scan_images(const std::vector<std::string>& paths, int64_t class_count) {
  use_one_opencv_thread();
  constexpr size_t kMostThreads = 16, kImagesAThread = 64;
  std::vector<ScannedImage> images(paths.size());
  std::atomic<size_t> next{0};
  std::exception_ptr failure;
  std::mutex mutex;
  const auto work = [&] {
    try {
      for (size_t i = next++; i < paths.size(); i = next++) images[i] = scan_image(paths[i], class_count);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
      next = paths.size();
    }
  };
  const size_t cores = std::max(1u, std::thread::hardware_concurrency());
  const size_t count = std::min({cores, kMostThreads, paths.size() / kImagesAThread + 1});
  std::vector<std::thread> threads;
  for (size_t i = 1; i < count; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
  return images;
}

}  // namespace yolo9
