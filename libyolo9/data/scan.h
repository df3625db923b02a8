// One look at every picture and label file of a data set.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <yolo9/data/annotations.h>
#include <yolo9/data/image_header.h>
#include <yolo9/data/labels.h>

namespace yolo9 {

struct ScannedImage {
  std::string path, label_path;
  int64_t height = 0, width = 0;
  std::string fault;  // why the picture cannot be used; empty if it can
  ImageFault fault_kind = ImageFault::None;
  ImageFormat format = ImageFormat::Other;
  bool has_label_file = false;
  LabelFile labels;  // read whether or not the picture can be used

  bool is_empty() const { return has_label_file && labels.rows.empty() && labels.faults.empty(); }
  // The contents are of another format than the file's extension says: no harm, the contents count.
  bool is_misnamed() const;
};

constexpr int64_t kSmallestSide = 10;  // pixels; smaller pictures cannot be used

// How far a scan is; called by the thread that scans, at most ten times a second and once at the end.
using ScanProgress = std::function<void(int64_t done, int64_t total)>;

// A label file that is missing or empty means a picture without objects. May be called from many threads.
ScannedImage scan_image(const Annotations& annotations, int64_t index);

struct ScanReport {
  int64_t pictures = 0, from_cache = 0;
  double seconds = 0;
  std::string describe() const;  // "5000 pictures (4998 from the cache) in 0.4 s"
};

// The file with the results of the scan before; path "": none.
struct ScanCachePlace {
  std::string path;
  uint64_t names = 0;  // a hash of the class names, on which results depend
};

// Calls `consume` for every picture, in order, by the calling thread, while others scan the next ones: only a few
// hundred results exist at a time. What `consume` or a scan throws ends the scan and comes out here. The cache is used
// where nothing has changed, and written anew where something has; one that cannot be read or written is no error.
ScanReport for_each_scanned(const Annotations& annotations, const std::function<void(int64_t, ScannedImage&&)>& consume,
                            const ScanProgress& progress = {}, const ScanCachePlace& cache = {});

}  // namespace yolo9
