#include <yolo9/data/frames.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>

#include <glob.h>

#include <opencv2/core.hpp>
#include <opencv2/core/utils/logger.hpp>
#include <opencv2/videoio.hpp>
#include <opencv2/videoio/registry.hpp>

#include <yolo9/core/error.h>
#include <yolo9/core/log.h>
#include <yolo9/data/image.h>
#include <yolo9/data/sources.h>

namespace yolo9 {

namespace {

namespace fs = std::filesystem;

bool is_usable(const std::string& path) { return has_image_extension(path) || has_video_extension(path); }

std::string lower_extension(const std::string& path) {
  std::string extension = fs::path(path).extension().string();
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return extension;
}

std::vector<std::string> in_folder(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code code;
  fs::recursive_directory_iterator entry(folder, fs::directory_options::follow_directory_symlink, code);
  std::set<std::string> seen = {fs::canonical(folder, code).string()};
  for (; !code && entry != fs::recursive_directory_iterator(); entry.increment(code)) {
    // A link to a folder that was visited already, a parent for instance, is not followed again.
    std::error_code odd;  // of this one: a link that leads in a circle is no folder and no file
    if (entry->is_directory(odd) && !seen.insert(fs::canonical(entry->path(), odd).string()).second) {
      entry.disable_recursion_pending();
    }
    if (entry->is_regular_file(odd) && is_usable(entry->path().string())) paths.push_back(entry->path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::vector<std::string> matching(const std::string& pattern) {
  std::vector<std::string> paths;
  glob_t found{};
  if (::glob(pattern.c_str(), GLOB_TILDE, nullptr, &found) == 0) {
    for (size_t i = 0; i < found.gl_pathc; ++i) paths.emplace_back(found.gl_pathv[i]);
  }
  ::globfree(&found);
  return paths;
}

[[noreturn]] void refuse(const std::string& source, const std::string& what) {
  throw Error(ErrorKind::Data, what, source, "name a picture, a video, a folder, a pattern in quotes or a .txt list");
}

void expand_into(const std::string& source, int depth, std::vector<std::string>& paths);

void expand_list(const std::string& list, int depth, std::vector<std::string>& paths) {
  std::ifstream file(list);
  if (!file) refuse(list, "cannot read the list");
  std::string line;
  while (std::getline(file, line)) {
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back()))) line.pop_back();
    if (line.empty()) continue;
    const std::string beside = (fs::path(list).parent_path() / line).string();
    std::error_code odd;
    expand_into(fs::exists(beside, odd) || !fs::exists(line, odd) ? beside : line, depth + 1, paths);
  }
}

void expand_into(const std::string& source, int depth, std::vector<std::string>& paths) {
  if (depth > 4) refuse(source, "lists within lists go too deep");
  std::error_code odd;
  if (fs::is_directory(source, odd)) {
    const auto found = in_folder(source);
    paths.insert(paths.end(), found.begin(), found.end());
  } else if (fs::exists(source, odd)) {
    if (lower_extension(source) == ".txt") return expand_list(source, depth, paths);
    if (!is_usable(source)) refuse(source, "neither a picture nor a video");
    paths.push_back(source);
  } else if (source.find_first_of("*?[") != std::string::npos) {
    for (const auto& path : matching(source)) {
      if (fs::is_regular_file(path, odd) && is_usable(path)) paths.push_back(path);
    }
  } else {
    refuse(source, "there is no such file or folder");
  }
}

}  // namespace

bool has_video_extension(const std::string& path) {
  static const std::vector<std::string> kKnown = {".asf", ".avi", ".gif",  ".m4v", ".mkv",  ".mov",
                                                  ".mp4", ".mpg", ".mpeg", ".ts",  ".webm", ".wmv"};
  return std::find(kKnown.begin(), kKnown.end(), lower_extension(path)) != kKnown.end();
}

std::vector<std::string> expand_source(const std::string& source) {
  std::vector<std::string> paths;
  expand_into(source, 0, paths);
  if (paths.empty()) refuse(source, "no pictures or videos");
  return paths;
}

struct FrameSource::Impl {
  std::vector<std::string> paths;
  size_t position = 0;
  int64_t delivered = 0, unreadable = 0;
  cv::VideoCapture video;
  Frame current;  // of the open video

