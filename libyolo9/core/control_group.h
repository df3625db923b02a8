// Which control groups of the kernel this process is in, and the folders where their limits stand. Header only, so that
// the governor alone has it too.
#pragma once

#include <istream>
#include <string>
#include <vector>

namespace yolo9 {

struct ControlGroups {
  std::string version2, version1;  // paths; empty if there is none
};

// `lines`: those of /proc/self/cgroup; `controller`: version 1's, such as "memory" or "cpu".
inline ControlGroups find_control_groups(std::istream& lines, const std::string& controller) {
  ControlGroups groups;
  for (std::string line; std::getline(lines, line);) {
    // "<hierarchy>:<controllers>:<path>"; version 2 is hierarchy 0 without controllers.
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    if (line.rfind("0::", 0) == 0) groups.version2 = line.substr(second + 1);
    if (controllers.find("," + controller + ",") != std::string::npos) groups.version1 = line.substr(second + 1);
  }
  return groups;
}

// The folders of the group and of those around it, up to `mount` itself, each without a slash at its end. Inside a
// container the path may be the host's, of which only the group's own folder is mounted, as the root: some of them may
// not exist.
inline std::vector<std::string> control_group_folders(const std::string& mount, std::string group) {
  if (group.find("..") != std::string::npos) group.clear();
  std::vector<std::string> folders;
  while (true) {
    while (!group.empty() && group.back() == '/') group.pop_back();
    folders.push_back(mount + group);
    if (group.empty()) return folders;
    const size_t slash = group.rfind('/');
    group.erase(slash == std::string::npos ? 0 : slash);
  }
}

}  // namespace yolo9
