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
};

// The batches of an epoch depend on the data set, the order and the epoch, never on the number of workers. The last
// batch may be short. An exception in a worker comes out of next(), at the batch it belongs to. Not to be shared
// between threads.
class Loader {
 public:
  // With a rectangular data set the batch sizes must agree, and whole batches are shuffled.
  Loader(std::shared_ptr<const Dataset> dataset, LoaderOptions options);
  ~Loader();  // stops the workers
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  const Dataset& dataset() const;
  const LoaderOptions& options() const;
  int64_t batches() const;  // of an epoch in its default order

  // Begins an epoch, at batch `first_batch` of it, leaving any epoch in progress. `order` replaces the default order
  // (for instance one drawn by weights); an index may come up in it more than once.
  void start(int64_t epoch, int64_t first_batch = 0, std::optional<std::vector<int64_t>> order = {},
             bool mosaic = true);
  // The next batch, or nothing at the end of the epoch.
  std::optional<Batch> next();
  // Ends the epoch in progress and its workers; harmless otherwise.
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace yolo9
