#include <yolo9/data/dataset.h>

#include <array>
#include <atomic>
#include <mutex>

#include <opencv2/core.hpp>
#include <yolo9/core/error.h>
#include <yolo9/core/log.h>
#include <yolo9/data/image.h>
#include <yolo9/data/rect.h>
#include <yolo9/data/scan.h>
#include <yolo9/data/sources.h>

namespace yolo9 {
namespace {

struct Item {
  std::string path;
  PixelSize size;
  std::vector<LabelRow> labels;
};

// A picture on its way to becoming a sample.
struct Scene {
  cv::Mat image;
  Objects objects;
};

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
  std::vector<Item> items;
  std::vector<PixelSize> rect_shapes;  // one a batch; empty unless rect
  DatasetSummary summary;
  mutable std::atomic<int64_t> decode_failures{0};

  // Filled as pictures are asked for; a lock guards every kLocks-th entry.
  static constexpr size_t kLocks = 61;
  mutable std::vector<cv::Mat> cache;
  mutable std::array<std::mutex, kLocks> locks;

  const Item& item(int64_t index) const {
    TORCH_CHECK(index >= 0 && index < static_cast<int64_t>(items.size()), "[dataset] index ", index, " of ",
                items.size());
    return items[static_cast<size_t>(index)];
  }

  void take(std::vector<ScannedImage> scanned);
  void order_by_aspect();

  cv::Mat read_resized(int64_t index) const;
  cv::Mat load(int64_t index) const;
  Scene single(int64_t index, Random& random, LetterboxInfo& info) const;
  Scene mosaic(int64_t index, Random& random) const;
  PixelSize sample_size(int64_t index) const;
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
      items.push_back({image.path, {image.height, image.width}, std::move(image.labels.rows)});
    }
  }
  warn_skipped(skipped);
  summary.unusable = static_cast<int64_t>(skipped.size());
  summary.pictures = static_cast<int64_t>(items.size());
  if (options.single_class) {
    for (Item& i : items) {
      for (LabelRow& row : i.labels) row.class_index = 0;
    }
  }
}

void Dataset::Impl::order_by_aspect() {
  std::vector<PixelSize> sizes;
  for (const Item& i : items) sizes.push_back(i.size);
  std::vector<Item> ordered;
  std::vector<PixelSize> ordered_sizes;
  for (const int64_t position : rect_order(sizes)) {
    ordered.push_back(std::move(items[static_cast<size_t>(position)]));
    ordered_sizes.push_back(sizes[static_cast<size_t>(position)]);
  }
  items = std::move(ordered);
  rect_shapes = yolo9::rect_shapes(ordered_sizes, options.batch_size, options.image_size, options.stride, options.pad);
}

PixelSize Dataset::Impl::sample_size(int64_t index) const {
  if (rect_shapes.empty()) return {options.image_size, options.image_size};
  return rect_shapes.at(static_cast<size_t>(index / options.batch_size));
}

// Empty if the picture cannot be decoded.
cv::Mat Dataset::Impl::read_resized(int64_t index) const {
  const Item& i = item(index);
  try {
    return resize_longest_side(read_image(i.path), options.image_size, options.augment);
  } catch (const Error& error) {
    ++decode_failures;
    log_warn_once(i.path, std::string(error.what()) + "; a grey picture takes its place");
    return {};
  }
}

// The picture at its loaded size, to be read only. Empty if it cannot be decoded.
cv::Mat Dataset::Impl::load(int64_t index) const {
  if (!options.cache_in_memory) return read_resized(index);
  const auto position = static_cast<size_t>(index);
  const std::lock_guard lock(locks[position % kLocks]);
  if (cache[position].empty()) cache[position] = read_resized(index);
  return cache[position];
}

Scene Dataset::Impl::single(int64_t index, Random& random, LetterboxInfo& info) const {
  const Item& i = item(index);
  cv::Mat image = load(index);
  const bool decoded = !image.empty();
  if (!decoded) {
    const ResizeRule rule = resize_rule(i.size.height, i.size.width, options.image_size, options.augment);
    image = cv::Mat(static_cast<int>(rule.height), static_cast<int>(rule.width), CV_8UC3,
                    cv::Scalar(kFillGrey, kFillGrey, kFillGrey));
  }
  const PixelSize shape = sample_size(index);
  LetterboxOptions box;
  box.height = shape.height;
  box.width = shape.width;
  box.enlarge = options.augment;
  LetterboxGeometry g;
  Scene scene{letterbox(image, box, &g), {}};
  const double height = g.ratio_height * image.rows, width = g.ratio_width * image.cols;
  info = {i.size.height,
          i.size.width,
          height / static_cast<double>(i.size.height),
          width / static_cast<double>(i.size.width),
          g.pad_width,
          g.pad_height};
  if (decoded) {
    for (const LabelRow& row : i.labels) {
      scene.objects.push_back({row.class_index, denormalise(center_box(row), width, height, g.pad_width, g.pad_height),
                               denormalise(polygon_points(row), width, height, g.pad_width, g.pad_height)});
    }
  }
  if (options.augment) {
    const PerspectiveDraws draws = draw_perspective(options.augmentation, random);
    apply_perspective(scene.image, scene.objects, draws, options.augmentation.perspective != 0, {});
  }
  return scene;
}

