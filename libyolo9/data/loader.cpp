#include <yolo9/data/loader.h>

#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_map>

#include <yolo9/data/batch.h>
#include <yolo9/data/image.h>
#include <yolo9/data/sampling.h>

namespace yolo9 {
namespace {

// A batch in the making. Workers take single samples, so that even one batch keeps all of them busy.
struct Work {
  std::vector<Sample> samples;
  int64_t untaken = 0, unfinished = 0;
  bool ready = false;
  Batch batch;
  std::exception_ptr error;
};

}  // namespace

struct Loader::Impl {
  std::shared_ptr<const Dataset> dataset;
  LoaderOptions options;

  // Fixed during an epoch.
  std::vector<int64_t> order, repeats;  // repeats[i]: how often order[i] came up before
  int64_t epoch = 0, batch_count = 0;
  bool mosaic = true;

  std::mutex mutex;  // guards what follows
  std::condition_variable work_free, batch_ready;
  std::map<int64_t, Work> works;  // batch -> work, from next_batch on
  int64_t next_batch = 0;         // to be given to the caller
  int64_t next_taken = 0;         // the first batch that still has untaken samples
  bool stopping = false;
  std::vector<std::thread> threads;

  int64_t begin_of(int64_t batch) const { return batch * options.batch_size; }
  int64_t size_of(int64_t batch) const {
    return std::min(options.batch_size, static_cast<int64_t>(order.size()) - begin_of(batch));
  }
  Sample sample(int64_t position) const {
    const auto i = static_cast<size_t>(position);
    return dataset->get(order[i], epoch, mosaic, repeats[i]);
  }
  std::vector<int64_t> default_order() const;
  void count_repeats();
  void work();
  bool may_take() const { return next_taken < batch_count && next_taken <= next_batch + options.prefetch; }
  Batch make_batch(int64_t batch) const;
};

std::vector<int64_t> Loader::Impl::default_order() const {
  const int64_t count = dataset->size();
  std::vector<int64_t> sequence;
  if (!options.shuffle) {
    for (int64_t i = 0; i < count; ++i) sequence.push_back(i);
    return sequence;
  }
  if (!dataset->options().rect) return shuffled_order(count, options.seed, epoch);
  // Whole batches change places, because each has its own shape; the short one stays last.
  std::vector<int64_t> batches = shuffled_order(count / options.batch_size, options.seed, epoch);
  batches.push_back(count / options.batch_size);
  for (const int64_t batch : batches) {
    for (int64_t i = begin_of(batch); i < std::min(begin_of(batch + 1), count); ++i) sequence.push_back(i);
  }
  return sequence;
}

void Loader::Impl::count_repeats() {
  std::unordered_map<int64_t, int64_t> seen;
  repeats.clear();
  for (const int64_t index : order) {
    TORCH_CHECK(index >= 0 && index < dataset->size(), "[loader] index ", index, " of ", dataset->size());
    repeats.push_back(seen[index]++);
  }
}

Batch Loader::Impl::make_batch(int64_t batch) const {
  std::vector<Sample> samples;
  for (int64_t i = 0; i < size_of(batch); ++i) samples.push_back(sample(begin_of(batch) + i));
  return collate(samples);
}

void Loader::Impl::work() {
  std::unique_lock lock(mutex);
  while (true) {
    work_free.wait(lock, [this] { return stopping || may_take(); });
    if (stopping) return;
    const int64_t batch = next_taken;
    Work& mine = works[batch];  // stays in place: nobody else erases it before it is ready
    if (mine.samples.empty()) {
      mine.samples.resize(static_cast<size_t>(size_of(batch)));
      mine.untaken = mine.unfinished = size_of(batch);
    }
    const int64_t slot = size_of(batch) - mine.untaken;
    if (--mine.untaken == 0) ++next_taken;
    lock.unlock();

    std::exception_ptr error;
    Sample made;
    try {
      made = sample(begin_of(batch) + slot);
    } catch (...) {
      error = std::current_exception();
    }

    lock.lock();
    mine.samples[static_cast<size_t>(slot)] = std::move(made);
    if (error && !mine.error) mine.error = error;
    if (--mine.unfinished > 0) continue;
    if (!mine.error) {
      lock.unlock();  // the last one of a batch has it to itself
      try {
        mine.batch = collate(mine.samples);
      } catch (...) {
        mine.error = std::current_exception();
      }
      lock.lock();
    }
    mine.samples.clear();
    mine.ready = true;
    batch_ready.notify_one();
  }
}

Loader::Loader(std::shared_ptr<const Dataset> dataset, LoaderOptions options) : impl_(std::make_unique<Impl>()) {
  TORCH_CHECK(dataset, "[loader] no data set");
  TORCH_CHECK(options.batch_size > 0 && options.workers >= 0 && options.prefetch >= 0,
              "[loader] batch size must be positive, workers and prefetch not negative");
  TORCH_CHECK(!dataset->options().rect || dataset->options().batch_size == options.batch_size,
              "[loader] the rectangular data set has batches of ", dataset->options().batch_size, ", the loader of ",
              options.batch_size);
  use_one_opencv_thread();
  impl_->dataset = std::move(dataset);
  impl_->options = options;
}

Loader::~Loader() { stop(); }

const Dataset& Loader::dataset() const { return *impl_->dataset; }
const LoaderOptions& Loader::options() const { return impl_->options; }

int64_t Loader::batches() const {
  return (impl_->dataset->size() + impl_->options.batch_size - 1) / impl_->options.batch_size;
}

void Loader::start(int64_t epoch, int64_t first_batch, std::optional<std::vector<int64_t>> order, bool mosaic) {
  stop();
  Impl& self = *impl_;
  self.epoch = epoch;
  self.mosaic = mosaic;
  self.order = order ? std::move(*order) : self.default_order();
  self.count_repeats();
  const auto count = static_cast<int64_t>(self.order.size());
  self.batch_count = (count + self.options.batch_size - 1) / self.options.batch_size;
  TORCH_CHECK(first_batch >= 0 && first_batch <= self.batch_count, "[loader] first batch ", first_batch, " of ",
              self.batch_count);
  self.next_batch = self.next_taken = first_batch;
  for (int64_t i = 0; i < self.options.workers; ++i) self.threads.emplace_back([&self] { self.work(); });
}

std::optional<Batch> Loader::next() {
  Impl& self = *impl_;
  if (self.next_batch >= self.batch_count) {
    stop();
    return std::nullopt;
  }
  if (self.options.workers == 0) return self.make_batch(self.next_batch++);

  std::unique_lock lock(self.mutex);
  Work& work = self.works[self.next_batch];
  self.batch_ready.wait(lock, [&work] { return work.ready; });
  const std::exception_ptr error = work.error;
  Batch batch = std::move(work.batch);
  self.works.erase(self.next_batch++);
  lock.unlock();
  self.work_free.notify_all();
  if (error) {
    stop();
    std::rethrow_exception(error);
  }
  return batch;
}

void Loader::stop() {
  Impl& self = *impl_;
  {
    const std::lock_guard lock(self.mutex);
    self.stopping = true;
  }
  self.work_free.notify_all();
  for (std::thread& thread : self.threads) thread.join();
  self.threads.clear();
  self.works.clear();
  self.stopping = false;
  self.next_batch = self.batch_count = 0;
}

}  // namespace yolo9
