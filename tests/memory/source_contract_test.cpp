// What every memory source promises, tried on each of them.
#include <catch2/catch.hpp>

#include <functional>
#include <memory>
#include <string>

#include <c10/util/Exception.h>
#include <torch/types.h>

#include <yolo9/core/error.h>
#include <yolo9/memory/cuda_source.h>
#include <yolo9/memory/host_source.h>
#include <yolo9/memory/oom.h>
#include <yolo9/memory/simulated_source.h>

using namespace yolo9;

namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

// A source together with a way to hold its memory: what `allocate` returns frees the block when it is dropped.
struct Subject {
  std::shared_ptr<MemorySource> source;
  std::function<std::shared_ptr<void>(int64_t bytes)> allocate;
  bool caches = true;  // keeps freed blocks until release_cached()
};

std::shared_ptr<void> hold(torch::Tensor tensor) { return std::make_shared<torch::Tensor>(std::move(tensor)); }

Subject host_subject() {
  return {std::make_shared<HostMemorySource>(),
          [](int64_t bytes) {
            const HostBudgetScope scope;
            return hold(torch::empty({bytes}, torch::kUInt8));
          },
          false};
}

Subject simulated_subject(bool expandable) {
  SimulatedOptions options;
  options.device_total_bytes = 1024 * kMiB;
  options.context_bytes = 100 * kMiB;
  options.expandable_segments = expandable;
  auto source = std::make_shared<SimulatedCachingSource>(options);
  return {source, [source](int64_t bytes) -> std::shared_ptr<void> {
            const auto handle = source->allocate(bytes);
            return {nullptr, [source, handle](void*) { source->release(handle); }};
          }};
}

Subject cuda_subject() {
  return {make_cuda_memory_source(0), [](int64_t bytes) {
            return hold(torch::empty({bytes}, torch::TensorOptions().dtype(torch::kUInt8).device(torch::kCUDA, 0)));
          }};
}

void check_sensible(const MemorySample& sample) {
  CHECK(sample.requested_bytes <= sample.allocated_bytes);
  CHECK(sample.allocated_bytes <= sample.active_bytes);
  CHECK(sample.active_bytes + sample.inactive_split_bytes <= sample.reserved_bytes);
  CHECK(sample.allocated_bytes <= sample.peak_allocated_bytes);
  CHECK(sample.reserved_bytes <= sample.peak_reserved_bytes);
  CHECK(sample.requested_bytes >= 0);
  CHECK(sample.inactive_split_bytes >= 0);
  CHECK(sample.held_bytes > 0);
  CHECK(sample.held_bytes <= sample.device_total_bytes);
  CHECK(sample.device_free_bytes > 0);
  CHECK(sample.device_free_bytes <= sample.device_total_bytes);
}

void check_counting(const Subject& subject) {
  const MemorySample start = subject.source->sample();
  for (const int64_t bytes : {int64_t{1}, int64_t{700}, kMiB, kMiB + 1, 5 * kMiB, 33 * kMiB + 5}) {
    CAPTURE(bytes);
    const MemorySample before = subject.source->sample();
    auto block = subject.allocate(bytes);
    const MemorySample during = subject.source->sample();
    CHECK(during.allocated_bytes - before.allocated_bytes >= bytes);
    CHECK(during.requested_bytes - before.requested_bytes == bytes);
    CHECK(during.active_bytes - before.active_bytes >= bytes);
    check_sensible(during);
    block.reset();
    const MemorySample after = subject.source->sample();
    CHECK(after.allocated_bytes == before.allocated_bytes);
    CHECK(after.reserved_bytes >= after.allocated_bytes);
  }
  CHECK(subject.source->sample().allocated_bytes == start.allocated_bytes);
  CHECK(subject.source->sample().requested_bytes == start.requested_bytes);
}

void check_peaks(const Subject& subject) {
  subject.source->release_cached();
  subject.source->reset_peak();
  const MemorySample start = subject.source->sample();
  CHECK(start.peak_allocated_bytes == start.allocated_bytes);
  CHECK(start.peak_reserved_bytes == start.reserved_bytes);
  auto first = subject.allocate(40 * kMiB);
  subject.allocate(60 * kMiB);  // dropped at once
  const MemorySample top = subject.source->sample();
  CHECK(top.peak_allocated_bytes == start.allocated_bytes + 100 * kMiB);
  CHECK(top.peak_reserved_bytes >= start.allocated_bytes + 100 * kMiB);
  CHECK(top.allocated_bytes == start.allocated_bytes + 40 * kMiB);
  subject.source->release_cached();
  subject.source->reset_peak();
  const MemorySample reset = subject.source->sample();
  CHECK(reset.peak_allocated_bytes == start.allocated_bytes + 40 * kMiB);
  CHECK(reset.peak_reserved_bytes == reset.reserved_bytes);
}

