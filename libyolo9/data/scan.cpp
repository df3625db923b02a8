#include <yolo9/data/scan.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include <yolo9/core/cpu.h>
#include <yolo9/data/scan_cache.h>

namespace yolo9 {
namespace {

using Clock = std::chrono::steady_clock;

ScannedImage look_at(const Annotations& annotations, int64_t index, const LabelSource& source) {
  ScannedImage image;
  image.path = annotations.picture(index);
  image.label_path = source.path;
  image.has_label_file = source.exists;
  ImageHeader header = probe_image(image.path);
  image.height = header.height;
  image.width = header.width;
  image.format = header.format;
  image.fault_kind = header.kind;
  image.fault = std::move(header.fault);
  if (header.ok && std::min(header.height, header.width) < kSmallestSide) {
    image.fault_kind = ImageFault::TooSmall;
    image.fault = "a side is shorter than " + std::to_string(kSmallestSide) + " pixels";
  }
  if (source.exists) {
    const PixelSize size = header.ok ? PixelSize{image.height, image.width} : PixelSize{};
    image.labels = annotations.parse(index, source, size);
  }
  return image;
}

struct Scanned {
  ScannedImage image;
  std::string fresh;       // the record to be written, where nothing known could be used
  std::string_view known;  // the record that was used
};

Scanned scan_with(const std::optional<ScanCache>& cache, bool record_wanted, const Annotations& annotations,
                  int64_t index) {
  const LabelSource source = annotations.source(index);
  const std::optional<FileStamp> stamp = record_wanted ? stamp_of(annotations.picture(index)) : std::nullopt;
  Scanned result;
  if (cache && stamp && source.readable) {
    const std::string_view bytes = cache->find(annotations.picture(index));
    std::optional<ScanRecord> record = bytes.empty() ? std::nullopt : decode_scan_record(bytes);
    if (record && record->stamp == *stamp && record->label_hash == source.hash &&
        record->image.has_label_file == source.exists && record->image.label_path == source.path) {
      result.image = std::move(record->image);
      result.known = bytes;
      return result;
    }
  }
  result.image = look_at(annotations, index, source);
  if (stamp && source.readable && result.image.fault_kind != ImageFault::Unreadable) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    if (is_settled(*stamp, std::chrono::duration_cast<std::chrono::nanoseconds>(now).count())) {
      result.fresh = encode_scan_record({*stamp, source.hash, result.image});
    }
  }
  return result;
}

// Chunks of results between the threads that make them and the one that takes them in order.
class ScanQueue {
 public:
  ScanQueue(int64_t chunks, int64_t most_ahead) : chunks_(chunks), slots_(static_cast<size_t>(most_ahead)) {}

  // The next chunk to work at, once it is not too far ahead; below zero: no more.
  int64_t claim() {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [&] { return stopped_ || next_ >= chunks_ || next_ < taken_ + std::ssize(slots_); });
    return stopped_ || next_ >= chunks_ ? -1 : next_++;
  }
  void put(int64_t chunk, std::vector<Scanned> results) {
    const std::lock_guard lock(mutex_);
    slot(chunk) = std::move(results);
    ready_.notify_one();
  }
  void stop(std::exception_ptr failure = nullptr) {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    if (!failure_) failure_ = std::move(failure);
    room_.notify_all();
    ready_.notify_one();
  }
  std::vector<Scanned> take() {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [&] { return stopped_ || slot(taken_).has_value(); });
    if (failure_) std::rethrow_exception(failure_);
    std::vector<Scanned> results = std::move(*slot(taken_));
    slot(taken_).reset();
    ++taken_;
    room_.notify_all();
    return results;
  }

 private:
  std::optional<std::vector<Scanned>>& slot(int64_t chunk) {
    return slots_[static_cast<size_t>(chunk) % slots_.size()];
  }

  std::mutex mutex_;
  std::condition_variable room_, ready_;
  int64_t chunks_, next_ = 0, taken_ = 0;
  bool stopped_ = false;
  std::exception_ptr failure_;
  std::vector<std::optional<std::vector<Scanned>>> slots_;
};

// Ends the threads whatever happens.
struct Workers {
  ScanQueue& queue;
  std::vector<std::thread> threads;
  ~Workers() {
    queue.stop();
    for (std::thread& thread : threads) thread.join();
  }
};

