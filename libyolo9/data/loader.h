// Batches of a data set in order, made ahead of time by worker threads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <yolo9/core/types.h>
#include <yolo9/data/dataset.h>

namespace yolo9 {

struct LoaderOptions {
  int64_t batch_size = 16;
  int64_t workers = 4;  // 0: batches are made by the caller of next()
  bool shuffle = false;
  uint64_t seed = 0;     // of the order
  int64_t prefetch = 4;  // batches that may be ready or in work beyond the one being used
  // Groups of four samples become one picture of twice the side (see quad.h); the batch size is a multiple of 4.
  bool quad = false;
  bool pin_memory = false;  // pictures in page-locked memory, from which a CUDA device copies by itself
};

// The batches of an epoch depend on the data set, the order and the epoch, never on the number of workers. The last
// batch may be short. An exception in a worker comes out of next(), at the batch it belongs to. Not to be shared
// between threads. The workers begin with the first epoch and wait between epochs until the loader goes.
class Loader {
 public:
  // With a rectangular data set the batch sizes must agree, and whole batches are shuffled.
  Loader(std::shared_ptr<const Dataset> dataset, LoaderOptions options);
  ~Loader();  // waits for the workers, at most for the samples in their hands
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  const Dataset& dataset() const;
  const LoaderOptions& options() const;
  int64_t batches() const;  // of an epoch in its default order

  // Begins an epoch, at batch `first_batch` of it, leaving any epoch in progress without waiting for it: nothing of it
  // is given out any more. `order` replaces the default order
  // (for instance one drawn by weights); an index may come up in it more than once.
  void start(int64_t epoch, int64_t first_batch = 0, std::optional<std::vector<int64_t>> order = {},
             bool mosaic = true);
  // The next batch, or nothing at the end of the epoch.
  std::optional<Batch> next();
  // Leaves the epoch in progress; harmless otherwise. The workers stay.
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace yolo9
