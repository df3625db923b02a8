#include <yolo9/data/sources.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>

#include <yolo9/core/error.h>

namespace yolo9 {
namespace {

constexpr std::array kExtensions{".jpg", ".jpeg", ".png", ".bmp", ".tif", ".tiff", ".webp", ".dib",
                                 ".jp2", ".jpe",  ".mpo", ".pbm", ".pfm", ".pgm",  ".pnm",  ".ppm"};

namespace fs = std::filesystem;

std::string lower_extension(const fs::path& path) {
  std::string extension = path.extension().string();
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return extension;
}

// `seen` holds the real paths of the folders on the way here, so that a link to a parent does not loop.
void add_folder(const fs::path& folder, std::set<std::string>& seen, std::vector<std::string>& images) {
  std::error_code error;
  const std::string real = fs::canonical(folder, error).string();
  if (error || !seen.insert(real).second) return;
  fs::directory_iterator entries(folder, error);
  if (error) throw Error(ErrorKind::Data, "cannot read the folder: " + error.message(), folder.string());
  for (const fs::directory_entry& entry : entries) {
    if (entry.is_directory(error)) {
      add_folder(entry.path(), seen, images);
    } else if (has_image_extension(entry.path().string())) {
      images.push_back(entry.path().string());
    }
  }
  seen.erase(real);
}

std::string trim(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

// The picture of an id in VOC's ImageSets/Main/train.txt; "" if there is none.
std::string voc_picture(const fs::path& list, const std::string& id) {
  const fs::path stem = list.parent_path() / "../../JPEGImages" / id;
  std::error_code ignored;
  for (const std::string extension : kExtensions) {
    std::string upper = extension;
    for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    for (const std::string& ending : {extension, upper}) {
      const fs::path picture = stem.string() + ending;
      if (fs::exists(picture, ignored)) return picture.lexically_normal().string();
    }
  }
  return "";
}

void add_list(const fs::path& list, std::vector<std::string>& images) {
  std::ifstream stream(list);
  if (!stream) throw Error(ErrorKind::Data, "cannot read the list file", list.string());
  std::error_code ignored;
  bool is_first = true;
  for (std::string line; std::getline(stream, line);) {
    if (is_first && line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);  // some editors write a byte order mark
    is_first = false;
    const fs::path path(trim(line));
    if (path.empty()) continue;
    const fs::path beside = list.parent_path() / path;  // `path` itself if that is absolute
    if (fs::exists(beside, ignored)) {
      images.push_back(beside.lexically_normal().string());
    } else if (fs::exists(path, ignored)) {
      images.push_back(path.lexically_normal().string());
    } else {
      const std::string voc = has_image_extension(path.string()) ? "" : voc_picture(list, path.string());
      images.push_back(voc.empty() ? beside.lexically_normal().string() : voc);
    }
  }
}

}  // namespace

bool has_image_extension(const std::string& path) {
  const std::string extension = lower_extension(path);
  return std::find(kExtensions.begin(), kExtensions.end(), extension) != kExtensions.end();
}

std::vector<std::string> find_images(const std::vector<std::string>& sources) {
  std::vector<std::string> images;
  std::error_code ignored;
  for (const std::string& source : sources) {
    if (fs::is_directory(source, ignored)) {
      std::set<std::string> seen;
      add_folder(source, seen, images);
    } else if (!fs::exists(source, ignored)) {
      throw Error(ErrorKind::Data, "no such folder or list file", source);
    } else if (has_image_extension(source)) {
      images.push_back(source);
    } else {
      add_list(source, images);
    }
  }
  if (images.empty()) {
    throw Error(ErrorKind::Data, "no pictures found", sources.empty() ? "" : sources.front(),
                "a folder of pictures (jpg, png, bmp, tif, webp, ...) or a .txt list of them is expected");
  }
  // Where labels are is known by a folder's name between two slashes, also when the path begins with it.
  for (std::string& path : images) {
    if (path.starts_with("images/") || path.starts_with("JPEGImages/")) path.insert(0, "./");
  }
  std::sort(images.begin(), images.end());
  return images;
}

std::optional<CocoSource> as_coco_source(const std::string& source) {
  if (lower_extension(source) == ".json") return CocoSource{source, ""};
  const size_t bar = source.rfind('|');
  if (bar == std::string::npos || lower_extension(source.substr(0, bar)) != ".json") return std::nullopt;
  return CocoSource{source.substr(0, bar), source.substr(bar + 1)};
}

std::string to_source(const CocoSource& coco) {
  return coco.images.empty() ? coco.json : coco.json + "|" + coco.images;
}

std::vector<std::string> coco_image_folders(const CocoSource& coco) {
  const fs::path json(coco.json), here = json.parent_path().empty() ? "." : json.parent_path();
  std::vector<fs::path> folders;
  if (!coco.images.empty()) folders.emplace_back(coco.images);
  std::string split = json.stem().string();
  constexpr std::string_view kPrefix = "instances_";
  if (split.starts_with(kPrefix)) split.erase(0, kPrefix.size());
  const fs::path up = here / "..";
  for (const fs::path& folder : {here, here / "images", here / split, here / "images" / split, up / split,
                                 up / "images" / split, up / "images", up}) {
    if (coco.images.empty()) folders.push_back(folder);
  }
  std::vector<std::string> existing;
  std::error_code ignored;
  for (const fs::path& folder : folders) {
    if (fs::is_directory(folder, ignored)) existing.push_back(folder.lexically_normal().string());
  }
  return existing;
}

std::vector<std::string> voc_paths(const std::string& image_path) {
  std::string stem = image_path;
  stem.resize(stem.size() - fs::path(image_path).extension().string().size());
  std::vector<std::string> paths{stem + ".xml"};
  const auto add = [&](std::string_view from, const char* to) {
    const size_t at = stem.rfind(from);
    if (at != std::string::npos) paths.push_back(std::string(stem).replace(at, from.size(), to) + ".xml");
  };
  add("/JPEGImages/", "/Annotations/");
  for (const char* to : {"/annotations/", "/Annotations/", "/labels/"}) add("/images/", to);
  return paths;
}

std::string label_path(const std::string& image_path) {
  constexpr std::string_view kImages = "/images/", kLabels = "/labels/";
  std::string path = image_path;
  const size_t at = path.rfind(kImages);
  if (at != std::string::npos) path.replace(at, kImages.size(), kLabels);
  const size_t dot = path.rfind('.');
  const size_t slash = path.rfind('/');
  if (dot != std::string::npos && (slash == std::string::npos || dot > slash)) path.resize(dot);
  return path + ".txt";
}

}  // namespace yolo9
