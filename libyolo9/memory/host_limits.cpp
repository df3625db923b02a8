#include <yolo9/memory/host_limits.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <sstream>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include <yolo9/core/control_group.h>

namespace yolo9 {

namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

// A limit file holds one number or "max" (version 2); version 1 writes a number near 2^63 for no limit.
int64_t parse_limit(const std::string& text) {
  char* end = nullptr;
  const long long value = std::strtoll(text.c_str(), &end, 10);
  return end == text.c_str() ? kNoLimit : static_cast<int64_t>(value);
}

}  // namespace

std::string read_kernel_file(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  std::array<char, 16384> buffer;
  const ssize_t size = ::read(file, buffer.data(), buffer.size());
  ::close(file);
  return size > 0 ? std::string(buffer.data(), static_cast<size_t>(size)) : std::string();
}

int64_t find_kernel_number(const std::string& text, const std::string& name, int64_t otherwise) {
  for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    if (at != 0 && text[at - 1] != '\n') continue;
    return std::strtoll(text.c_str() + at + name.size(), nullptr, 10);
  }
  return otherwise;
}

HostLimits::HostLimits(std::string root) : meminfo_file_(root + "/proc/meminfo") {
  std::istringstream lines(read_kernel_file(root + "/proc/self/cgroup"));
  const ControlGroups groups = find_control_groups(lines, "memory");
  add_levels(root + "/sys/fs/cgroup", groups.version2,
             {"memory.max", "memory.current", "memory.stat", "inactive_file "});
  add_levels(root + "/sys/fs/cgroup/memory", groups.version1,
             {"memory.limit_in_bytes", "memory.usage_in_bytes", "memory.stat", "total_inactive_file "});
}

// Levels that are not there are left out; the root is always looked at.
void HostLimits::add_levels(const std::string& mount, const std::string& group, const Level& names) {
  for (const std::string& level : control_group_folders(mount, group)) {
    const std::string folder = level + "/";
    if (::access((folder + names.limit_file).c_str(), R_OK) != 0) continue;
    levels_.push_back(
        {folder + names.limit_file, folder + names.usage_file, folder + names.stat_file, names.reclaimable});
  }
}

HostReading HostLimits::read() const {
  const std::string meminfo = read_kernel_file(meminfo_file_);
  const int64_t total_kib = find_kernel_number(meminfo, "MemTotal:", 0);
  const int64_t available_kib =
      find_kernel_number(meminfo, "MemAvailable:", find_kernel_number(meminfo, "MemFree:", 0));
  const int64_t machine_bytes = total_kib > 0 ? total_kib * 1024 : kNoLimit;
  HostReading out{machine_bytes, total_kib > 0 ? available_kib * 1024 : kNoLimit};
  for (const Level& level : levels_) {
    const int64_t limit = parse_limit(read_kernel_file(level.limit_file));
    // A limit above the machine's memory limits nothing, and its use need not be read.
    if (limit >= machine_bytes) continue;
    const int64_t usage = find_kernel_number(read_kernel_file(level.usage_file), "", 0);
    const int64_t reclaimable = find_kernel_number(read_kernel_file(level.stat_file), level.reclaimable, 0);
    const int64_t in_use = std::max<int64_t>(0, usage - reclaimable);
    out.total_bytes = std::min(out.total_bytes, limit);
    out.available_bytes = std::min(out.available_bytes, std::max<int64_t>(0, limit - in_use));
  }
  if (out.total_bytes == kNoLimit) return {};
  out.available_bytes = std::min(out.available_bytes, out.total_bytes);
  return out;
}

}  // namespace yolo9
