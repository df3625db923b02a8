#include <yolo9/core/resources.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace yolo9 {

namespace fs = std::filesystem;

std::vector<std::string> resource_folders(const std::string& kind) {
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  const fs::path candidates[] = {
      kind,
      fs::path(YOLO9_SOURCE_ROOT) / kind,
      program.parent_path().parent_path() / "share" / "yolo9" / kind,
      fs::path(YOLO9_INSTALLED_SHARE) / kind,
  };
  std::vector<std::string> folders;
  for (const auto& folder : candidates)
    if (fs::is_directory(folder, ignored)) folders.push_back(folder.string());
  return folders;
}

std::string cache_folder(const std::string& kind) {
  if (const char* own = std::getenv("YOLO9_CACHE_DIR")) return own[0] != '\0' ? std::string(own) + "/" + kind : "";
  const char* shared = std::getenv("XDG_CACHE_HOME");
  // Relative paths are to be ignored, by the definition of that variable.
  if (shared && shared[0] == '/') return std::string(shared) + "/yolo9/" + kind;
  const char* home = std::getenv("HOME");
  return home && home[0] == '/' ? std::string(home) + "/.cache/yolo9/" + kind : "";
}

}  // namespace yolo9
