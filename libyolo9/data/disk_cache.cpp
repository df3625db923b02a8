#include <yolo9/data/picture_cache.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <yolo9/core/digest.h>
#include <yolo9/core/log.h>
#include <yolo9/data/picture_places.h>
#include <opencv2/core.hpp>

namespace yolo9 {
namespace {

// The file: a header, a table with one entry a picture (kept or not), the places. Its parts lie where `count` says.
struct Header {
  std::array<char, 8> magic{'y', '9', 'p', 'i', 'x', 'e', 'l', '1'};
  int64_t count = 0;
  uint64_t fingerprint = 0;
  bool operator==(const Header& other) const {
    return magic == other.magic && count == other.count && fingerprint == other.fingerprint;
  }
};
struct Entry {
  uint64_t checksum = 0;
  uint64_t written = 0;  // kWritten once the picture and the checksum are there
};
constexpr uint64_t kWritten = 0x676e6f7420657261ULL;
constexpr int64_t kTableOffset = 4096;
constexpr int64_t kFreeBytes = int64_t{1} << 30;  // of the disk, left to others

int64_t places_offset(int64_t count) {
  return (kTableOffset + count * static_cast<int64_t>(sizeof(Entry)) + 4095) / 4096 * 4096;
}

class FileHandle {
 public:
  explicit FileHandle(int number = -1) : number_(number) {}
  FileHandle(FileHandle&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  FileHandle& operator=(FileHandle&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~FileHandle() {
    if (number_ >= 0) ::close(number_);  // gives a lock back as well
  }
  int number() const { return number_; }
  bool is_open() const { return number_ >= 0; }

 private:
  int number_;
};

bool write_all(int file, const void* data, size_t size, int64_t offset) {
  const auto* bytes = static_cast<const uint8_t*>(data);
  while (size > 0) {
    const ssize_t written = ::pwrite(file, bytes, size, offset);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes += written;
    size -= static_cast<size_t>(written);
    offset += written;
  }
  return true;
}

uint64_t checksum_of(const uint8_t* bytes, size_t size, int64_t index) {
  Digest digest(static_cast<uint64_t>(index));
  digest.add(bytes, size);
  return digest.value();
}

class DiskCache : public PictureCache {
 public:
  // `file` holds a header that agrees, and is locked if it may be written to. Mapped for reading only; what is new is
  // written with pwrite(), which reports a full disk where a store to the mapping would end the process.
  DiskCache(std::string name, FileHandle file, PicturePlaces places, bool may_write, bool reused)
      : name_(std::move(name)),
        file_(std::move(file)),
        places_(std::move(places)),
        places_offset_(places_offset(places_.count())),
        may_write_(may_write),
        reused_(reused),
        states_(static_cast<size_t>(places_.kept())) {}
  ~DiskCache() override {
    if (memory_) ::munmap(memory_, mapped_bytes());
  }

  bool map() {
    void* memory = ::mmap(nullptr, mapped_bytes(), PROT_READ, MAP_SHARED, file_.number(), 0);
    if (memory != MAP_FAILED) memory_ = static_cast<uint8_t*>(memory);
    return memory_ != nullptr;
  }

  bool keeps(int64_t index) const override { return places_.keeps(index); }
  int64_t kept_pictures() const override { return places_.kept(); }
  int64_t bytes() const override { return places_.bytes(); }
  std::string describe() const override;
  cv::Mat find(int64_t index) const override;
  void put(int64_t index, const cv::Mat& picture) override;

 private:
  size_t mapped_bytes() const { return static_cast<size_t>(places_offset_ + places_.bytes()); }
  int64_t entry_offset(int64_t index) const { return kTableOffset + index * static_cast<int64_t>(sizeof(Entry)); }
  // What the file says now, perhaps written by another process.
  Entry entry(int64_t index) const {
    Entry out;
    const auto* stored = reinterpret_cast<const Entry*>(memory_ + entry_offset(index));
    out.written = __atomic_load_n(&stored->written, __ATOMIC_ACQUIRE);
    out.checksum = __atomic_load_n(&stored->checksum, __ATOMIC_RELAXED);
    return out;
  }

  std::string name_;
  FileHandle file_;
  PicturePlaces places_;
  int64_t places_offset_;
  bool may_write_, reused_;
  uint8_t* memory_ = nullptr;
  std::atomic<bool> full_{false};
  mutable std::vector<std::atomic<uint8_t>> states_;  // kReady: looked at by this process, and good
};

std::string DiskCache::describe() const {
  int64_t written = 0;
  for (int64_t i = 0; i < places_.kept(); ++i) written += entry(i).written == kWritten ? 1 : 0;
  std::string text = places_.describe("disk, " + name_);
  if (reused_) text += " (reused: " + std::to_string(written) + " are there already)";
  if (!may_write_) text += " (another run writes it)";
  return text;
}

cv::Mat DiskCache::find(int64_t index) const {
  if (!keeps(index)) return {};
  auto& state = states_[static_cast<size_t>(index)];
  const PicturePlaces::Place& place = places_[index];
  const uint8_t seen = state.load(std::memory_order_acquire);
  if (seen == kReady) return place.at(memory_ + places_offset_);
  if (seen != kEmpty) return {};
  const Entry stored = entry(index);
  if (stored.written != kWritten) return {};
  if (checksum_of(memory_ + places_offset_ + place.offset, place.bytes(), index) == stored.checksum) {
    uint8_t expected = kEmpty;
    state.compare_exchange_strong(expected, kReady, std::memory_order_acq_rel);
    return place.at(memory_ + places_offset_);
  }
  // A writer mends it with the next put(); a reader leaves it to the writer's next run.
  if (!may_write_) state.store(kHopeless, std::memory_order_release);
  return {};
}

void DiskCache::put(int64_t index, const cv::Mat& picture) {
  if (!may_write_ || full_ || !keeps(index) || !places_[index].fits(picture)) return;
  auto& state = states_[static_cast<size_t>(index)];
  uint8_t expected = kEmpty;
  if (!state.compare_exchange_strong(expected, kFilling)) return;
  const cv::Mat whole = picture.isContinuous() ? picture : picture.clone();
  const PicturePlaces::Place& place = places_[index];
  // First it is not there, then its bytes, then it is there: whenever the process ends, nothing false is said.
  Entry stored;
  bool good = write_all(file_.number(), &stored, sizeof stored, entry_offset(index)) &&
              write_all(file_.number(), whole.data, place.bytes(), places_offset_ + place.offset);
  stored.checksum = checksum_of(whole.data, place.bytes(), index);
  good = good && write_all(file_.number(), &stored, sizeof stored, entry_offset(index));
  stored.written = kWritten;
  good = good && write_all(file_.number(), &stored, sizeof stored, entry_offset(index));
  state.store(good ? kReady : kHopeless, std::memory_order_release);
  if (!good && !full_.exchange(true)) {
    log_warn("cache: " + name_ + " cannot grow (" + std::generic_category().message(errno) +
             "); no more pictures are kept");
  }
}

std::nullptr_t refuse(const std::string& file, const std::string& why) {
  log_warn("cache: " + file + ": " + why + "; every picture is read each time");
  return nullptr;
}

bool read_header(int file, Header& header) {
  return ::pread(file, &header, sizeof header, 0) == static_cast<ssize_t>(sizeof header);
}

// A file of its own under a new name, put in the place of whatever is there: who reads that goes on reading it.
FileHandle create_file(const std::string& name, const Header& header) {
  std::string temporary = name + ".XXXXXX";
  FileHandle file(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!file.is_open()) return file;
  if (::flock(file.number(), LOCK_EX | LOCK_NB) != 0 || !write_all(file.number(), &header, sizeof header, 0) ||
      ::rename(temporary.c_str(), name.c_str()) != 0) {
    ::unlink(temporary.c_str());
    return FileHandle();
  }
  return file;
}

// What places may take: what is asked for, less where the disk is full; `file` itself counts as free.
int64_t disk_budget(int file, int64_t budget_bytes) {
  struct statvfs disk {};
  struct stat own {};
  if (::fstatvfs(file, &disk) != 0 || ::fstat(file, &own) != 0) return budget_bytes;
  const int64_t free_bytes = static_cast<int64_t>(disk.f_bavail) * static_cast<int64_t>(disk.f_frsize);
  return std::max<int64_t>(0,
                           std::min(budget_bytes, free_bytes + static_cast<int64_t>(own.st_blocks) * 512 - kFreeBytes));
}

}  // namespace

std::unique_ptr<PictureCache> make_disk_cache(const std::string& name, const std::vector<PixelSize>& sizes,
                                              const std::string& fingerprint, int64_t budget_bytes) {
  Header header;
  header.count = static_cast<int64_t>(sizes.size());
  Digest digest;
  digest.add(fingerprint);
  for (const PixelSize& size : sizes) {
    digest.add_number(size.height);
    digest.add_number(size.width);
  }
  header.fingerprint = digest.value();

  std::error_code failure;
  std::filesystem::create_directories(std::filesystem::path(name).parent_path(), failure);
  if (failure) return refuse(name, "its folder cannot be made (" + failure.message() + ")");
  FileHandle file(::open(name.c_str(), O_RDWR | O_CLOEXEC));
  bool may_write = true, reused = false;
  if (file.is_open()) {
    may_write = ::flock(file.number(), LOCK_EX | LOCK_NB) == 0;
    Header stored;
    reused = read_header(file.number(), stored) && stored == header;
    if (!reused && !may_write) return refuse(name, "another run keeps other pictures in it");
    if (!reused) ::unlink(name.c_str());  // its space is wanted; who has it open keeps it
  }
  if (!reused) file = create_file(name, header);
  if (!file.is_open()) return refuse(name, "it cannot be written (" + std::generic_category().message(errno) + ")");

  struct stat info {};
  if (::fstat(file.number(), &info) != 0) return refuse(name, "it cannot be read");
  // A reader takes what is there: the writer's file never shrinks.
  const int64_t room = info.st_size - places_offset(header.count);
  if (!may_write && room < 0) return refuse(name, "another run has only just begun it");
  PicturePlaces places(sizes, may_write ? disk_budget(file.number(), budget_bytes) : std::min(budget_bytes, room));
  const int64_t end = places_offset(header.count) + places.bytes();
  if (info.st_size < end && (!may_write || ::ftruncate(file.number(), end) != 0)) {
    return refuse(name, "it cannot be made large enough");
  }
  auto cache = std::make_unique<DiskCache>(name, std::move(file), std::move(places), may_write, reused);
  if (!cache->map()) return refuse(name, "it cannot be mapped");
  return cache;
}

}  // namespace yolo9
