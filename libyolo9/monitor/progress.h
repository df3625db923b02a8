// The progress line of an epoch.
#pragma once

#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace yolo9 {

struct ProgressState {
  int64_t epoch = 0, epochs = 0;               // epoch from 0
  int64_t batch = 0, batches = 0;              // batches done of this epoch
  int64_t memory_bytes = 0, budget_bytes = 0;  // budget 0: none
  std::vector<double> losses;                  // box, cls, dfl: means of the epoch so far
  int64_t instances = 0, image_size = 0;
  double images_per_second = 0;
  int64_t micro_batch = 0, accumulation = 0;
  double seconds_left = 0;  // of the whole run; < 0: unknown
};

// On a terminal one line that is rewritten in place, at most ten times a second; elsewhere a plain line at the end
// of each epoch and, in a long epoch, one a minute.
class Progress {
 public:
  Progress(std::ostream& stream, bool terminal);
  ~Progress();
  // Prints the column titles, as before each epoch on a terminal.
  void begin_epoch();
  void update(const ProgressState& state);
  // The epoch's last line, which stays.
  void end_epoch(const ProgressState& state);

  static std::string title_line();
  static std::string state_line(const ProgressState& state);

 private:
  void rewrite(const std::string& line);

  std::ostream& stream_;
  bool terminal_, open_line_ = false, titled_ = false;
  size_t last_width_ = 0;
  std::chrono::steady_clock::time_point last_;
};

// The bar of a scan of a data set. On a terminal one line that is rewritten in place, from half a second on, and that
// goes when the scan ends; elsewhere at most three lines, at the quarters of a scan that takes long.
class ScanBar {
 public:
  ScanBar(std::ostream& stream, bool terminal);
  ~ScanBar();
  // Another scan begins with the first call after one with done == total.
  void update(int64_t done, int64_t total);

  static std::string line(int64_t done, int64_t total, double seconds);

 private:
  using Clock = std::chrono::steady_clock;
  void clear();

  std::ostream& stream_;
  bool terminal_, running_ = false;
  size_t width_ = 0;  // of the line that stands
  int64_t quarters_ = 0;
  Clock::time_point begin_, said_;
};

// Whether a file descriptor (1: standard output, 2: standard error) is a terminal.
bool is_terminal(int descriptor);
// "1.50G", "312M"
std::string short_bytes(int64_t bytes);
// "45s", "3:07", "2:03:07"
std::string short_time(double seconds);

}  // namespace yolo9