Scene Dataset::Impl::mosaic(int64_t index, Random& random) const {
  const AugmentOptions& augmentation = options.augmentation;
  const int64_t size = options.image_size;
  const bool nine = augmentation.mosaic9 > 0 && random.uniform() < augmentation.mosaic9;
  std::vector<int64_t> members{index};
  while (members.size() < (nine ? 9u : 4u)) members.push_back(random.integer(static_cast<int64_t>(items.size())));
  std::vector<int64_t> shuffled;
  for (const int64_t position : random.permutation(static_cast<int64_t>(members.size()))) {
    shuffled.push_back(members[static_cast<size_t>(position)]);
  }
  std::vector<cv::Mat> tiles;
  std::vector<PixelSize> sizes;
  for (const int64_t member : shuffled) {
    tiles.push_back(load(member));
    sizes.push_back({tiles.back().rows, tiles.back().cols});  // 0 x 0, hence invisible, if it cannot be decoded
  }
  const std::vector<TilePlacement> placements =
      nine ? place_mosaic9(size, draw_mosaic9_center(size, random), sizes)
           : place_mosaic4(size, draw_mosaic4_center(size, random), sizes);
  Scene scene{draw_mosaic(size, tiles, placements), {}};
  for (size_t k = 0; k < tiles.size(); ++k) {
    if (tiles[k].empty()) continue;
    append_mosaic_objects(scene.objects, item(shuffled[k]).labels, sizes[k], placements[k], size);
  }
  if (augmentation.copy_paste > 0) {
    const std::vector<int64_t> candidates = paste_candidates(scene.objects, scene.image.cols);
    copy_paste(scene.image, scene.objects, draw_pasted(candidates, augmentation.copy_paste, random));
  }
  const PerspectiveDraws draws = draw_perspective(augmentation, random);
  apply_perspective(scene.image, scene.objects, draws, augmentation.perspective != 0, {-size / 2, -size / 2});
  return scene;
}

namespace {

void colour_and_flip(Scene& scene, const AugmentOptions& options, Random& random) {
  if (options.hsv_h != 0 || options.hsv_s != 0 || options.hsv_v != 0) {
    const HsvGains gains = draw_hsv(options, random);
    scale_hsv(scene.image, gains.hue, gains.saturation, gains.value);
  }
  if (random.uniform() < options.flipud) flip_up_down(scene.image, scene.objects);
  if (random.uniform() < options.fliplr) flip_left_right(scene.image, scene.objects);
}

torch::Tensor label_tensor(const Scene& scene) {
  const double width = scene.image.cols, height = scene.image.rows;
  torch::Tensor labels = torch::empty({static_cast<int64_t>(scene.objects.size()), 5}, torch::kFloat32);
  float* row = labels.data_ptr<float>();
  for (const Object& object : scene.objects) {
    const CenterBox box = normalise(clip(object.box, width - kClipMargin, height - kClipMargin), width, height);
    for (const double value : {static_cast<double>(object.class_index), box.cx, box.cy, box.w, box.h}) {
      *row++ = static_cast<float>(value);
    }
  }
  return labels;
}

}  // namespace

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
  if (impl_->items.empty()) {
    throw Error(ErrorKind::Data, "none of the " + std::to_string(paths.size()) + " pictures can be used",
                sources.front());
  }
  if (options.augment && !any_labels) {
    throw Error(ErrorKind::Data, "no picture has a label file, so there is nothing to learn", sources.front(),
                "labels are looked for in a folder labels beside images, such as " + first_label);
  }
  if (options.rect) impl_->order_by_aspect();
  if (options.cache_in_memory) impl_->cache.resize(impl_->items.size());
}

Dataset::~Dataset() = default;

int64_t Dataset::size() const { return static_cast<int64_t>(impl_->items.size()); }

Sample Dataset::get(int64_t index, int64_t epoch, bool mosaic, int64_t repeat) const {
  const DatasetOptions& options = impl_->options;
  const AugmentOptions& augmentation = options.augmentation;
  Random random{options.seed, static_cast<uint64_t>(epoch), static_cast<uint64_t>(index),
                static_cast<uint64_t>(repeat)};
  Sample sample;
  sample.path = impl_->item(index).path;
  sample.index = index;
  Scene scene;
  if (options.augment && !options.rect && mosaic && random.uniform() < augmentation.mosaic) {
    scene = impl_->mosaic(index, random);
    if (random.uniform() < augmentation.mixup) {
      const Scene other = impl_->mosaic(random.integer(size()), random);
      scene.image = mix(scene.image, other.image, draw_mixup_ratio(random));
      scene.objects.insert(scene.objects.end(), other.objects.begin(), other.objects.end());
    }
    sample.letterbox.original_height = scene.image.rows;
    sample.letterbox.original_width = scene.image.cols;
  } else {
    scene = impl_->single(index, random, sample.letterbox);
  }
  if (options.augment) colour_and_flip(scene, augmentation, random);
  sample.labels = label_tensor(scene);
  sample.image = to_tensor(scene.image);
  return sample;
}

const std::vector<std::string>& Dataset::names() const { return impl_->names; }
const DatasetOptions& Dataset::options() const { return impl_->options; }
const DatasetSummary& Dataset::summary() const { return impl_->summary; }
int64_t Dataset::decode_failures() const { return impl_->decode_failures; }
const std::string& Dataset::path(int64_t index) const { return impl_->item(index).path; }
PixelSize Dataset::picture_size(int64_t index) const { return impl_->item(index).size; }
const std::vector<LabelRow>& Dataset::labels(int64_t index) const { return impl_->item(index).labels; }
PixelSize Dataset::sample_size(int64_t index) const { return impl_->sample_size(index); }

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
  for (const Item& item : impl_->items) {
    for (const LabelRow& row : item.labels) ++counts.at(static_cast<size_t>(row.class_index));
  }
  return counts;
}

}  // namespace yolo9
