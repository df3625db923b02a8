#include <yolo9/core/cpu.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include <catch2/catch.hpp>

#include "support/fixture.h"

namespace {

namespace fs = std::filesystem;

struct FakeRoot {
  std::string path;
  explicit FakeRoot(const std::string& name) : path(fixture::temporary_dir("cpu_" + name)) {}
  void write(const std::string& file, const std::string& text) const {
    const fs::path full = path + file;
    fs::create_directories(full.parent_path());
    std::ofstream(full) << text;
  }
};

}  // namespace

TEST_CASE("cores of the real machine") {
  const int64_t cores = yolo9::usable_cores();
  CHECK(cores >= 1);
  CHECK(cores <= static_cast<int64_t>(std::thread::hardware_concurrency()));
}

TEST_CASE("without control groups the affinity counts") {
  const FakeRoot root("none");
  CHECK(yolo9::usable_cores(root.path, 6) == 6);
}

TEST_CASE("a version 2 quota is rounded up, the tightest of all levels counts") {
  const FakeRoot root("v2");
  root.write("/proc/self/cgroup", "0::/outer/inner\n");
  root.write("/sys/fs/cgroup/outer/inner/cpu.max", "max 100000\n");
  root.write("/sys/fs/cgroup/outer/cpu.max", "250000 100000\n");
  CHECK(yolo9::usable_cores(root.path, 16) == 3);
  CHECK(yolo9::usable_cores(root.path, 2) == 2);
  root.write("/sys/fs/cgroup/outer/inner/cpu.max", "200000 100000\n");
  CHECK(yolo9::usable_cores(root.path, 16) == 2);
  root.write("/sys/fs/cgroup/cpu.max", "10000 100000\n");
  CHECK(yolo9::usable_cores(root.path, 16) == 1);
}

TEST_CASE("in a container the group's own folder is the root") {
  const FakeRoot root("container");
  root.write("/proc/self/cgroup", "0::/../../host/path\n");
  root.write("/sys/fs/cgroup/cpu.max", "400000 100000\n");
  CHECK(yolo9::usable_cores(root.path, 16) == 4);
}

TEST_CASE("a version 1 quota") {
  for (const std::string controllers : {"cpu", "cpu,cpuacct"}) {
    CAPTURE(controllers);
    const FakeRoot root("v1");
    root.write("/proc/self/cgroup", "4:memory:/else\n3:" + controllers + ":/a/b\n");
    const std::string mount = "/sys/fs/cgroup/" + controllers;
    root.write(mount + "/a/b/cpu.cfs_quota_us", "-1\n");
    root.write(mount + "/a/b/cpu.cfs_period_us", "100000\n");
    CHECK(yolo9::usable_cores(root.path, 9) == 9);
    root.write(mount + "/a/cpu.cfs_quota_us", "350000\n");
    root.write(mount + "/a/cpu.cfs_period_us", "100000\n");
    CHECK(yolo9::usable_cores(root.path, 9) == 4);
    fs::remove_all(root.path);
  }
}

TEST_CASE("damaged quota files limit nothing") {
  const FakeRoot root("damaged");
  root.write("/proc/self/cgroup", "nonsense\n0::/x\n");
  for (const char* text : {"", "abc", "-5 100000", "0 0", "100000"}) {
    CAPTURE(text);
    root.write("/sys/fs/cgroup/x/cpu.max", text);
    CHECK(yolo9::usable_cores(root.path, 5) == 5);
  }
}

TEST_CASE("suggested workers") {
  CHECK(yolo9::suggested_workers(1, false) == 1);
  CHECK(yolo9::suggested_workers(2, false) == 1);
  CHECK(yolo9::suggested_workers(16, false) == 4);
  CHECK(yolo9::suggested_workers(128, false) == 8);
  CHECK(yolo9::suggested_workers(1, true) == 1);
  CHECK(yolo9::suggested_workers(4, true) == 3);
  CHECK(yolo9::suggested_workers(16, true) == 8);
}
