#include <yolo9/monitor/progress.h>

#include <cmath>
#include <cstdio>
#include <ostream>

#include <unistd.h>

namespace yolo9 {

namespace {

template <class... Values>
std::string format(const char* pattern, Values... values) {
  char text[160];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

}  // namespace

bool is_terminal(int descriptor) { return ::isatty(descriptor) == 1; }

std::string short_bytes(int64_t bytes) {
  const auto value = static_cast<double>(bytes);
  constexpr double kKilo = 1024.0, kMega = kKilo * 1024, kGiga = kMega * 1024;
  if (value >= 999.5 * kMega) return format(value < 99.95 * kGiga ? "%.3gG" : "%.0fG", value / kGiga);
  if (value >= kMega) return format("%.0fM", value / kMega);
  return format("%.0fK", value / kKilo);
}

std::string short_time(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "-";
  const auto total = static_cast<long long>(std::llround(seconds));
  if (total < 60) return format("%llds", total);
  if (total < 3600) return format("%lld:%02lld", total / 60, total % 60);
  return format("%lld:%02lld:%02lld", total / 3600, total / 60 % 60, total % 60);
}

Progress::Progress(std::ostream& stream, bool terminal)
    : stream_(stream), terminal_(terminal), last_(std::chrono::steady_clock::now()) {}

Progress::~Progress() {
  if (open_line_) stream_ << std::endl;
}

std::string Progress::title_line() {
  return format("%11s %13s %9s %9s %9s %9s %6s %8s %9s %9s", "Epoch", "Memory", "box_loss", "cls_loss", "dfl_loss",
                "Instances", "Size", "img/s", "batch", "left");
}

std::string Progress::state_line(const ProgressState& s) {
  std::string memory = short_bytes(s.memory_bytes);
  if (s.budget_bytes > 0) memory += "/" + short_bytes(s.budget_bytes);
  std::string line =
      format("%11s %13s", (std::to_string(s.epoch + 1) + "/" + std::to_string(s.epochs)).c_str(), memory.c_str());
  for (size_t i = 0; i < 3; ++i) {
    line += i < s.losses.size() ? format(" %9.4g", s.losses[i]) : format(" %9s", "-");
  }
  const std::string batch = std::to_string(s.micro_batch) + " x " + std::to_string(s.accumulation);
  return line + format(" %9lld %6lld %8.1f %9s %9s", static_cast<long long>(s.instances),
                       static_cast<long long>(s.image_size), s.images_per_second, batch.c_str(),
                       short_time(s.seconds_left).c_str());
}

ScanBar::ScanBar(std::ostream& stream, bool terminal) : stream_(stream), terminal_(terminal) {}

ScanBar::~ScanBar() { clear(); }

std::string ScanBar::line(int64_t done, int64_t total, double seconds) {
  constexpr int64_t kWidth = 30;
  const auto filled = static_cast<size_t>(total > 0 ? kWidth * done / total : 0);
  const double left = done > 0 ? seconds * static_cast<double>(total - done) / static_cast<double>(done) : -1;
  return "scan [" + std::string(filled, '=') + std::string(kWidth - filled, ' ') + "] " + std::to_string(done) +
         " of " + std::to_string(total) + " pictures, " + short_time(left) + " left";
}

void ScanBar::clear() {
  if (width_ > 0) stream_ << '\r' << std::string(width_, ' ') << '\r' << std::flush;
  width_ = 0;
}

void ScanBar::update(int64_t done, int64_t total) {
  const Clock::time_point now = Clock::now();
  if (!running_) {
    begin_ = said_ = now;
    quarters_ = 0;
    running_ = true;
  }
  if (done >= total) {
    clear();
    running_ = false;
    return;
  }
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  constexpr double kNoticed = 0.5;
  if (terminal_) {
    if (seconds < kNoticed) return;
    const std::string text = line(done, total, seconds);
    stream_ << '\r' << text << std::string(width_ > text.size() ? width_ - text.size() : 0, ' ') << std::flush;
    width_ = text.size();
    return;
  }
  const int64_t quarter = 4 * done / total;
  if (quarter <= quarters_ || now - said_ < std::chrono::seconds(5)) return;
  quarters_ = quarter;
  said_ = now;
  stream_ << "scan: " << done << " of " << total << " pictures" << std::endl;
}

void Progress::begin_epoch() {
  if (!terminal_ && titled_) return;
  stream_ << (terminal_ && titled_ ? "\n" : "") << title_line() << std::endl;
  titled_ = true;
}

void Progress::rewrite(const std::string& line) {
  stream_ << '\r' << line;
  if (line.size() < last_width_) stream_ << std::string(last_width_ - line.size(), ' ');
  stream_ << std::flush;
  last_width_ = line.size();
  open_line_ = true;
}

void Progress::update(const ProgressState& state) {
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < (terminal_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(60000))) return;
  last_ = now;
  const int64_t percent = state.batches > 0 ? 100 * state.batch / state.batches : 0;
  const std::string line = state_line(state) + format("  %3lld%%", static_cast<long long>(percent));
  if (terminal_) {
    rewrite(line);
  } else {
    stream_ << line << std::endl;
  }
}

void Progress::end_epoch(const ProgressState& state) {
  if (terminal_) {
    rewrite(state_line(state));
    stream_ << std::endl;
    open_line_ = false;
    last_width_ = 0;
  } else {
    stream_ << state_line(state) << std::endl;
  }
  last_ = std::chrono::steady_clock::now();
}

}  // namespace yolo9
