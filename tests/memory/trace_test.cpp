#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

#include <torch/types.h>

#include <yolo9/core/error.h>
#include <yolo9/memory/host_source.h>
#include <yolo9/memory/trace.h>

using namespace yolo9;

namespace {

class TraceFile {
 public:
  TraceFile() : path_(std::filesystem::temp_directory_path() / ("yolo9-trace-" + std::to_string(::getpid()))) {}
  ~TraceFile() { std::filesystem::remove(path_); }
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;
  std::string path() const { return path_.string(); }
  void write(const std::string& text) const { std::ofstream(path_) << text; }

 private:
  std::filesystem::path path_;
};

// "a1:100 m:forward f1", for comparing whole traces at once.
std::string describe(const AllocationTrace& trace) {
  std::string out;
  for (const TraceEvent& event : trace.events()) {
    if (!out.empty()) out += ' ';
    switch (event.kind) {
      case TraceEvent::Kind::Allocate:
        out += "a" + std::to_string(event.block) + ":" + std::to_string(event.bytes);
        break;
      case TraceEvent::Kind::Free: out += "f" + std::to_string(event.block); break;
      case TraceEvent::Kind::Mark: out += "m:" + trace.label(event); break;
    }
  }
  return out;
}

}  // namespace

TEST_CASE("a trace comes back from its file as it was") {
  AllocationTrace trace;
  trace.mark("forward pass");
  trace.allocate(3, 100);
  trace.allocate(0, int64_t{5} << 40);
  trace.mark("backward");
  trace.free(3);
  trace.mark("forward pass");
  trace.seed({7, 9});
  const TraceFile file;
  trace.write(file.path());
  const AllocationTrace back = AllocationTrace::read(file.path());
  CHECK(describe(back) == "a-1:7 a-2:9 m:forward pass a3:100 a0:5497558138880 m:backward f3 m:forward pass");
  CHECK(describe(back) == describe(trace));
  CHECK(back.live_bytes() == (int64_t{5} << 40) + 16);
  CHECK(back.peak_bytes() == (int64_t{5} << 40) + 116);
  // Further seeds take other numbers than those that were read.
  AllocationTrace more = back;
  more.seed({1});
  CHECK(describe(more).rfind("a-3:1 a-1:7", 0) == 0);
}

TEST_CASE("a broken trace file is refused with its line") {
  const std::string head = "yolo9-allocation-trace 1\n";
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", ":1: not an allocation trace"},
      {"a 1 100\n", ":1: not an allocation trace"},
      {"yolo9-allocation-trace 2\n", ":1: not an allocation trace"},
      {head + "a 1 100\nx 1\n", ":3: unknown event"},
      {head + "\n", ":2: unknown event"},
      {head + "m \n", ":2: unknown event"},
      {head + "a 1\n", ":2: expected \"a <block> <bytes>\""},
      {head + "a 1 100 5\n", ":2: expected \"a <block> <bytes>\""},
      {head + "a one 100\n", ":2: expected \"a <block> <bytes>\""},
      {head + "a 1 0\n", ":2: a block must have at least one byte"},
      {head + "a 1 -5\n", ":2: a block must have at least one byte"},
      {head + "a 1 99999999999999999999\n", ":2: expected \"a <block> <bytes>\""},
      {head + "a 1 5\na 1 5\n", ":3: block 1 is allocated twice"},
      {head + "f 1\n", ":2: block 1 is freed, but was never allocated"},
      {head + "a 1 5\nf 1\nf 1\n", ":4: block 1 is freed twice"},
      {head + "a 1 5\nf 1 2\n", ":3: expected \"f <block>\""},
  };
  const TraceFile file;
  for (const auto& [text, message] : cases) {
    CAPTURE(text);
    file.write(text);
    try {
      AllocationTrace::read(file.path());
      FAIL("no error");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::Usage);
      CHECK_THAT(error.what(), Catch::StartsWith(file.path() + message));
    }
  }
  CHECK_THROWS_AS(AllocationTrace::read("/nonexistent/trace"), Error);
  CHECK_THROWS_AS(AllocationTrace().write("/nonexistent/trace"), Error);
}

TEST_CASE("an impossible trace cannot be put together") {
  AllocationTrace trace;
  trace.allocate(1, 10);
  CHECK_THROWS(trace.allocate(1, 10));
  CHECK_THROWS(trace.allocate(2, 0));
  CHECK_THROWS(trace.free(2));
  CHECK_THROWS(trace.mark(""));
  CHECK_THROWS(trace.mark("two\nlines"));
  CHECK(describe(trace) == "a1:10");
}

TEST_CASE("a recording holds what budget scopes allocate, and where those blocks end") {
  install_host_meter();
  auto before = torch::empty({10}, torch::kUInt8);
  torch::Tensor kept, outside;
  start_host_trace();
  host_trace_mark("first");
  {
    const HostBudgetScope scope;
    kept = torch::empty({300}, torch::kUInt8);
    torch::empty({70}, torch::kUInt8);
    before.reset();  // was alive before: not in the trace
  }
  outside = torch::empty({55}, torch::kUInt8);  // outside a scope: not in the trace
  host_trace_mark("second");
  outside.reset();
  kept.reset();  // outside a scope, but the block is in the trace
  CHECK_THROWS(start_host_trace());
  const AllocationTrace trace = stop_host_trace();
  CHECK(describe(trace) == "m:first a0:300 a1:70 f1 m:second f0");
  CHECK_THROWS(stop_host_trace());
}

TEST_CASE("blocks of an earlier recording do not enter a later one") {
  install_host_meter();
  const HostBudgetScope scope;
  start_host_trace();
  auto early = torch::empty({40}, torch::kUInt8);
  CHECK(describe(stop_host_trace()) == "a0:40");
  host_trace_mark("nobody records");
  auto between = torch::empty({41}, torch::kUInt8);
  start_host_trace();
  auto late = torch::empty({42}, torch::kUInt8);
  early.reset();
  between.reset();
  late.reset();
  CHECK(describe(stop_host_trace()) == "a0:42 f0");
}

TEST_CASE("threads record into one consistent trace") {
  install_host_meter();
  start_host_trace();
  constexpr int kThreads = 4, kRounds = 500;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([] {
      const HostBudgetScope scope;
      for (int round = 0; round < kRounds; ++round) torch::empty({64}, torch::kUInt8);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const AllocationTrace trace = stop_host_trace();
  CHECK(trace.events().size() == 2 * kThreads * kRounds);
  CHECK(trace.live_bytes() == 0);
  CHECK(trace.peak_bytes() >= 64);
  CHECK(trace.peak_bytes() <= 64 * kThreads);
}
