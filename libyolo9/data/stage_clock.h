// Where the time of making samples goes, for benchmarks. Costs a test of a pointer where nobody listens.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>

namespace yolo9 {

enum class SampleStage : uint8_t { Plan, Decode, Warp, Mix, Finish };
constexpr size_t kSampleStages = 5;
using StageSeconds = std::array<double, kSampleStages>;

// While one lives, stages that this thread goes through are added up.
class StageListener {
 public:
  explicit StageListener(StageSeconds& seconds) : before_(current_) { current_ = &seconds; }
  ~StageListener() { current_ = before_; }
  StageListener(const StageListener&) = delete;
  StageListener& operator=(const StageListener&) = delete;

 private:
  friend class StageTimer;
  StageSeconds* before_;
  static inline thread_local StageSeconds* current_ = nullptr;
};

class StageTimer {
 public:
  explicit StageTimer(SampleStage stage) : seconds_(StageListener::current_), stage_(stage) {
    if (seconds_) begin_ = std::chrono::steady_clock::now();
  }
  ~StageTimer() {
    if (!seconds_) return;
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin_;
    (*seconds_)[static_cast<size_t>(stage_)] += spent.count();
  }
  StageTimer(const StageTimer&) = delete;
  StageTimer& operator=(const StageTimer&) = delete;

 private:
  StageSeconds* seconds_;
  SampleStage stage_;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace yolo9
