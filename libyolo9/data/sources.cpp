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

void add_list(const fs::path& list, std::vector<std::string>& images) {
  std::ifstream stream(list);
  if (!stream) throw Error(ErrorKind::Data, "cannot read the list file", list.string());
  std::error_code ignored;
  for (std::string line; std::getline(stream, line);) {
    const fs::path path(trim(line));
    if (path.empty()) continue;
    const fs::path beside = list.parent_path() / path;  // `path` itself if that is absolute
    const bool here = !fs::exists(beside, ignored) && fs::exists(path, ignored);
    images.push_back((here ? path : beside).lexically_normal().string());
  }
}

}  // namespace

bool has_image_extension(const std::string& path) {
  constexpr std::array kExtensions{".bmp", ".dib", ".jp2", ".jpe", ".jpeg", ".jpg", ".mpo", ".pbm", ".pfm",
                                   ".pgm", ".png", ".pnm", ".ppm", ".tif",  ".tiff", ".webp"};
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
  std::sort(images.begin(), images.end());
  return images;
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
