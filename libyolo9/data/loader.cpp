#include <yolo9/data/loader.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_map>

#include <yolo9/data/batch.h>
#include <yolo9/data/image.h>
#include <yolo9/data/quad.h>
#include <yolo9/data/sampling.h>

namespace yolo9 {
namespace {

// What an epoch consists of; never changed once it has begun.
struct Epoch {
  int64_t number = 0;
  bool mosaic = true;
  std::vector<int64_t> order, repeats;  // repeats[i]: how often order[i] came up before
  int64_t batch_size = 1;

  int64_t count() const { return static_cast<int64_t>(order.size()); }
  int64_t batches() const { return (count() + batch_size - 1) / batch_size; }
  int64_t begin_of(int64_t batch) const { return batch * batch_size; }
  int64_t size_of(int64_t batch) const { return std::min(batch_size, count() - begin_of(batch)); }
};

// A batch in the making. Workers take single samples, so that even one batch keeps all of them busy. An abandoned one
// lives on until the last worker lets go of it.
class Work {
 public:
  Work(const Dataset& dataset, const LoaderOptions& options, BatchMemory& memory, std::shared_ptr<const Epoch> epoch,
       int64_t batch);

  // Thread-safe, each piece once, but for the calls of finish().
  size_t pieces() const { return needed_.size(); }
  void make(size_t piece);
  Batch finish();  // after all pieces

  // Guarded by the loader's mutex.
  size_t taken = 0, made = 0;
  bool ready = false;
  Batch result;
  std::exception_ptr error;
  size_t error_piece = 0;

 private:
  void prepare();

  const Dataset& dataset_;
  BatchMemory& memory_;
  const std::shared_ptr<const Epoch> epoch_;
  const int64_t begin_;
  std::vector<Sample> samples_;
  std::vector<int64_t> needed_;        // of the samples
  std::vector<QuadPicture> pictures_;  // empty unless quad
  std::once_flag prepared_;
  PixelSize sample_size_;
  torch::Tensor images_;
};

Work::Work(const Dataset& dataset, const LoaderOptions& options, BatchMemory& memory,
           std::shared_ptr<const Epoch> epoch, int64_t batch)
    : dataset_(dataset),
      memory_(memory),
      epoch_(std::move(epoch)),
      begin_(epoch_->begin_of(batch)),
      samples_(static_cast<size_t>(epoch_->size_of(batch))) {
  const auto count = static_cast<int64_t>(samples_.size());
  if (!options.quad) {
    for (int64_t i = 0; i < count; ++i) needed_.push_back(i);
    return;
  }
  pictures_ = plan_quads(count, options.seed, epoch_->number, batch);
  for (const QuadPicture& picture : pictures_) {
    for (int64_t k = 0; k < (picture.enlarged ? 1 : 4); ++k) needed_.push_back(picture.first + k);
  }
}

// The memory of the whole batch, by whoever comes first.
void Work::prepare() {
  sample_size_ = dataset_.sample_size(epoch_->order[static_cast<size_t>(begin_)]);
  const int64_t factor = pictures_.empty() ? 1 : 2;
  const auto count = static_cast<int64_t>(pictures_.empty() ? samples_.size() : pictures_.size());
  images_ = memory_.take({count, 3, factor * sample_size_.height, factor * sample_size_.width});
}

void Work::make(size_t piece) {
  std::call_once(prepared_, [this] { prepare(); });
  const int64_t slot = needed_[piece];
  const auto i = static_cast<size_t>(begin_ + slot);
  const int64_t index = epoch_->order[i];
  const PixelSize size = dataset_.sample_size(index);
  TORCH_CHECK(size.height == sample_size_.height && size.width == sample_size_.width,
              "[loader] samples of different size in a batch: ", size.height, " x ", size.width, " and ",
              sample_size_.height, " x ", sample_size_.width);
  Sample& sample = samples_[static_cast<size_t>(slot)];
  // The pictures that quads are put together from have memory of their own.
  uint8_t* place = pictures_.empty() ? images_.data_ptr<uint8_t>() + slot * 3 * size.height * size.width : nullptr;
  sample = dataset_.get(index, epoch_->number, epoch_->mosaic, epoch_->repeats[i], place);
  if (place) sample.image.reset();  // a view of what the batch owns
}

Batch Work::finish() {
  return pictures_.empty() ? collate_into(std::move(images_), samples_)
                           : collate_quads(std::move(images_), samples_, pictures_);
}

}  // namespace

struct Loader::Impl {
  std::shared_ptr<const Dataset> dataset;
  LoaderOptions options;
  BatchMemory memory;