  void skip(const std::string& why) {
    ++unreadable;
    log_warn(why);
  }

  std::optional<Frame> next_of_video() {
    cv::Mat picture;
    bool read = false;
    try {
      read = video.read(picture) && !picture.empty();
    } catch (const cv::Exception&) {
      read = false;
    }
    if (!read) {
      video.release();
      if (current.number == 0) skip(current.path + ": the video has no frame that can be decoded");
      return std::nullopt;
    }
    Frame frame = current;
    frame.image = to_tensor(picture);
    ++current.number;
    return frame;
  }

  void open_video(const std::string& path) {
    cv::utils::logging::setLogLevel(cv::utils::logging::LOG_LEVEL_SILENT);  // our one line says it
    current = Frame();
    current.path = path;
    current.video = true;
    try {
      video.open(path, cv::videoio_registry::hasBackend(cv::CAP_FFMPEG) ? cv::CAP_FFMPEG : cv::CAP_ANY);
    } catch (const cv::Exception&) {
      video.release();
    }
    if (!video.isOpened()) return skip(path + ": cannot decode the video");
    current.frames = std::max<int64_t>(0, static_cast<int64_t>(video.get(cv::CAP_PROP_FRAME_COUNT)));
    const double rate = video.get(cv::CAP_PROP_FPS);
    current.frames_per_second = rate > 0 && rate < 1000 ? rate : 30;
  }
};

FrameSource::FrameSource(std::vector<std::string> paths) : impl_(std::make_unique<Impl>()) {
  impl_->paths = std::move(paths);
}
FrameSource::~FrameSource() = default;
int64_t FrameSource::unreadable() const { return impl_->unreadable; }

std::optional<Frame> FrameSource::next() {
  Impl& s = *impl_;
  for (;;) {
    if (s.video.isOpened()) {
      if (auto frame = s.next_of_video()) {
        ++s.delivered;
        return frame;
      }
      continue;
    }
    if (s.position == s.paths.size()) break;
    const std::string path = s.paths[s.position++];
    if (has_video_extension(path)) {
      s.open_video(path);
      continue;
    }
    try {
      Frame frame;
      frame.path = path;
      frame.image = to_tensor(read_image(path));
      ++s.delivered;
      return frame;
    } catch (const Error& error) {
      s.skip(error.what());
    }
  }
  if (s.delivered == 0 && s.unreadable > 0) {
    throw Error(ErrorKind::Data, "none of the " + std::to_string(s.unreadable) + " files could be decoded",
                s.paths.front());
  }
  return std::nullopt;
}

struct VideoSink::Impl {
  cv::VideoWriter writer;
};

VideoSink::VideoSink(const std::string& path, double frames_per_second, int64_t height, int64_t width)
    : impl_(std::make_unique<Impl>()) {
  try {
    impl_->writer.open(path, cv::VideoWriter::fourcc('m', 'p', '4', 'v'), frames_per_second,
                       cv::Size(static_cast<int>(width), static_cast<int>(height)));
  } catch (const cv::Exception&) {
    impl_->writer.release();
  }
  if (!impl_->writer.isOpened()) {
    throw Error(ErrorKind::Usage, "cannot write the video", path, "check the folder, its permissions and free space");
  }
}
VideoSink::~VideoSink() = default;
void VideoSink::write(const torch::Tensor& image) { impl_->writer.write(to_image(image)); }

torch::Tensor letterbox_picture(const torch::Tensor& image, int64_t size, int64_t stride, LetterboxInfo& info) {
  LetterboxOptions options;
  options.height = options.width = size;
  options.minimum_padding = true;
  options.stride = stride;
  return to_tensor(letterbox(to_image(image), options, info));
}

}  // namespace yolo9
