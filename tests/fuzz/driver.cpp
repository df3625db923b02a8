// Runs a fuzz target where the compiler has no libFuzzer: all seeds, then mutations of them and of what came of them,
// for some seconds. Crashes are the sanitizers' to report; the input is then in crash.bin in the current folder.
//   PROGRAM --seconds N [--seed N] FOLDER|FILE...
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
// What the sanitizers call before they end the program.
extern "C" void __sanitizer_set_death_callback(void (*callback)());

// Memory, in MiB: of one allocation, and of all together. (An rlimit would count the sanitizers' own terabytes.)
extern "C" const char* __asan_default_options() { return "max_allocation_size_mb=2048:hard_rss_limit_mb=4096"; }

namespace {

using Bytes = std::vector<uint8_t>;

Bytes current;                        // the input that is being run
constexpr unsigned kLongestRun = 20;  // seconds; no input may take so long

void save_current() {
  const int file = ::open("crash.bin", O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file < 0 || ::write(file, current.data(), current.size()) < 0) return;
  ::close(file);
}

void on_signal(int signal) {
  save_current();
  constexpr char kText[] = "fuzz: a crash, or an input that takes too long; it is in crash.bin\n";
  if (::write(2, kText, sizeof(kText) - 1) < 0) ::_exit(2);
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : state_(seed) {}

  void mutate(Bytes& bytes, const std::vector<Bytes>& others) {
    const uint64_t count = 1 + below(4);
    for (uint64_t i = 0; i < count; ++i) mutate_once(bytes, others);
    constexpr size_t kLongest = 1 << 16;
    if (bytes.size() > kLongest) bytes.resize(kLongest);
  }
  uint64_t below(uint64_t limit) {  // splitmix64
    uint64_t z = state_ += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return (z ^ (z >> 31)) % limit;
  }

 private:
  static constexpr const char* kWords[] = {"0",
                                           "-1",
                                           "1e999",
                                           "-0.0",
                                           "nan",
                                           "NaN",
                                           "-Infinity",
                                           "1e-320",
                                           "4294967296",
                                           "9223372036854775808",
                                           "65536",
                                           "null",
                                           "true",
                                           "[]",
                                           "{}",
                                           "[[",
                                           "}}",
                                           "\"",
                                           "\\u0000",
                                           "\r",
                                           "\n",
                                           "\t",
                                           "\xEF\xBB\xBF",
                                           "\xFF\xFE",
                                           "<object>",
                                           "</object>",
                                           "<!ENTITY a \"b\">",
                                           "&a;",
                                           "<![CDATA[",
                                           "]]>",
                                           "\"id\":1",
                                           "\"iscrowd\":1",
                                           "\"counts\":",
                                           "\"size\":"};

  void insert(Bytes& bytes, const uint8_t* data, size_t size) {
    const auto at = bytes.begin() + static_cast<std::ptrdiff_t>(below(bytes.size() + 1));
    bytes.insert(at, data, data + size);
  }
  void mutate_once(Bytes& bytes, const std::vector<Bytes>& others) {
    const uint64_t kind = below(8);
    if (bytes.empty() || kind == 0) {
      const char* word = kWords[below(std::size(kWords))];
      return insert(bytes, reinterpret_cast<const uint8_t*>(word), std::strlen(word));
    }
    const size_t at = below(bytes.size());
    const auto place = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    if (kind == 1) {
      bytes[at] ^= static_cast<uint8_t>(1 << below(8));
    } else if (kind == 2) {
      constexpr uint8_t kTelling[] = {0, 1, 0x7F, 0x80, 0xFF};
      bytes[at] = kTelling[below(std::size(kTelling))];
    } else if (kind == 3) {
      bytes.resize(at);
    } else if (kind == 4) {
      bytes.erase(place, place + static_cast<std::ptrdiff_t>(1 + below(std::min<size_t>(16, bytes.size() - at))));
    } else if (kind == 5) {  // a piece of another
      const Bytes& other = others[below(others.size())];
      if (other.empty()) return;
      const size_t from = below(other.size());
      insert(bytes, other.data() + from, 1 + below(std::min<size_t>(64, other.size() - from)));
    } else if (kind == 6) {  // a piece of itself again
      const Bytes piece(place, place + static_cast<std::ptrdiff_t>(1 + below(std::min<size_t>(64, bytes.size() - at))));
      insert(bytes, piece.data(), piece.size());
    } else {
      replace_number(bytes, at);
    }
  }
  void replace_number(Bytes& bytes, size_t at) {
    const auto is_digit = [&](size_t i) { return bytes[i] >= '0' && bytes[i] <= '9'; };
    while (at < bytes.size() && !is_digit(at)) ++at;
    size_t end = at;
    while (end < bytes.size() && is_digit(end)) ++end;
    if (at == end) return;
    bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(at), bytes.begin() + static_cast<std::ptrdiff_t>(end));
    const std::string number = below(2) == 0 ? kWords[below(11)] : std::to_string(below(100000));
    bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), number.begin(), number.end());
  }

  uint64_t state_;
};

Bytes read_file(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void run(const Bytes& bytes) {
  current = bytes;
  ::alarm(kLongestRun);
  LLVMFuzzerTestOneInput(current.data(), current.size());
  ::alarm(0);
}

}  // namespace

int main(int argc, char** argv) {
  double seconds = 10;
  uint64_t seed = 1;
  std::vector<Bytes> inputs;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--seconds" && i + 1 < argc) {
      seconds = std::atof(argv[++i]);
    } else if (argument == "--seed" && i + 1 < argc) {
      seed = std::strtoull(argv[++i], nullptr, 10);
    } else if (std::filesystem::is_directory(argument)) {
      for (const auto& entry : std::filesystem::directory_iterator(argument)) inputs.push_back(read_file(entry.path()));
    } else {
      inputs.push_back(read_file(argument));
    }
  }
  if (inputs.empty()) return std::fprintf(stderr, "fuzz: no seeds\n"), 2;
  __sanitizer_set_death_callback(&save_current);
  for (const int signal : {SIGABRT, SIGALRM}) ::signal(signal, &on_signal);

  const size_t seeds = inputs.size();
  for (const Bytes& bytes : inputs) run(bytes);
  Mutator mutator(seed);
  uint64_t executions = seeds;
  const auto begin = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  while (elapsed() < seconds) {
    Bytes bytes = inputs[mutator.below(inputs.size())];
    mutator.mutate(bytes, inputs);
    run(bytes);
    ++executions;
    // Some of what comes of them is mutated further; the seeds always stay.
    constexpr size_t kMostInputs = 2000;
    if (mutator.below(20) != 0) continue;
    if (inputs.size() < kMostInputs) {
      inputs.push_back(std::move(bytes));
    } else {
      inputs[seeds + mutator.below(kMostInputs - seeds)] = std::move(bytes);
    }
  }
  std::printf("%llu executions in %.0f s, nothing found\n", static_cast<unsigned long long>(executions), elapsed());
  return 0;
}
