#include <yolo9/data/scan_cache.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <yolo9/core/digest.h>
#include <yolo9/core/log.h>
#include <yolo9/core/resources.h>

namespace yolo9 {
namespace {

constexpr char kMagic[8] = {'y', 'o', 'l', 'o', '9', 's', 'c', 'n'};
constexpr uint64_t kVersion = 2;  // of the format, and of what scans find: a change of either makes a new version
// Hostile or absurd files are not read: this is enough for some 30 million pictures.
constexpr uintmax_t kLargestFile = uintmax_t{8} << 30;

// Then the records, each after its length in 32 bits.
struct FileHead {
  char magic[8];
  uint64_t version, names, count, body_bytes, checksum;
};

uint64_t digest_of(std::string_view text) {
  Digest digest;
  digest.add(text.data(), text.size());
  return digest.value();
}

// The path that a record begins with.
std::string_view path_of(std::string_view record) {
  uint32_t length = 0;
  if (record.size() < sizeof length) return {};
  std::memcpy(&length, record.data(), sizeof length);
  return record.substr(sizeof length, length);
}

std::string_view record_at(std::string_view bytes, uint64_t at) {
  uint32_t length = 0;
  std::memcpy(&length, bytes.data() + at, sizeof length);
  return bytes.substr(at + sizeof length, length);
}

// Over what the head says, and the records.
uint64_t checksum(const FileHead& head, const Digest& records) {
  Digest digest(kVersion);
  for (const uint64_t value : {head.names, head.count, head.body_bytes, records.value()})
    digest.add(&value, sizeof value);
  return digest.value();
}

}  // namespace

std::optional<FileStamp> stamp_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  const auto nanoseconds = [](const timespec& time) {
    return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
  };
  return FileStamp{static_cast<uint64_t>(status.st_size), static_cast<uint64_t>(status.st_ino),
                   nanoseconds(status.st_mtim), nanoseconds(status.st_ctim)};
}

bool is_settled(const FileStamp& stamp, int64_t now_ns) {
  constexpr int64_t kSecond = 1'000'000'000, kStep = 20'000'000;
  const int64_t step = stamp.changed_ns % kSecond == 0 ? 2 * kSecond : kStep;
  return now_ns - stamp.changed_ns > step;
}

std::string_view ScanCache::find(std::string_view path) const {
  const uint64_t hash = digest_of(path);
  auto entry = std::lower_bound(index_.begin(), index_.end(), std::pair<uint64_t, uint64_t>{hash, 0});
  for (; entry != index_.end() && entry->first == hash; ++entry) {
    const std::string_view record = record_at(bytes_, entry->second);
    if (path_of(record) == path) return record;
  }
  return {};
}

std::optional<ScanCache> ScanCache::parse(std::string&& bytes) {
  FileHead head{};
  if (bytes.size() < sizeof head) return std::nullopt;
  std::memcpy(&head, bytes.data(), sizeof head);
  if (std::memcmp(head.magic, kMagic, sizeof kMagic) != 0 || head.version != kVersion) return std::nullopt;
  if (head.body_bytes != bytes.size() - sizeof head || head.count > head.body_bytes / sizeof(uint32_t)) {
    return std::nullopt;
  }
  ScanCache cache;
  cache.names_ = head.names;
  Digest records;
  uint64_t at = sizeof head;
  const std::string_view view = bytes;
  for (uint64_t i = 0; i < head.count; ++i) {
    if (view.size() - at < sizeof(uint32_t)) return std::nullopt;
    const std::string_view record = record_at(view, at);
    uint32_t length = 0;
    std::memcpy(&length, view.data() + at, sizeof length);
    if (record.size() != length) return std::nullopt;
    records.add(record.data(), record.size());
    cache.index_.emplace_back(digest_of(path_of(record)), at);
    at += sizeof length + length;
  }
  if (at != view.size() || checksum(head, records) != head.checksum) return std::nullopt;
  std::sort(cache.index_.begin(), cache.index_.end());
  cache.bytes_ = std::move(bytes);
  return cache;
}

