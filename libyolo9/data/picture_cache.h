// Decoded pictures at their loaded size, kept so that later epochs need not decode them again.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <yolo9/data/mosaic.h>

namespace cv {
class Mat;
}

namespace yolo9 {

// Which pictures are kept is settled from the start, from their sizes: the first ones that fit the budget, since any
// picture saves time in proportion to its bytes. Each is filled in when it is first needed. At least 16 bytes after the
// last pixel of a picture can be read. Safe for many threads at once.
class PictureCache {
 public:
  virtual ~PictureCache() = default;
  // The picture, 8-bit BGR, to be read only; empty if it is not there. Valid as long as the cache.
  virtual cv::Mat find(int64_t index) const = 0;
  // Whether the picture has a place here, filled or not.
  virtual bool keeps(int64_t index) const = 0;
  // Fills the place of a picture that keeps() says yes to; without effect if it is filled already, or if the picture is
  // not of the size that was announced.
  virtual void put(int64_t index, const cv::Mat& picture) = 0;

  virtual int64_t kept_pictures() const = 0;  // that have a place
  virtual int64_t bytes() const = 0;          // of all places, filled or not
  // "3100 of 5000 pictures fit in 2.8 GiB of memory; the others are read each time"
  virtual std::string describe() const = 0;
};

// `sizes`: of every picture as it will be put. The memory is taken at once, so that nobody else plans with it; less of
// it is used if the system refuses so much.
std::unique_ptr<PictureCache> make_memory_cache(const std::vector<PixelSize>& sizes, int64_t budget_bytes);

// In one file, which outlives the process and is used again as long as `fingerprint`, which stands for the pictures,
// and their sizes are the same; otherwise it is written anew. Nothing in it is trusted that was not written to its end:
// every picture has a checksum. Of several processes that share a file the first one writes, the others read. At least
// 1 GiB of the disk is left free; if it fills up all the same, no more pictures are kept. Null, with a warning, if the
// file cannot be made or has other contents and another process at work on it.
std::unique_ptr<PictureCache> make_disk_cache(const std::string& file, const std::vector<PixelSize>& sizes,
                                              const std::string& fingerprint, int64_t budget_bytes);

// $YOLO9_CACHE_DIR, or yolo9 in $XDG_CACHE_HOME or ~/.cache; pictures are in its folder "pictures". Throws Error(Usage)
// if none of the three variables is set.
std::string picture_cache_folder();

}  // namespace yolo9
