#include <yolo9/data/annotations.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>

#include <sys/stat.h>

#include <yolo9/core/digest.h>
#include <yolo9/data/coco_labels.h>
#include <yolo9/data/label_builder.h>
#include <yolo9/data/sources.h>
#include <yolo9/data/voc_labels.h>

namespace yolo9 {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kLargestLabelFile = uint64_t{1} << 28;  // 256 MiB: some millions of rows

struct Entry {
  std::string path;
  int32_t coco = -1;   // which of the COCO files; -1: none
  int32_t place = -1;  // of the picture in it
};

// Looks in the folder of the last one first.
std::string find_picture(const std::string& name, const std::vector<std::string>& folders, size_t& last) {
  std::error_code ignored;
  if (fs::path(name).is_absolute()) return name;
  for (size_t i = 0; i < folders.size(); ++i) {
    const size_t at = (last + i) % folders.size();
    const fs::path path = fs::path(folders[at]) / name;
    if (!fs::exists(path, ignored)) continue;
    last = at;
    return path.lexically_normal().string();
  }
  return folders.empty() ? name : (fs::path(folders[last]) / name).lexically_normal().string();
}

// Also what cannot be looked at, or is a link that leads nowhere: to take it for missing would make its picture
// background.
bool is_there(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 || errno == EACCES || errno == ELOOP;
}

std::string upper_case_sibling(const std::string& txt) { return txt.substr(0, txt.size() - 3) + "TXT"; }

}  // namespace

// Asks what it is first: opening a pipe would wait for somebody to write.
bool read_label_file(const std::string& path, std::string& text) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  if (static_cast<uint64_t>(status.st_size) > kLargestLabelFile) return false;
  std::ifstream stream(path, std::ios::binary);
  text.resize(static_cast<size_t>(status.st_size));
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(std::max<std::streamsize>(stream.gcount(), 0)));
  return stream.good() || (stream.eof() && !text.empty());
}

struct Annotations::Impl {
  std::vector<std::string> names;
  int64_t most_listed_faults = kMostListedFaults;
  std::vector<Entry> entries;  // by path
  std::vector<std::unique_ptr<CocoLabels>> coco;
  std::vector<SourceFaults> faults;

  void add_coco(const CocoSource& source);
};

void Annotations::Impl::add_coco(const CocoSource& source) {
  const auto number = static_cast<int32_t>(coco.size());
  coco.push_back(std::make_unique<CocoLabels>(source.json, most_listed_faults));
  CocoLabels& labels = *coco.back();
  labels.set_names(names);
  const std::vector<std::string> folders = coco_image_folders(source);
  size_t last = 0;
  for (int64_t i = 0; i < labels.size(); ++i) {
    entries.push_back({find_picture(labels.image(i).file_name, folders, last), number, static_cast<int32_t>(i)});
  }
  if (!labels.faults().faults.empty()) faults.push_back({source.json, labels.faults()});
}

Annotations::Annotations(const std::vector<std::string>& sources, std::vector<std::string> names,
                         int64_t most_listed_faults)
    : impl_(std::make_unique<Impl>()) {
  impl_->names = std::move(names);
  impl_->most_listed_faults = most_listed_faults;
  std::vector<std::string> others;
  for (const std::string& source : sources) {
    const std::optional<CocoSource> coco = as_coco_source(source);
    if (coco) {
      impl_->add_coco(*coco);
    } else {
      others.push_back(source);
    }
  }
  if (!others.empty() || impl_->entries.empty()) {
    for (std::string& path : find_images(others.empty() ? sources : others)) {
      impl_->entries.push_back({std::move(path), -1, -1});
    }
  }
  std::stable_sort(impl_->entries.begin(), impl_->entries.end(),
                   [](const Entry& a, const Entry& b) { return a.path < b.path; });
}

Annotations::~Annotations() = default;

int64_t Annotations::size() const { return static_cast<int64_t>(impl_->entries.size()); }

const std::string& Annotations::picture(int64_t index) const {
  return impl_->entries.at(static_cast<size_t>(index)).path;
}

const std::vector<SourceFaults>& Annotations::faults() const { return impl_->faults; }

LabelSource Annotations::source(int64_t index) const {
  const Entry& entry = impl_->entries.at(static_cast<size_t>(index));
  LabelSource source;
  if (entry.coco >= 0) {
    const CocoLabels& coco = *impl_->coco[static_cast<size_t>(entry.coco)];
    Digest digest(coco.hash());
    digest.add_number(entry.place);
    source = {LabelFormat::Coco, coco.path(), true, true, "", digest.value()};
    return source;
  }
  source.path = label_path(entry.path);
  source.exists = is_there(source.path);
  if (!source.exists && is_there(upper_case_sibling(source.path))) {
    source.path = upper_case_sibling(source.path);
    source.exists = true;
  }
  if (!source.exists) {
    const std::vector<std::string> candidates = voc_paths(entry.path);
    const auto found = std::find_if(candidates.begin(), candidates.end(), is_there);
    if (found == candidates.end()) return source;
    source.format = LabelFormat::Voc;
    source.path = *found;
    source.exists = true;
  }
  source.readable = read_label_file(source.path, source.text);
  if (source.readable) {
    Digest digest;
    digest.add(source.text);
    source.hash = digest.value();
  }
  return source;
}

LabelFile Annotations::parse(int64_t index, const LabelSource& source, PixelSize picture) const {
  if (!source.readable) {
    return unreadable_labels(0, "the label file cannot be read (no file, no permission, or more than 256 MiB)");
  }
  if (source.format == LabelFormat::Coco) {
    const Entry& entry = impl_->entries.at(static_cast<size_t>(index));
    return impl_->coco[static_cast<size_t>(entry.coco)]->parse(entry.place, picture);
  }
  if (source.format == LabelFormat::Voc) {
    return parse_voc(source.text, impl_->names, picture, impl_->most_listed_faults);
  }
  return parse_labels(source.text, static_cast<int64_t>(impl_->names.size()), impl_->most_listed_faults);
}

}  // namespace yolo9
