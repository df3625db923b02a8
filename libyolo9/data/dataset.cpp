#include <yolo9/data/dataset.h>

#include <algorithm>

#include <yolo9/core/error.h>
#include <yolo9/core/log.h>
#include <yolo9/data/image.h>
#include <yolo9/data/item_table.h>
#include <yolo9/data/picture_cache.h>
#include <yolo9/data/rect.h>
#include <yolo9/data/sample_maker.h>
#include <yolo9/data/scan.h>
#include <yolo9/data/sources.h>

namespace yolo9 {
namespace {

// Coordinates outside the picture spoil one picture, as in the trainers that these data sets come from; every other
// fault means that the files are not what they should be.
bool spoils_one_picture(const LabelFault& fault) { return fault.kind == LabelFaultKind::OutsidePicture; }

void warn_skipped(const std::vector<std::string>& skipped) {
  constexpr size_t kMostLines = 20;
  for (size_t i = 0; i < std::min(skipped.size(), kMostLines); ++i) log_warn("skipped " + skipped[i]);
  if (skipped.size() > kMostLines) {
    log_warn("skipped " + std::to_string(skipped.size() - kMostLines) + " more pictures; yolo9-data check lists them");
  }
}

void refuse_label_faults(const std::vector<ScannedImage>& scanned) {
  int64_t count = 0;
  std::string what, place;
  for (const ScannedImage& image : scanned) {
    if (!image.fault.empty()) continue;
    for (const LabelFault& fault : image.labels.faults) {
      if (!is_error(fault.kind) || spoils_one_picture(fault)) continue;
      if (count++ > 0) continue;
      what = fault.text;
      place = image.label_path + (fault.line > 0 ? ":" + std::to_string(fault.line) : "");
    }
  }
  if (count == 0) return;
  const std::string more = count > 1 ? " (one of " + std::to_string(count) + " faulty rows)" : "";
  throw Error(ErrorKind::Data, what + more, place, "mend the row; yolo9-data check lists every fault");
}

}  // namespace

struct Dataset::Impl {
  DatasetOptions options;
  std::vector<std::string> names;
  ItemTable items;
  std::vector<PixelSize> rect_shapes;  // one a batch; empty unless rect
  DatasetSummary summary;
  std::unique_ptr<PictureCache> cache;
  std::unique_ptr<SampleMaker> maker;

  void take(std::vector<ScannedImage> scanned);
  void order_by_aspect();
  std::vector<PixelSize> loaded_sizes() const;
};

void Dataset::Impl::take(std::vector<ScannedImage> scanned) {
  refuse_label_faults(scanned);
  std::vector<std::string> skipped;
  for (ScannedImage& image : scanned) {
    const LabelFault* fault = image.labels.first_error();
    if (!image.fault.empty()) {
      skipped.push_back(image.path + ": " + image.fault);
    } else if (fault) {
      skipped.push_back(image.path + ": " + image.label_path + ":" + std::to_string(fault->line) + ": " + fault->text);
    } else if (static_cast<int64_t>(image.labels.rows.size()) < options.min_items) {
      ++summary.left_out;
    } else {
      summary.unlabelled += image.has_label_file ? 0 : 1;
      summary.empty += image.is_empty() ? 1 : 0;
      summary.objects += static_cast<int64_t>(image.labels.rows.size());
      summary.duplicates += image.labels.duplicates;
      if (options.single_class) {
        for (LabelRow& row : image.labels.rows) row.class_index = 0;
      }
      items.add({image.path, {image.height, image.width}, std::move(image.labels.rows)});
    }
  }
  warn_skipped(skipped);
  summary.unusable = static_cast<int64_t>(skipped.size());
  summary.pictures = items.size();
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

Dataset::Dataset(const std::vector<std::string>& sources, std::vector<std::string> names, DatasetOptions options)
    : impl_(std::make_unique<Impl>()) {
  TORCH_CHECK(options.image_size > 0 && options.batch_size > 0 && options.stride > 0,
              "[dataset] sizes must be positive");
  TORCH_CHECK(options.image_size % 2 == 0, "[dataset] image size ", options.image_size, " is odd");
  use_one_opencv_thread();
  impl_->options = options;
  const std::vector<std::string> paths = find_images(sources);
  std::vector<ScannedImage> scanned = scan_images(paths, static_cast<int64_t>(names.size()));
  const bool any_labels = std::any_of(scanned.begin(), scanned.end(), [](const auto& i) { return i.has_label_file; });
  const std::string first_label = scanned.front().label_path;
  impl_->names = options.single_class && names.size() > 1 ? std::vector<std::string>{"item"} : std::move(names);
  impl_->take(std::move(scanned));
  if (impl_->items.size() == 0) {
    throw Error(ErrorKind::Data, "none of the " + std::to_string(paths.size()) + " pictures can be used",
                sources.front());
  }
  if (options.augment && !any_labels) {
    throw Error(ErrorKind::Data, "no picture has a label file, so there is nothing to learn", sources.front(),
                "labels are looked for in a folder labels beside images, such as " + first_label);
  }
  if (options.rect) impl_->order_by_aspect();
  if (options.cache_in_memory) impl_->cache = make_memory_cache(impl_->loaded_sizes());
  impl_->maker = std::make_unique<SampleMaker>(impl_->options, impl_->items, impl_->rect_shapes, impl_->cache.get());
}

Dataset::~Dataset() = default;

int64_t Dataset::size() const { return impl_->items.size(); }

Sample Dataset::get(int64_t index, int64_t epoch, bool mosaic, int64_t repeat) const {
  return impl_->maker->make(index, epoch, mosaic, repeat);
}

const std::vector<std::string>& Dataset::names() const { return impl_->names; }
const DatasetOptions& Dataset::options() const { return impl_->options; }
const DatasetSummary& Dataset::summary() const { return impl_->summary; }
int64_t Dataset::decode_failures() const { return impl_->maker->decode_failures(); }
std::string Dataset::path(int64_t index) const { return impl_->items.path(index); }
PixelSize Dataset::picture_size(int64_t index) const { return impl_->items.picture_size(index); }
std::vector<LabelRow> Dataset::labels(int64_t index) const { return impl_->items.labels(index); }
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
  add(s.duplicates, "duplicate rows dropped");
  add(s.left_out, "with too few objects left out");
  return text;
}

std::vector<int64_t> Dataset::class_counts() const {
  std::vector<int64_t> counts(impl_->names.size(), 0);
  for (int64_t i = 0; i < size(); ++i) {
    for (const LabelRow& row : impl_->items.labels(i)) ++counts.at(static_cast<size_t>(row.class_index));
  }
  return counts;
}

}  // namespace yolo9