void check_release(const Subject& subject) {
  subject.source->release_cached();
  const MemorySample start = subject.source->sample();
  auto kept = subject.allocate(32 * kMiB);
  auto dropped = subject.allocate(64 * kMiB);
  dropped.reset();
  const MemorySample cached = subject.source->sample();
  subject.source->release_cached();
  const MemorySample released = subject.source->sample();
  CHECK(released.allocated_bytes == cached.allocated_bytes);
  CHECK(released.reserved_bytes >= released.allocated_bytes);
  if (subject.caches) CHECK(cached.reserved_bytes - released.reserved_bytes >= 40 * kMiB);
  kept.reset();
  subject.source->release_cached();
  CHECK(subject.source->sample().reserved_bytes == start.reserved_bytes);
}

void check_limit(const Subject& subject) {
  subject.source->release_cached();
  auto live = subject.allocate(30 * kMiB);
  const MemorySample before = subject.source->sample();
  const int64_t budget = before.reserved_bytes + 64 * kMiB;
  subject.source->set_limit(budget);
  CHECK(subject.source->sample().budget_bytes == budget);
  bool refused = false;
  try {
    subject.allocate(256 * kMiB);
  } catch (const c10::OutOfMemoryError& error) {
    refused = is_out_of_memory(error);
  }
  CHECK(refused);
  const MemorySample after = subject.source->sample();
  CHECK(after.ooms == before.ooms + 1);
  CHECK(after.allocated_bytes == before.allocated_bytes);
  CHECK(after.requested_bytes == before.requested_bytes);
  // What fits is still given, and lifting the limit gives the rest.
  CHECK_NOTHROW(subject.allocate(32 * kMiB));
  CHECK(subject.source->sample().reserved_bytes <= budget);
  subject.source->set_limit(0);
  CHECK(subject.source->sample().budget_bytes == 0);
  CHECK_NOTHROW(subject.allocate(256 * kMiB));
  CHECK(subject.source->sample().ooms == before.ooms + 1);
  subject.source->release_cached();
}

void check_contract(const Subject& subject) {
  CHECK_FALSE(subject.source->name().empty());
  check_sensible(subject.source->sample());
  check_counting(subject);
  check_peaks(subject);
  check_release(subject);
  check_limit(subject);
  check_sensible(subject.source->sample());
}

}  // namespace

TEST_CASE("every memory source keeps the same contract") {
  SECTION("host") { check_contract(host_subject()); }
  SECTION("simulated") { check_contract(simulated_subject(false)); }
  SECTION("simulated, expandable segments") { check_contract(simulated_subject(true)); }
  SECTION("CUDA") {
    if (!cuda_memory_available()) {
      WARN("no CUDA device: its memory source is not tried");
      return;
    }
    check_contract(cuda_subject());
  }
}

TEST_CASE("a CUDA device that is not there is refused in one line") {
  try {
    make_cuda_memory_source(1000);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::Device);
    const std::string what = error.what();
    CHECK(what.find("1000") != std::string::npos);
    CHECK(what.find('\n') == std::string::npos);
  }
}

TEST_CASE("what is set aside is not the process's to use") {
  HostMemorySource source;
  const int64_t before = source.sample().held_bytes;
  set_host_bytes_aside(before / 2);
  CHECK(source.sample().held_bytes == Approx(before / 2).margin(4.0 * kMiB));
  set_host_bytes_aside(before * 2);
  CHECK(source.sample().held_bytes == 0);
  set_host_bytes_aside(0);
  CHECK(source.sample().held_bytes == Approx(before).margin(4.0 * kMiB));
}

TEST_CASE("resident memory follows what the process touches") {
  HostMemorySource source;
  const int64_t before = source.sample().held_bytes;
  const auto tensor = torch::ones({64 * kMiB}, torch::kUInt8);
  CHECK(source.sample().held_bytes >= before + 48 * kMiB);
  CHECK(source.sample().held_bytes <= host_peak_resident_bytes() + kMiB);
}
