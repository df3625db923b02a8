// What a scan found, kept for the next one. A result is used again only if the picture file is the very same (size,
// times of change of contents and of the inode, inode number) and the label's contents have the same hash; the label
// is read for that each time. The cache lies outside the data set, so that data sets may be read-only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <yolo9/core/digest.h>
#include <yolo9/data/scan.h>

namespace yolo9 {

// What a file's system knows of it. Replacing a file shows in `inode` or `changed_ns`, which nobody can set back.
struct FileStamp {
  uint64_t size = 0, inode = 0;
  int64_t modified_ns = 0, changed_ns = 0;
  bool operator==(const FileStamp&) const = default;
};
// Nothing for a file that is not there.
std::optional<FileStamp> stamp_of(const std::string& path);
// Whether a change after `now_ns` must show in the stamp: file systems count time in steps (of 10 ms at most, of 2 s
// where stamps are whole seconds), and a file that changed within the last one could change again unseen.
bool is_settled(const FileStamp& stamp, int64_t now_ns);

struct ScanRecord {
  FileStamp stamp;
  uint64_t label_hash = 0;
  ScannedImage image;
};
std::string encode_scan_record(const ScanRecord& record);
// Nothing if the bytes are not one whole record. Allocates no more than a small multiple of the bytes.
std::optional<ScanRecord> decode_scan_record(std::string_view bytes);

class ScanCache {
 public:
  int64_t size() const { return static_cast<int64_t>(index_.size()); }
  uint64_t names() const { return names_; }
  // The record of a picture; empty if there is none. Valid as long as the cache.
  std::string_view find(std::string_view path) const;

 private:
  friend std::optional<ScanCache> parse_scan_cache(std::string_view bytes);
  friend std::optional<ScanCache> read_scan_cache(const ScanCachePlace& place);
  static std::optional<ScanCache> parse(std::string&& bytes);

  std::string bytes_;
  std::vector<std::pair<uint64_t, uint64_t>> index_;  // hash of the path, place of the record; sorted
  uint64_t names_ = 0;
};

// The contents of a cache file; nothing if they are damaged, cut short, foreign, or of another version.
std::optional<ScanCache> parse_scan_cache(std::string_view bytes);
// Nothing, with a log line unless there is no file, if the file cannot be used.
std::optional<ScanCache> read_scan_cache(const ScanCachePlace& place);

// Writes beside the file and puts the result in its place only when it is complete: readers, and others who write at
// the same time, never see a part.
class ScanCacheWriter {
 public:
  // Makes the folder. Failures of any kind are kept, and said once, in the log, by finish().
  explicit ScanCacheWriter(const ScanCachePlace& place);
  ~ScanCacheWriter();
  ScanCacheWriter(const ScanCacheWriter&) = delete;
  ScanCacheWriter& operator=(const ScanCacheWriter&) = delete;

  void add(std::string_view record);
  bool finish();

 private:
  void write_out(std::string_view bytes);
  void fail(const std::string& what);

  ScanCachePlace place_;
  std::string temporary_, buffer_, failure_;
  int descriptor_ = -1;
  uint64_t count_ = 0, body_bytes_ = 0;
  Digest records_;
};

// $YOLO9_CACHE_DIR/scans, $XDG_CACHE_HOME/yolo9/scans or ~/.cache/yolo9/scans; "" (no cache) where none is known or
// YOLO9_CACHE_DIR is set and empty.
std::string scan_cache_folder();
// The file in it for these sources, found from any working folder. No path for folder "".
ScanCachePlace scan_cache_place(const std::string& folder, const std::vector<std::string>& sources,
                                const std::vector<std::string>& names);

}  // namespace yolo9
