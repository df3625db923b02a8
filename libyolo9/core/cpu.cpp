#include <yolo9/core/cpu.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include <sched.h>

namespace yolo9 {

namespace {

constexpr double kNoQuota = 0;

// "<quota> <period>" in microseconds, or "max <period>".
double quota_of_version2(const std::string& folder) {
  std::ifstream file(folder + "/cpu.max");
  double quota = 0, period = 0;
  return file >> quota >> period && quota > 0 && period > 0 ? quota / period : kNoQuota;
}

// The quota is -1 where there is none.
double quota_of_version1(const std::string& folder) {
  std::ifstream quota_file(folder + "/cpu.cfs_quota_us"), period_file(folder + "/cpu.cfs_period_us");
  double quota = 0, period = 0;
  return quota_file >> quota && period_file >> period && quota > 0 && period > 0 ? quota / period : kNoQuota;
}

// The least quota of the group and of those around it. In a container the path may be the host's, of which only the
// group's own folder is mounted, as the root: levels that are not there have no quota, and the root is always looked
// at.
double least_quota(const std::string& mount, std::string group, double (*quota_of)(const std::string&)) {
  if (group.find("..") != std::string::npos) group.clear();
  double least = kNoQuota;
  while (true) {
    while (!group.empty() && group.back() == '/') group.pop_back();
    const double quota = quota_of(mount + group);
    if (quota != kNoQuota && (least == kNoQuota || quota < least)) least = quota;
    if (group.empty()) return least;
    const size_t slash = group.rfind('/');
    group.erase(slash == std::string::npos ? 0 : slash);
  }
}

int64_t affinity_count() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

}  // namespace

int64_t usable_cores(const std::string& root, int64_t affinity) {
  int64_t cores = affinity > 0 ? affinity : affinity_count();
  std::string group_v2, group_v1;
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    // "<hierarchy>:<controllers>:<path>"; version 2 is hierarchy 0 without controllers.
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    if (line.rfind("0::", 0) == 0) group_v2 = line.substr(second + 1);
    if (controllers.find(",cpu,") != std::string::npos) group_v1 = line.substr(second + 1);
  }
  const std::string mount = root + "/sys/fs/cgroup";
  for (const double quota :
       {least_quota(mount, group_v2, quota_of_version2), least_quota(mount + "/cpu", group_v1, quota_of_version1),
        least_quota(mount + "/cpu,cpuacct", group_v1, quota_of_version1)}) {
    // Rounded up: a quota of 1.5 cores keeps two threads busy part of the time.
    if (quota != kNoQuota && quota < static_cast<double>(cores))
      cores = static_cast<int64_t>(quota) + (quota > static_cast<double>(static_cast<int64_t>(quota)) ? 1 : 0);
  }
  return std::max<int64_t>(1, cores);
}

int64_t suggested_workers(int64_t cores, bool accelerator) {
  constexpr int64_t kMost = 8;
  return std::clamp<int64_t>(accelerator ? cores - 1 : cores / 4, 1, kMost);
}

}  // namespace yolo9
