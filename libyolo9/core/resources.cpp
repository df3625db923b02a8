#include <yolo9/core/resources.h>

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

}  // namespace yolo9
