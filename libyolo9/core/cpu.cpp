#include <yolo9/core/cpu.h>

#include <algorithm>
#include <fstream>

#include <sched.h>

#include <yolo9/core/control_group.h>

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

// The least quota of the group and of those around it; a level that is not there has none.
double least_quota(const std::string& mount, const std::string& group, double (*quota_of)(const std::string&)) {
  double least = kNoQuota;
  for (const std::string& folder : control_group_folders(mount, group)) {
    const double quota = quota_of(folder);
    if (quota != kNoQuota && (least == kNoQuota || quota < least)) least = quota;
  }
  return least;
}

int64_t affinity_count() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

}  // namespace

int64_t usable_cores(const std::string& root, int64_t affinity) {
  int64_t cores = affinity > 0 ? affinity : affinity_count();
  std::ifstream lines(root + "/proc/self/cgroup");
  const ControlGroups groups = find_control_groups(lines, "cpu");
  const std::string mount = root + "/sys/fs/cgroup";
  for (const double quota : {least_quota(mount, groups.version2, quota_of_version2),
                             least_quota(mount + "/cpu", groups.version1, quota_of_version1),
                             least_quota(mount + "/cpu,cpuacct", groups.version1, quota_of_version1)}) {
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