  std::mutex mutex;  // guards what follows
  std::condition_variable work_free, batch_ready;
  std::shared_ptr<const Epoch> epoch;              // null: none in progress
  std::map<int64_t, std::shared_ptr<Work>> works;  // batch -> work, from next_batch on
  int64_t next_batch = 0;                          // to be given to the caller
  int64_t next_taken = 0;                          // the first batch that still has pieces to be taken
  bool quitting = false;
  std::vector<std::thread> threads;

  Impl(std::shared_ptr<const Dataset> set, const LoaderOptions& chosen)
      : dataset(std::move(set)),
        options(chosen),
        // One in use, one that the caller may still hold, and those ahead.
        memory(static_cast<size_t>(chosen.prefetch) + 3, chosen.pin_memory) {}

  std::vector<int64_t> default_order(int64_t epoch_number) const;
  std::vector<int64_t> count_repeats(const std::vector<int64_t>& order) const;
  std::shared_ptr<Work> new_work(int64_t batch) {
    return std::make_shared<Work>(*dataset, options, memory, epoch, batch);
  }
  bool may_take() const {
    return epoch && next_taken < epoch->batches() && next_taken <= next_batch + options.prefetch;
  }
  void work();
  Batch make_here(int64_t batch);
  Batch wait_for(int64_t batch);
};

std::vector<int64_t> Loader::Impl::default_order(int64_t epoch_number) const {
  const int64_t count = dataset->size(), batch_size = options.batch_size;
  std::vector<int64_t> sequence;
  if (!options.shuffle) {
    for (int64_t i = 0; i < count; ++i) sequence.push_back(i);
    return sequence;
  }
  if (!dataset->options().rect) return shuffled_order(count, options.seed, epoch_number);
  // Whole batches change places, because each has its own shape; the short one stays last.
  std::vector<int64_t> batches = shuffled_order(count / batch_size, options.seed, epoch_number);
  batches.push_back(count / batch_size);
  for (const int64_t batch : batches) {
    for (int64_t i = batch * batch_size; i < std::min((batch + 1) * batch_size, count); ++i) sequence.push_back(i);
  }
  return sequence;
}

std::vector<int64_t> Loader::Impl::count_repeats(const std::vector<int64_t>& order) const {
  std::unordered_map<int64_t, int64_t> seen;
  std::vector<int64_t> repeats;
  for (const int64_t index : order) {
    TORCH_CHECK(index >= 0 && index < dataset->size(), "[loader] index ", index, " of ", dataset->size());
    repeats.push_back(seen[index]++);
  }
  return repeats;
}

void Loader::Impl::work() {
  std::unique_lock lock(mutex);
  while (true) {
    work_free.wait(lock, [this] { return quitting || may_take(); });
    if (quitting) return;
    std::shared_ptr<Work>& place = works[next_taken];
    if (!place) place = new_work(next_taken);
    const std::shared_ptr<Work> mine = place;
    const size_t piece = mine->taken++;
    if (mine->taken == mine->pieces()) ++next_taken;
    lock.unlock();

    std::exception_ptr error;
    try {
      mine->make(piece);
    } catch (...) {
      error = std::current_exception();
    }

    lock.lock();
    // The first one in the batch's order, whoever came first: the same for any number of workers.
    if (error && (!mine->error || piece < mine->error_piece)) {
      mine->error = error;
      mine->error_piece = piece;
    }
    if (++mine->made < mine->pieces()) continue;
    if (!mine->error) {
      lock.unlock();  // the last one of a batch has it to itself
      try {
        mine->result = mine->finish();
      } catch (...) {
        mine->error = std::current_exception();
      }
      lock.lock();
    }
    mine->ready = true;
    batch_ready.notify_one();
  }
}

Batch Loader::Impl::make_here(int64_t batch) {
  const std::shared_ptr<Work> work = new_work(batch);
  for (size_t piece = 0; piece < work->pieces(); ++piece) work->make(piece);
  return work->finish();
}

Batch Loader::Impl::wait_for(int64_t batch) {
  std::unique_lock lock(mutex);
  std::shared_ptr<Work>& place = works[batch];
  if (!place) place = new_work(batch);  // no worker has come to it yet
  const std::shared_ptr<Work> work = place;
  batch_ready.wait(lock, [&work] { return work->ready; });
  works.erase(batch);
  lock.unlock();
  if (work->error) std::rethrow_exception(work->error);
  return std::move(work->result);
}

Loader::Loader(std::shared_ptr<const Dataset> dataset, LoaderOptions options) {
  TORCH_CHECK(dataset, "[loader] no data set");
  TORCH_CHECK(options.batch_size > 0 && options.workers >= 0 && options.prefetch >= 0,
              "[loader] batch size must be positive, workers and prefetch not negative");
  // A set that is one batch for both is the same batch.
  const int64_t rect_batch = dataset->options().rect ? dataset->options().batch_size : options.batch_size;
  TORCH_CHECK(rect_batch == options.batch_size || dataset->size() <= std::min(rect_batch, options.batch_size),
              "[loader] the rectangular data set has batches of ", rect_batch, ", the loader of ", options.batch_size);
  TORCH_CHECK(!options.quad || (options.batch_size % 4 == 0 && !dataset->options().rect),
              "[loader] quads need a batch of a multiple of 4 and no rectangular data set");
  use_one_opencv_thread();
  impl_ = std::make_unique<Impl>(std::move(dataset), options);
}

Loader::~Loader() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->quitting = true;
  }
  impl_->work_free.notify_all();
  for (std::thread& thread : impl_->threads) thread.join();
}

