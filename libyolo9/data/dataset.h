// A data set: pictures with labels, and the way from one of them to a sample that a network can take.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <torch/types.h>
#include <yolo9/core/types.h>
#include <yolo9/data/augment.h>
#include <yolo9/data/labels.h>
#include <yolo9/data/mosaic.h>

namespace yolo9 {

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
  bool cache_in_memory = false;  // keeps every picture, at its loaded size, once it has been read
  int64_t min_items = 0;         // leaves out pictures with fewer objects
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
  int64_t unusable = 0;    // pictures skipped: damaged, too small, or labels outside the picture
  int64_t unlabelled = 0;  // without a label file
  int64_t empty = 0;       // with an empty one
  int64_t objects = 0;
  int64_t duplicates = 0;  // label rows dropped
  int64_t left_out = 0;    // by min_items
};

class Dataset {
 public:
  // Looks at every file. Damaged pictures, and those with coordinates outside the picture, are named, skipped and
  // counted. Throws Error(Data) if a source does not exist, if there is no picture, if a label row has a wrong class
  // index, a wrong number of values or something that is not a number (file, line and remedy in one line), or, when
  // augmenting, that is, training, if no picture has a label file.
  Dataset(const std::vector<std::string>& sources, std::vector<std::string> names, DatasetOptions options);
  ~Dataset();
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;

  int64_t size() const;
  // A pure function of (options.seed, epoch, index, repeat), whatever thread asks; `repeat` tells apart the visits of
  // an index that comes up more than once in an epoch. `mosaic` false leaves mosaics (and what needs them) out. A
  // picture that cannot be decoded any more becomes a grey one without labels, and is named and counted.
  Sample get(int64_t index, int64_t epoch = 0, bool mosaic = true, int64_t repeat = 0) const;

  const std::vector<std::string>& names() const;  // one, "item", for single_class with several names given
  const DatasetOptions& options() const;
  const DatasetSummary& summary() const;
  std::string describe() const;  // the summary in one line
  int64_t decode_failures() const;

  std::string path(int64_t index) const;
  PixelSize picture_size(int64_t index) const;        // of the file
  std::vector<LabelRow> labels(int64_t index) const;  // class 0 throughout for single_class
  std::vector<int64_t> class_counts() const;          // objects of each class
  PixelSize sample_size(int64_t index) const;         // image_size squared, or of its rectangular batch

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace yolo9
