#include <yolo9/data/dataset.h>

#include <algorithm>
#include <filesystem>

#include <sys/stat.h>
#include <yolo9/core/digest.h>

#include <yolo9/core/error.h>
#include <yolo9/core/log.h>
#include <yolo9/data/annotations.h>
#include <yolo9/data/image.h>
#include <yolo9/data/item_table.h>
#include <yolo9/data/picture_cache.h>
#include <yolo9/data/rect.h>
#include <yolo9/data/sample_maker.h>
#include <yolo9/data/scan_cache.h>

namespace yolo9 {
namespace {

// What every picture adds to the set.
struct Intake {
  FaultTally faults;
  bool any_labels = false;
  int64_t good_rows = 0;
  std::string first_label;  // where labels are looked for, in an example
  std::string misnamed;     // the first
};

}  // namespace

struct Dataset::Impl {
  DatasetOptions options;
  std::vector<std::string> names;
  ItemTable items;
  std::vector<PixelSize> rect_shapes;  // one a batch; empty unless rect
  DatasetSummary summary;
  std::unique_ptr<PictureCache> cache;
  std::unique_ptr<SampleMaker> maker;

  void take(ScannedImage&& image, Intake& intake);
  void finish_intake(const Intake& intake, const std::string& source, int64_t found);
  void order_by_aspect();
  std::vector<PixelSize> loaded_sizes() const;
  void make_cache(const std::vector<std::string>& sources);
};

void Dataset::Impl::take(ScannedImage&& image, Intake& intake) {
  if (intake.first_label.empty()) intake.first_label = image.label_path;
  intake.any_labels = intake.any_labels || image.has_label_file;
  if (!intake.faults.add(image)) return;
  intake.good_rows += std::ssize(image.labels.rows);
  if (image.is_misnamed()) {
    if (summary.misnamed++ == 0) intake.misnamed = image.path + " (" + to_string(image.format) + ")";
  }
  if (std::ssize(image.labels.rows) < options.min_items) {
    ++summary.left_out;
    return;
  }
  summary.unlabelled += image.has_label_file ? 0 : 1;
  summary.empty += image.is_empty() ? 1 : 0;
  summary.objects += std::ssize(image.labels.rows);
  for (const LabelRow& row : image.labels.rows) summary.polygons += row.polygon.empty() ? 0 : 1;
  summary.duplicates += image.labels.count(LabelFaultKind::Duplicate);
  if (options.single_class) {
    for (LabelRow& row : image.labels.rows) row.class_index = 0;
  }
  items.add({std::move(image.path), {image.height, image.width}, std::move(image.labels.rows)});
}

// Says what was left out, and refuses what there is nothing to learn from. `found`: pictures, good or bad.
void Dataset::Impl::finish_intake(const Intake& intake, const std::string& source, int64_t found) {
  if (options.strict) intake.faults.refuse();
  intake.faults.warn();
  if (summary.misnamed > 0) {
    log_info(std::to_string(summary.misnamed) + " pictures are of another format than their names say, the first " +
             intake.misnamed + "; that does no harm");
  }
  summary.pictures = items.size();
  summary.unusable = intake.faults.pictures();
  summary.dropped_rows = intake.faults.rows();
  summary.faults = intake.faults.counts();
  if (items.size() == 0 && summary.left_out == 0) {
    throw Error(ErrorKind::Data,
                "none of the " + std::to_string(found) + " pictures can be used (" + intake.faults.describe() + ")",
                source, "the first: " + summary.faults.front().place + ": " + summary.faults.front().text);
  }
  if (items.size() == 0) {
    throw Error(ErrorKind::Data, "no picture has " + std::to_string(options.min_items) + " objects or more", source,
                "ask for fewer (min-items)");
  }
  if (!options.augment) return;
  if (!intake.any_labels) {
    throw Error(ErrorKind::Data, "no picture has a label file, so there is nothing to learn", source,
                "labels are looked for in a folder labels beside images, such as " + intake.first_label);
  }
  const FaultCount* row = intake.faults.first_row();
  if (intake.good_rows == 0 && row) {
    throw Error(ErrorKind::Data,
                "every labelled row was dropped, so there is nothing to learn; the first: " + row->text, row->place,
                "mend the rows; yolo9-data check lists every fault");
  }
}

void Dataset::Impl::order_by_aspect() {
  std::vector<PixelSize> sizes, ordered_sizes;
  for (int64_t i = 0; i < items.size(); ++i) sizes.push_back(items.picture_size(i));
  const std::vector<int64_t> order = rect_order(sizes);
  items.reorder(order);
  for (const int64_t position : order) ordered_sizes.push_back(sizes[static_cast<size_t>(position)]);
  rect_shapes = yolo9::rect_shapes(ordered_sizes, options.batch_size, options.image_size, options.stride, options.pad);
}

std::vector<PixelSize> Dataset::Impl::loaded_sizes() const {
  std::vector<PixelSize> sizes;
  for (int64_t i = 0; i < items.size(); ++i) {
    const PixelSize size = items.picture_size(i);
    const ResizeRule rule = resize_rule(size.height, size.width, options.image_size, options.augment);
    sizes.push_back({rule.height, rule.width});
  }
  return sizes;
}

// A file on disk is named after what was asked for, and used again while the pictures are the same.
void Dataset::Impl::make_cache(const std::vector<std::string>& sources) {
  if (options.keep_pictures == PictureKeeping::None) return;
  if (options.keep_pictures == PictureKeeping::Memory) {
    cache = make_memory_cache(loaded_sizes(), options.keep_budget_bytes);
    return;
  }
  Digest name, contents;
  for (const std::string& source : sources) name.add(std::filesystem::absolute(source).string());
  for (const int64_t number : {options.image_size, int64_t{options.augment}, int64_t{options.rect}}) {
    name.add_number(number);
  }
  for (int64_t i = 0; i < items.size(); ++i) {
    const std::string path = items.path(i);
    contents.add(path);
    struct stat status {};  // stays empty for a file that has just gone: its reading will say so
    ::stat(path.c_str(), &status);
    // The time of the last change of the file's own record cannot be set back.
    for (const int64_t number :
         {static_cast<int64_t>(status.st_size), static_cast<int64_t>(status.st_ino),
          static_cast<int64_t>(status.st_mtim.tv_sec), static_cast<int64_t>(status.st_mtim.tv_nsec),
          static_cast<int64_t>(status.st_ctim.tv_sec), static_cast<int64_t>(status.st_ctim.tv_nsec)}) {
      contents.add_number(number);
    }
  }
  const std::string folder = options.keep_folder.empty() ? picture_cache_folder() : options.keep_folder;
  cache =
      make_disk_cache(folder + "/" + name.hex() + ".raw", loaded_sizes(), contents.hex(), options.keep_budget_bytes);
}

Dataset::Dataset(const std::vector<std::string>& sources, std::vector<std::string> names, DatasetOptions options)
    : impl_(std::make_unique<Impl>()) {
  TORCH_CHECK(options.image_size > 0 && options.batch_size > 0 && options.stride > 0,
              "[dataset] sizes must be positive");
  TORCH_CHECK(options.image_size % 2 == 0, "[dataset] image size ", options.image_size, " is odd");
  use_one_opencv_thread();
  impl_->options = options;
  const Annotations annotations(sources, names);
  const ScanCachePlace place = scan_cache_place(options.scan_folder, sources, names);
  impl_->names = options.single_class && names.size() > 1 ? std::vector<std::string>{"item"} : std::move(names);
  Intake intake;
  for (const SourceFaults& source : annotations.faults()) intake.faults.add(source);
  const ScanReport report = for_each_scanned(
      annotations, [&](int64_t, ScannedImage&& image) { impl_->take(std::move(image), intake); }, options.on_scan,
      place);
  log_info("scan: " + report.describe());
  impl_->options.on_scan = {};  // what it refers to need not live on
  impl_->finish_intake(intake, sources.front(), annotations.size());
  AugmentOptions& augmentation = impl_->options.augmentation;
  if (options.augment && !options.rect && augmentation.copy_paste > 0 && impl_->summary.polygons == 0) {
    augmentation.copy_paste = 0;
    log_info("copy-paste is left off: none of the labels is a polygon");
  }
  if (options.rect) impl_->order_by_aspect();
  impl_->make_cache(sources);
  impl_->maker = std::make_unique<SampleMaker>(impl_->options, impl_->items, impl_->rect_shapes, impl_->cache.get());
}

Dataset::~Dataset() = default;

int64_t Dataset::size() const { return impl_->items.size(); }

Sample Dataset::get(int64_t index, int64_t epoch, bool mosaic, int64_t repeat, uint8_t* planes) const {
  return impl_->maker->make(index, epoch, mosaic, repeat, planes);
}

const std::vector<std::string>& Dataset::names() const { return impl_->names; }
const DatasetOptions& Dataset::options() const { return impl_->options; }
const DatasetSummary& Dataset::summary() const { return impl_->summary; }
int64_t Dataset::kept_bytes() const { return impl_->cache ? impl_->cache->bytes() : 0; }
std::string Dataset::describe_keeping() const { return impl_->cache ? impl_->cache->describe() : ""; }
int64_t Dataset::decode_failures() const { return impl_->maker->decode_failures(); }
std::string Dataset::path(int64_t index) const { return impl_->items.path(index); }
PixelSize Dataset::picture_size(int64_t index) const { return impl_->items.picture_size(index); }
std::vector<LabelRow> Dataset::labels(int64_t index) const { return impl_->items.labels(index); }
int64_t Dataset::label_count(int64_t index) const { return impl_->items.label_count(index); }
int64_t Dataset::table_bytes() const { return impl_->items.bytes(); }
PixelSize Dataset::sample_size(int64_t index) const { return impl_->maker->sample_size(index); }

std::string Dataset::describe() const {
  const DatasetSummary& s = impl_->summary;
  std::string text = std::to_string(s.pictures) + " pictures, " + std::to_string(s.objects) + " objects";
  const auto add = [&text](int64_t count, const char* what) {
    if (count > 0) text += ", " + std::to_string(count) + " " + what;
  };
  add(s.unlabelled, "without label file");
  add(s.empty, "with an empty one");
  add(s.unusable, "skipped");
  add(s.dropped_rows, "rows dropped");
  add(s.left_out, "with too few objects left out");
  return text;
}

std::vector<int64_t> Dataset::class_counts() const { return impl_->items.class_counts(std::ssize(impl_->names)); }

}  // namespace yolo9