const Dataset& Loader::dataset() const { return *impl_->dataset; }
const LoaderOptions& Loader::options() const { return impl_->options; }

int64_t Loader::batches() const {
  return (impl_->dataset->size() + impl_->options.batch_size - 1) / impl_->options.batch_size;
}

void Loader::start(int64_t epoch, int64_t first_batch, std::optional<std::vector<int64_t>> order, bool mosaic) {
  stop();
  Impl& self = *impl_;
  auto next = std::make_shared<Epoch>();
  next->number = epoch;
  next->mosaic = mosaic;
  next->batch_size = self.options.batch_size;
  next->order = order ? std::move(*order) : self.default_order(epoch);
  next->repeats = self.count_repeats(next->order);
  TORCH_CHECK(first_batch >= 0 && first_batch <= next->batches(), "[loader] first batch ", first_batch, " of ",
              next->batches());
  {
    const std::lock_guard lock(self.mutex);
    self.epoch = std::move(next);
    self.next_batch = self.next_taken = first_batch;
  }
  while (static_cast<int64_t>(self.threads.size()) < self.options.workers) {
    self.threads.emplace_back([&self] { self.work(); });
  }
  self.work_free.notify_all();
}

std::optional<Batch> Loader::next() {
  Impl& self = *impl_;
  // Only this thread changes the epoch and next_batch, so they can be read without the lock.
  if (!self.epoch || self.next_batch >= self.epoch->batches()) {
    stop();
    return std::nullopt;
  }
  try {
    Batch batch = self.options.workers == 0 ? self.make_here(self.next_batch) : self.wait_for(self.next_batch);
    {
      const std::lock_guard lock(self.mutex);
      ++self.next_batch;
    }
    self.work_free.notify_all();
    return batch;
  } catch (...) {
    stop();
    throw;
  }
}

void Loader::stop() {
  Impl& self = *impl_;
  std::map<int64_t, std::shared_ptr<Work>> left;  // freed without the lock
  const std::lock_guard lock(self.mutex);
  self.epoch = nullptr;
  left.swap(self.works);
  self.next_batch = self.next_taken = 0;
  // Between epochs the memory is somebody else's.
  self.memory.release();
}

}  // namespace yolo9
