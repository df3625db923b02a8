// A data set: pictures with labels, and the way from one of them to a sample that a network can take.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <torch/types.h>
#include <yolo9/core/types.h>
#include <yolo9/data/augment.h>
#include <yolo9/data/fault_tally.h>
#include <yolo9/data/labels.h>
#include <yolo9/data/mosaic.h>

namespace yolo9 {

// Where pictures are kept at their loaded size once they have been read, so that they need not be decoded again.
enum class PictureKeeping { None, Memory, Disk };

struct DatasetOptions {
  int64_t image_size = 640;
  bool augment = false;
  AugmentOptions augmentation;  // only with augment
  // Pictures ordered by aspect in batches of batch_size, each batch of its own shape; without mosaics.
  bool rect = false;
  int64_t batch_size = 16;
  int64_t stride = 32;
  double pad = 0;  // strides added to a rectangular shape
  bool single_class = false;
  uint64_t seed = 0;
  PictureKeeping keep_pictures = PictureKeeping::None;
  int64_t keep_budget_bytes = std::numeric_limits<int64_t>::max();  // of all pictures that are kept
  std::string keep_folder;  // of files on disk, never among the data; empty: picture_cache_folder()
  // Of decoded pictures that mosaics are likely to need again soon; 0: none, and of each only what is seen is decoded.
  int64_t recent_budget_bytes = 256 << 20;
  bool through_canvas = false;  // the slow way to put samples together, step by step as the recipe says; for comparison
  int64_t min_items = 0;        // leaves out pictures with fewer objects
  bool strict = false;          // a row that would be dropped, or a picture skipped, is an error
  std::string scan_folder;      // keeps what the first look found, for the next time; empty: nowhere
  ScanProgress on_scan;         // told how far the first look is
};

struct Sample {
  torch::Tensor image;      // uint8 [3,H,W], RGB
  torch::Tensor labels;     // float32 [n,5]: class, centre x, centre y, width, height, normalised to this image
  std::string path;         // of the (first) picture
  LetterboxInfo letterbox;  // of a single picture; of a mosaic only the size of the sample
  int64_t index = 0;
};

// What the first look at the files found.
struct DatasetSummary {
  int64_t pictures = 0;    // used
  int64_t unusable = 0;    // pictures skipped: damaged, too small, without labels that can be read
  int64_t unlabelled = 0;  // without a label file
  int64_t empty = 0;       // with an empty one
  int64_t objects = 0;
  int64_t polygons = 0;            // of them, given as outlines
  int64_t dropped_rows = 0;        // of labels
  int64_t duplicates = 0;          // of these (in pictures that are used), those that were there twice
  int64_t misnamed = 0;            // pictures read as another format than their extension says
  int64_t left_out = 0;            // by min_items
  std::vector<FaultCount> faults;  // unusable and dropped_rows, by kind
};

class Dataset {
 public:
  // Looks at every file, and never writes to any. Pictures that cannot be used are skipped, rows that cannot be used
  // are dropped; both are counted by kind, with one warning each. Throws Error(Data) if a source does not exist, if
  // there is no picture, if none can be used, with `strict` if anything was skipped or dropped (naming the first with
  // file and line), or, when augmenting, that is, training, if no picture has labels or every row was dropped.
  Dataset(const std::vector<std::string>& sources, std::vector<std::string> names, DatasetOptions options);
  ~Dataset();
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;

  int64_t size() const;
  // A pure function of (options.seed, epoch, index, repeat), whatever thread asks; `repeat` tells apart the visits of
  // an index that comes up more than once in an epoch. `mosaic` false leaves mosaics (and what needs them) out. A
  // picture that cannot be decoded any more becomes a grey one without labels, and is named and counted.
  // With `planes`, the pixels go there: 3 x height x width bytes of sample_size(index), and Sample::image is a view of
  // it.
  Sample get(int64_t index, int64_t epoch = 0, bool mosaic = true, int64_t repeat = 0, uint8_t* planes = nullptr) const;

  const std::vector<std::string>& names() const;  // one, "item", for single_class with several names given
  const DatasetOptions& options() const;
  const DatasetSummary& summary() const;
  std::string describe() const;  // the summary in one line
  int64_t decode_failures() const;
  int64_t kept_bytes() const;            // that the cache of pictures takes, filled or not
  std::string describe_keeping() const;  // in one line; empty without a cache

  std::string path(int64_t index) const;
  PixelSize picture_size(int64_t index) const;        // of the file
  std::vector<LabelRow> labels(int64_t index) const;  // class 0 throughout for single_class
  int64_t label_count(int64_t index) const;           // how many those are, without copying them
  int64_t table_bytes() const;                        // memory held for paths, sizes and labels of all pictures
  std::vector<int64_t> class_counts() const;          // objects of each class
  PixelSize sample_size(int64_t index) const;         // image_size squared, or of its rectangular batch

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace yolo9
