#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

#include <yolo9/memory/host_limits.h>

using namespace yolo9;

namespace {

namespace fs = std::filesystem;

constexpr int64_t kGiB = int64_t{1} << 30;

// A folder that stands for "/", removed at the end. The machine has 64 GiB, of which 48 are available.
class FakeMachine {
 public:
  FakeMachine() : root_(fs::temp_directory_path() / ("yolo9-host-limits-" + std::to_string(::getpid()))) {
    fs::remove_all(root_);
    write("proc/meminfo",
          "MemTotal:       67108864 kB\nMemFree:        10485760 kB\nMemAvailable:   50331648 kB\n"
          "SwapTotal:      0 kB\n");
  }
  ~FakeMachine() { fs::remove_all(root_); }
  FakeMachine(const FakeMachine&) = delete;
  FakeMachine& operator=(const FakeMachine&) = delete;

  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  void group_v2(const std::string& path, const std::string& limit, int64_t usage, int64_t inactive_file = 0) {
    const std::string folder = "sys/fs/cgroup" + path + "/";
    write(folder + "memory.max", limit + "\n");
    write(folder + "memory.current", std::to_string(usage) + "\n");
    write(folder + "memory.stat", "anon 1\nfile 2\ninactive_anon 3\nactive_anon 4\ninactive_file " +
                                      std::to_string(inactive_file) + "\nactive_file 5\n");
  }
  void group_v1(const std::string& path, int64_t limit, int64_t usage, int64_t inactive_file = 0) {
    const std::string folder = "sys/fs/cgroup/memory" + path + "/";
    write(folder + "memory.limit_in_bytes", std::to_string(limit) + "\n");
    write(folder + "memory.usage_in_bytes", std::to_string(usage) + "\n");
    // Without the groups inside, and with them: the latter is what the usage counts.
    write(folder + "memory.stat", "inactive_file 7\ntotal_inactive_file " + std::to_string(inactive_file) + "\n");
  }
  HostReading read() const { return HostLimits(root_.string()).read(); }
  std::string root() const { return root_.string(); }

 private:
  fs::path root_;
};

}  // namespace

TEST_CASE("without control groups the machine's own memory counts") {
  FakeMachine machine;
  CHECK(machine.read().total_bytes == 64 * kGiB);
  CHECK(machine.read().available_bytes == 48 * kGiB);
  machine.write("proc/self/cgroup", "0::/\n");
  CHECK(machine.read().total_bytes == 64 * kGiB);
}

TEST_CASE("a kernel that does not estimate available memory is taken at its free memory") {
  FakeMachine machine;
  machine.write("proc/meminfo", "MemTotal:       67108864 kB\nMemFree:        10485760 kB\n");
  CHECK(machine.read().available_bytes == 10 * kGiB);
}

TEST_CASE("the tightest limit of all enclosing groups counts") {
  FakeMachine machine;
  machine.write("proc/self/cgroup", "0::/user.slice/job/step\n");
  machine.group_v2("/user.slice", std::to_string(16 * kGiB), 6 * kGiB);
  machine.group_v2("/user.slice/job", std::to_string(12 * kGiB), 5 * kGiB);
  machine.group_v2("/user.slice/job/step", "max", kGiB);
  CHECK(machine.read().total_bytes == 12 * kGiB);
  CHECK(machine.read().available_bytes == 7 * kGiB);
  // The outer group has more room by its limit, but less of it is left.
  machine.group_v2("/user.slice", std::to_string(16 * kGiB), 13 * kGiB);
  CHECK(machine.read().total_bytes == 12 * kGiB);
  CHECK(machine.read().available_bytes == 3 * kGiB);
  machine.group_v2("/user.slice/job/step", std::to_string(2 * kGiB), kGiB);
  CHECK(machine.read().total_bytes == 2 * kGiB);
  CHECK(machine.read().available_bytes == kGiB);
}

TEST_CASE("the machine can be tighter than the group") {
  FakeMachine machine;
  machine.write("proc/self/cgroup", "0::/job\n");
  machine.group_v2("/job", std::to_string(60 * kGiB), kGiB);
  CHECK(machine.read().total_bytes == 60 * kGiB);
  CHECK(machine.read().available_bytes == 48 * kGiB);
  machine.group_v2("/job", std::to_string(100 * kGiB), 99 * kGiB);
  CHECK(machine.read().total_bytes == 64 * kGiB);
  CHECK(machine.read().available_bytes == 48 * kGiB);
}

TEST_CASE("\"max\" is no limit") {
  FakeMachine machine;
  machine.write("proc/self/cgroup", "0::/job\n");
  machine.group_v2("/job", "max", 40 * kGiB);
  CHECK(machine.read().total_bytes == 64 * kGiB);
  CHECK(machine.read().available_bytes == 48 * kGiB);
}

TEST_CASE("a group's cached files that can be dropped count as free") {
  FakeMachine machine;
  machine.write("proc/self/cgroup", "0::/job\n");
  machine.group_v2("/job", std::to_string(8 * kGiB), 7 * kGiB, 4 * kGiB);
  CHECK(machine.read().available_bytes == 5 * kGiB);
  // More use than the limit allows (it was just lowered) is nothing free, not less than nothing.
  machine.group_v2("/job", std::to_string(2 * kGiB), 7 * kGiB, 4 * kGiB);
  CHECK(machine.read().available_bytes == 0);
}

TEST_CASE("inside a container the group's folder is the root") {
  FakeMachine machine;
  machine.write("proc/self/cgroup", "0::/docker/0123456789\n");
  machine.group_v2("", std::to_string(4 * kGiB), kGiB);
  CHECK(machine.read().total_bytes == 4 * kGiB);
  CHECK(machine.read().available_bytes == 3 * kGiB);
  machine.write("proc/self/cgroup", "0::/../other\n");
  CHECK(machine.read().total_bytes == 4 * kGiB);
}

TEST_CASE("version 1's memory controller is read too") {
  FakeMachine machine;
  machine.write("proc/self/cgroup", "12:pids:/elsewhere\n5:cpu,memory:/system/job\n3:cpuset,cpu:/elsewhere\n0::/\n");
  machine.group_v1("", 9223372036854771712, 20 * kGiB);  // how version 1 writes "no limit"
  machine.group_v1("/system/job", 8 * kGiB, 6 * kGiB, 2 * kGiB);
  CHECK(machine.read().total_bytes == 8 * kGiB);
  CHECK(machine.read().available_bytes == 4 * kGiB);
  machine.group_v1("/system", 6 * kGiB, 6 * kGiB, 2 * kGiB);
  CHECK(machine.read().total_bytes == 6 * kGiB);
  CHECK(machine.read().available_bytes == 2 * kGiB);
}

TEST_CASE("limits that change while the process runs are seen") {
  FakeMachine machine;
  machine.write("proc/self/cgroup", "0::/job\n");
  machine.group_v2("/job", "max", kGiB);
  const HostLimits limits(machine.root());
  CHECK(limits.read().total_bytes == 64 * kGiB);
  machine.group_v2("/job", std::to_string(4 * kGiB), 3 * kGiB);
  CHECK(limits.read().total_bytes == 4 * kGiB);
  CHECK(limits.read().available_bytes == kGiB);
}

TEST_CASE("numbers are found at the beginning of a line only") {
  const std::string text = "total_cache 5\ncache 7\n";
  CHECK(find_kernel_number(text, "cache ", -1) == 7);
  CHECK(find_kernel_number(text, "swap ", -1) == -1);
  CHECK(read_kernel_file("/nonexistent/file").empty());
}
