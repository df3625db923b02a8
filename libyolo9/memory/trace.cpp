#include <yolo9/memory/trace.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include <c10/util/Exception.h>

#include <yolo9/core/error.h>

namespace yolo9 {

namespace {

constexpr const char* kHeader = "yolo9-allocation-trace 1";

}  // namespace

void AllocationTrace::allocate(int64_t block, int64_t bytes) {
  TORCH_CHECK(bytes > 0, "[allocation trace] block ", block, " of ", bytes, " bytes");
  TORCH_CHECK(blocks_.emplace(block, bytes).second, "[allocation trace] block ", block, " is allocated twice");
  events_.push_back({TraceEvent::Kind::Allocate, block, bytes});
  live_bytes_ += bytes;
}

void AllocationTrace::free(int64_t block) {
  const auto found = blocks_.find(block);
  TORCH_CHECK(found != blocks_.end() && found->second > 0, "[allocation trace] block ", block,
              " is freed, but not allocated");
  events_.push_back({TraceEvent::Kind::Free, block, 0});
  live_bytes_ -= found->second;
  found->second = 0;
}

void AllocationTrace::mark(const std::string& label) {
  TORCH_CHECK(!label.empty() && label.find('\n') == std::string::npos, "[allocation trace] bad label \"", label, "\"");
  auto found = std::find(labels_.begin(), labels_.end(), label);
  if (found == labels_.end()) found = labels_.insert(found, label);
  events_.push_back({TraceEvent::Kind::Mark, found - labels_.begin(), 0});
}

void AllocationTrace::seed(const std::vector<int64_t>& bytes_of_blocks) {
  std::vector<TraceEvent> front;
  for (const int64_t bytes : bytes_of_blocks) {
    TORCH_CHECK(bytes > 0, "[allocation trace] a seed of ", bytes, " bytes");
    // A trace that was read may hold seeds of its own.
    while (!blocks_.emplace(-1 - seeds_, bytes).second) ++seeds_;
    front.push_back({TraceEvent::Kind::Allocate, -1 - seeds_, bytes});
    live_bytes_ += bytes;
  }
  events_.insert(events_.begin(), front.begin(), front.end());
}

int64_t AllocationTrace::peak_bytes() const {
  std::map<int64_t, int64_t> bytes_of;
  int64_t live = 0, peak = 0;
  for (const TraceEvent& event : events_) {
    if (event.kind == TraceEvent::Kind::Allocate) live += bytes_of[event.block] = event.bytes;
    if (event.kind == TraceEvent::Kind::Free) live -= bytes_of[event.block];
    peak = std::max(peak, live);
  }
  return peak;
}

void AllocationTrace::write(const std::string& path) const {
  std::ofstream file(path);
  file << kHeader << '\n';
  for (const TraceEvent& event : events_) {
    switch (event.kind) {
      case TraceEvent::Kind::Allocate: file << "a " << event.block << ' ' << event.bytes << '\n'; break;
      case TraceEvent::Kind::Free: file << "f " << event.block << '\n'; break;
      case TraceEvent::Kind::Mark: file << "m " << label(event) << '\n'; break;
    }
  }
  file.close();
  if (!file) throw Error(ErrorKind::Usage, "cannot write the allocation trace", path);
}

AllocationTrace AllocationTrace::read(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw Error(ErrorKind::Usage, "cannot open the allocation trace", path);
  int64_t line_number = 1;
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorKind::Usage, what, path + ":" + std::to_string(line_number));
  };
  AllocationTrace out;
  std::string line;
  if (!std::getline(file, line) || line != kHeader) {
    refuse("not an allocation trace: its first line must be \"" + std::string(kHeader) + "\"");
  }
  while (std::getline(file, line)) {
    ++line_number;
    std::istringstream words(line.size() > 2 ? line.substr(2) : "");
    const char kind = line.size() > 2 && line[1] == ' ' ? line[0] : '\0';
    int64_t block = 0, bytes = 0;
    std::string more;
    if (kind == 'm') {
      out.mark(line.substr(2));
    } else if (kind == 'a') {
      if (!(words >> block >> bytes) || words >> more) refuse("expected \"a <block> <bytes>\"");
      if (bytes <= 0) refuse("a block must have at least one byte");
      if (out.blocks_.count(block)) refuse("block " + std::to_string(block) + " is allocated twice");
      out.allocate(block, bytes);
    } else if (kind == 'f') {
      if (!(words >> block) || words >> more) refuse("expected \"f <block>\"");
      const auto found = out.blocks_.find(block);
      if (found == out.blocks_.end()) refuse("block " + std::to_string(block) + " is freed, but was never allocated");
      if (found->second == 0) refuse("block " + std::to_string(block) + " is freed twice");
      out.free(block);
    } else {
      refuse("unknown event \"" + line + "\": a line begins with a, f or m and a space");
    }
  }
  return out;
}

}  // namespace yolo9