std::optional<ScanCache> parse_scan_cache(std::string_view bytes) { return ScanCache::parse(std::string(bytes)); }

std::optional<ScanCache> read_scan_cache(const ScanCachePlace& place) {
  if (place.path.empty()) return std::nullopt;
  std::error_code error;
  const uintmax_t size = std::filesystem::file_size(place.path, error);
  if (error) return std::nullopt;
  std::optional<ScanCache> cache;
  if (size <= kLargestFile) {
    std::string bytes(static_cast<size_t>(size), '\0');
    std::ifstream stream(place.path, std::ios::binary);
    stream.read(bytes.data(), static_cast<std::streamsize>(size));
    if (static_cast<uintmax_t>(stream.gcount()) == size) cache = ScanCache::parse(std::move(bytes));
  }
  if (!cache) {
    log_info("the cache of the scan is damaged or of another version and is made anew: " + place.path);
  } else if (cache->names() != place.names) {
    log_debug("the class names have changed since the cache of the scan was written: " + place.path);
    cache.reset();
  }
  return cache;
}

ScanCacheWriter::ScanCacheWriter(const ScanCachePlace& place) : place_(place) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(place.path).parent_path(), error);
  temporary_ = place.path + ".XXXXXX";
  descriptor_ = ::mkostemp(temporary_.data(), O_CLOEXEC);
  if (descriptor_ < 0) {
    fail(std::strerror(errno));
    return;
  }
  FileHead head{};  // its place; what belongs there is known at the end
  write_out({reinterpret_cast<const char*>(&head), sizeof head});
}

ScanCacheWriter::~ScanCacheWriter() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

void ScanCacheWriter::fail(const std::string& what) {
  if (failure_.empty()) failure_ = what;
}

void ScanCacheWriter::write_out(std::string_view bytes) {
  while (failure_.empty() && !bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail(std::strerror(errno));
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

void ScanCacheWriter::add(std::string_view record) {
  constexpr size_t kBuffer = size_t{1} << 20;
  if (!failure_.empty()) return;
  if (record.size() > UINT32_MAX) return fail("a record is too large");
  const auto length = static_cast<uint32_t>(record.size());
  buffer_.append(reinterpret_cast<const char*>(&length), sizeof length);
  buffer_ += record;
  records_.add(record.data(), record.size());
  ++count_;
  body_bytes_ += sizeof length + record.size();
  if (buffer_.size() < kBuffer) return;
  write_out(buffer_);
  buffer_.clear();
}

bool ScanCacheWriter::finish() {
  write_out(buffer_);
  FileHead head{{}, kVersion, place_.names, count_, body_bytes_, 0};
  std::memcpy(head.magic, kMagic, sizeof kMagic);
  head.checksum = checksum(head, records_);
  if (failure_.empty() && (::pwrite(descriptor_, &head, sizeof head, 0) != sizeof head || ::fsync(descriptor_) != 0 ||
                           ::rename(temporary_.c_str(), place_.path.c_str()) != 0)) {
    fail(std::strerror(errno));
  }
  if (!failure_.empty()) {
    log_info("the cache of the scan is not kept: " + place_.path + ": " + failure_);
    return false;
  }
  ::close(descriptor_);
  descriptor_ = -1;
  return true;
}

std::string scan_cache_folder() { return cache_folder("scans"); }

ScanCachePlace scan_cache_place(const std::string& folder, const std::vector<std::string>& sources,
                                const std::vector<std::string>& names) {
  if (folder.empty()) return {};
  Digest name, classes;
  for (const std::string& source : sources) {
    std::error_code error;
    const std::filesystem::path place = std::filesystem::weakly_canonical(source, error);
    name.add(error ? source : place.string());
    name.add(source);  // the paths of the pictures begin with it as it is written
  }
  for (const std::string& one : names) classes.add(one);
  return {folder + "/" + name.hex() + ".scan", classes.value()};
}

}  // namespace yolo9
