#include <yolo9/monitor/run_folder.h>

#include <filesystem>

#include <unistd.h>

#include <yolo9/core/error.h>

namespace yolo9 {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& path, const std::string& reason) {
  throw Error(ErrorKind::Usage, "cannot write the run folder: " + reason, path,
              "choose another with --project and --name");
}

}  // namespace

std::string make_run_folder(const std::string& project, const std::string& name, bool exist_ok) {
  if (name.empty()) refuse(project, "--name is empty");
  const fs::path base = fs::path(project) / name;
  std::error_code code;
  if (base.has_parent_path()) fs::create_directories(base.parent_path(), code);
  if (code) refuse(base.parent_path().string(), code.message());
  for (int64_t number = 1;; ++number) {
    const std::string path = number == 1 ? base.string() : base.string() + std::to_string(number);
    // create_directory is one mkdir: true only for the process that made it.
    const bool made = fs::create_directory(path, code);
    if (code && !fs::exists(path)) refuse(path, code.message());
    if (!made && !(exist_ok && fs::is_directory(path))) continue;
    if (::access(path.c_str(), W_OK | X_OK) != 0) refuse(path, "permission denied");
    return path;
  }
}

}  // namespace yolo9