// The new cache file, begun at the first result that the old one did not have.
class CacheUpdate {
 public:
  CacheUpdate(const Annotations& annotations, const std::optional<ScanCache>& old, const ScanCachePlace& place)
      : annotations_(annotations), old_(old), place_(place) {}

  void add(int64_t index, const Scanned& scanned) {
    if (place_.path.empty() || (!writer_ && scanned.fresh.empty())) return;
    if (!writer_) {
      writer_.emplace(place_);
      for (int64_t i = 0; i < index && old_; ++i) write(old_->find(annotations_.picture(i)));
    }
    write(scanned.known.empty() ? std::string_view(scanned.fresh) : scanned.known);
  }
  void finish() {
    if (writer_) writer_->finish();
  }

 private:
  // Pictures that are missing, or have only just changed, have no record.
  void write(std::string_view record) {
    if (!record.empty()) writer_->add(record);
  }

  const Annotations& annotations_;
  const std::optional<ScanCache>& old_;
  const ScanCachePlace& place_;
  std::optional<ScanCacheWriter> writer_;
};

constexpr int64_t kChunk = 16;

void start_workers(Workers& workers, int64_t count, const std::function<Scanned(int64_t)>& scan, int64_t size) {
  for (int64_t i = 0; i < count; ++i) {
    workers.threads.emplace_back([&queue = workers.queue, scan, size] {
      try {
        for (int64_t chunk = queue.claim(); chunk >= 0; chunk = queue.claim()) {
          std::vector<Scanned> results;
          for (int64_t j = chunk * kChunk; j < std::min(size, (chunk + 1) * kChunk); ++j) results.push_back(scan(j));
          queue.put(chunk, std::move(results));
        }
      } catch (...) {
        queue.stop(std::current_exception());
      }
    });
  }
}

}  // namespace

bool ScannedImage::is_misnamed() const {
  const ImageFormat promised = format_of_extension(path);
  return format != ImageFormat::Other && promised != ImageFormat::Other && promised != format;
}

std::string ScanReport::describe() const {
  char time[32];
  std::snprintf(time, sizeof time, "%.1f s", seconds);
  const std::string cached = from_cache > 0 ? " (" + std::to_string(from_cache) + " from the cache)" : "";
  return std::to_string(pictures) + (pictures == 1 ? " picture" : " pictures") + cached + " in " + time;
}

ScannedImage scan_image(const Annotations& annotations, int64_t index) {
  return look_at(annotations, index, annotations.source(index));
}

ScanReport for_each_scanned(const Annotations& annotations, const std::function<void(int64_t, ScannedImage&&)>& consume,
                            const ScanProgress& progress, const ScanCachePlace& place) {
  const Clock::time_point begin = Clock::now();
  constexpr auto kBetweenReports = std::chrono::milliseconds(100);
  ScanReport report;
  report.pictures = annotations.size();
  const std::optional<ScanCache> cache = read_scan_cache(place);
  CacheUpdate update(annotations, cache, place);
  const int64_t chunks = (report.pictures + kChunk - 1) / kChunk;
  constexpr int64_t kMostThreads = 16, kChunksAThread = 4;
  const int64_t threads = std::clamp<int64_t>(chunks / kChunksAThread, 1, std::min(usable_cores(), kMostThreads));
  ScanQueue queue(chunks, kChunksAThread * threads);
  {
    Workers workers{queue, {}};
    const bool record_wanted = !place.path.empty();
    start_workers(
        workers, threads, [&](int64_t i) { return scan_with(cache, record_wanted, annotations, i); }, report.pictures);
    Clock::time_point last = begin;
    for (int64_t chunk = 0, index = 0; chunk < chunks; ++chunk) {
      for (Scanned& scanned : queue.take()) {
        update.add(index, scanned);
        report.from_cache += scanned.known.empty() ? 0 : 1;
        consume(index++, std::move(scanned.image));
      }
      const Clock::time_point now = Clock::now();
      if (!progress || (chunk + 1 < chunks && now - last < kBetweenReports)) continue;
      last = now;
      progress(index, report.pictures);
    }
  }
  update.finish();
  report.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return report;
}

}  // namespace yolo9
