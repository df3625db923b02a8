// What this process may use of the machine's memory: physical memory, less where control groups limit it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace yolo9 {

struct HostReading {
  int64_t total_bytes = 0;      // physical memory or the tightest control group's limit, whichever is less
  int64_t available_bytes = 0;  // what of it can be had now without swapping; never more than the total
};

// Reads the kernel's files below `root` ("" is the real machine; tests pass a folder that mimics one). Which
// control groups hold this process is looked up once, here; their limits and use at every read(). A group
// counts with all groups that enclose it, in version 2 and in version 1 (memory controller) alike. Pages of
// cached files that a group can drop at once (inactive_file) count as free.
class HostLimits {
 public:
  explicit HostLimits(std::string root = "");
  HostReading read() const;

 private:
  struct Level {
    std::string limit_file, usage_file, stat_file;
    const char* reclaimable;  // name of the line in stat_file, with a space after it
  };
  void add_levels(const std::string& mount, const std::string& group, const Level& names);

  std::string meminfo_file_;
  std::vector<Level> levels_;
};

// The file in one read (files of /proc and cgroups come whole), empty if there is none. At most 16 KiB.
std::string read_kernel_file(const std::string& path);
// The number after `name` at the beginning of a line, or `otherwise`.
int64_t find_kernel_number(const std::string& text, const std::string& name, int64_t otherwise);

}  // namespace yolo9
