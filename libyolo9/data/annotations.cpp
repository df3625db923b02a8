#include <yolo9/data/annotations.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include <yolo9/data/sources.h>

namespace yolo9 {

struct Annotations::Impl {
  std::vector<std::string> names;
  std::vector<std::string> pictures;
};

Annotations::Annotations(const std::vector<std::string>& sources, std::vector<std::string> names)
    : impl_(std::make_unique<Impl>()) {
  impl_->names = std::move(names);
  impl_->pictures = find_images(sources);
}

Annotations::~Annotations() = default;

int64_t Annotations::size() const { return static_cast<int64_t>(impl_->pictures.size()); }

const std::string& Annotations::picture(int64_t index) const {
  return impl_->pictures.at(static_cast<size_t>(index));
}

LabelSource Annotations::source(int64_t index) const {
  LabelSource source;
  source.path = label_path(picture(index));
  std::error_code ignored;
  source.exists = std::filesystem::exists(source.path, ignored);
  if (!source.exists) return source;
  std::ifstream stream(source.path, std::ios::binary);
  source.readable = stream && !std::filesystem::is_directory(source.path, ignored);
  if (!source.readable) return source;
  std::ostringstream text;
  text << stream.rdbuf();
  source.text = text.str();
  source.hash = std::hash<std::string>{}(source.text);
  return source;
}

LabelFile Annotations::parse(int64_t, const LabelSource& source, PixelSize) const {
  if (source.readable) return parse_labels(source.text, static_cast<int64_t>(impl_->names.size()));
  LabelFile file;
  file.faults.push_back({LabelFaultKind::Unreadable, 0, "the label file cannot be read"});
  return file;
}

}  // namespace yolo9
