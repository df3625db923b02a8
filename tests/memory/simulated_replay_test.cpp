// Whole traces through the simulated allocator: worked out by hand, recorded, and random.
#include <catch2/catch.hpp>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include <c10/util/Exception.h>
#include <torch/types.h>

#include <yolo9/memory/host_source.h>
#include <yolo9/memory/simulated_source.h>

using namespace yolo9;

namespace {

constexpr int64_t M = int64_t{1} << 20;

}  // namespace

TEST_CASE("simulated: replaying a trace gives the peaks of its phases") {
  AllocationTrace trace;
  trace.mark("forward");
  trace.allocate(1, 12 * M);
  trace.allocate(2, 14 * M);
  trace.mark("backward");
  trace.free(1);
  trace.allocate(3, 16 * M);  // the freed 12 M do not hold it: a segment more
  trace.free(2);
  trace.free(3);
  trace.mark("step");
  trace.seed({30 * M});

  SimulatedCachingSource source({1000 * M, 0, false});
  const ReplayResult result = source.replay(trace);
  CHECK(result.peak_allocated_bytes == 60 * M);  // 30 + 14 + 16
  CHECK(result.peak_reserved_bytes == 72 * M);   // 30 + 12 + 14 + 16
  CHECK(result.fragmentation == Approx(1.0 / 6.0));
  CHECK(result.peak_inactive_split_bytes == 0);
  CHECK(result.retries == 0);
  REQUIRE(result.phases.size() == 3);
  const std::vector<std::string> labels{"forward", "backward", "step"};
  const std::vector<int64_t> allocated{56 * M, 60 * M, 30 * M}, reserved{56 * M, 72 * M, 72 * M};
  for (size_t i = 0; i < 3; ++i) {
    CAPTURE(i);
    CHECK(result.phases[i].label == labels[i]);
    CHECK(result.phases[i].allocated_bytes == allocated[i]);
    CHECK(result.phases[i].reserved_bytes == reserved[i]);
  }
  CHECK(source.sample().allocated_bytes == 0);
  CHECK(source.sample().reserved_bytes == 72 * M);
  // A second replay finds its segments.
  CHECK(source.replay(trace).peak_reserved_bytes == 72 * M);

  SECTION("a limit costs a retry: 12 M are given back for the last 16") {
    SimulatedCachingSource limited({1000 * M, 0, false});
    limited.set_limit(60 * M);
    const ReplayResult squeezed = limited.replay(trace);
    CHECK(squeezed.retries == 1);
    CHECK(squeezed.peak_reserved_bytes == 60 * M);
    CHECK(squeezed.fragmentation == 0);
  }
  SECTION("below that it is refused, and what the replay held is freed") {
    SimulatedCachingSource limited({1000 * M, 0, false});
    limited.set_limit(59 * M);
    CHECK_THROWS_AS(limited.replay(trace), c10::OutOfMemoryError);
    CHECK(limited.sample().allocated_bytes == 0);
    CHECK(limited.sample().ooms == 1);
  }
}

TEST_CASE("simulated: the books balance over random allocations and frees") {
  const bool expandable = GENERATE(false, true);
  CAPTURE(expandable);
  SimulatedCachingSource source({600 * M, 20 * M, expandable});
  source.set_limit(500 * M);
  std::mt19937 random(7);
  std::vector<std::pair<SimulatedCachingSource::Handle, int64_t>> live;
  int64_t requested = 0, refused = 0;
  for (int round = 0; round < 4000; ++round) {
    if (random() % 5 < 3 || live.empty()) {
      // From bytes to tens of MiB, small ones more often.
      const int64_t bytes = 1 + static_cast<int64_t>(random() % (uint64_t{1} << (4 + random() % 23)));
      try {
        live.emplace_back(source.allocate(bytes), bytes);
        requested += bytes;
      } catch (const c10::OutOfMemoryError&) {
        ++refused;
      }
    } else {
      const size_t chosen = random() % live.size();
      source.release(live[chosen].first);
      requested -= live[chosen].second;
      live[chosen] = live.back();
      live.pop_back();
    }
    if (round % 500 == 499) source.release_cached();
    const MemorySample now = source.sample();
    const bool balanced = now.requested_bytes == requested && now.allocated_bytes >= requested &&
                          now.allocated_bytes + now.inactive_split_bytes <= now.reserved_bytes &&
                          now.inactive_split_bytes >= 0 && now.reserved_bytes <= 500 * M &&
                          now.peak_reserved_bytes >= now.reserved_bytes && now.ooms == refused;
    if (!balanced) FAIL("books do not balance in round " << round);
  }
  CHECK(refused > 0);
  for (const auto& [handle, bytes] : live) source.release(handle);
  CHECK(source.sample().allocated_bytes == 0);
  CHECK(source.sample().inactive_split_bytes == 0);
  source.release_cached();
  CHECK(source.sample().reserved_bytes == 0);
}

TEST_CASE("simulated: a recording of real work replays with the peak that the host meter saw") {
  HostMemorySource host;
  auto weight = torch::rand({256, 256}, torch::kFloat32).requires_grad_(true);
  AllocationTrace trace;
  MemorySample before, after;
  {
    const HostBudgetScope scope;
    const auto input = torch::rand({64, 256});
    before = host.sample();
    host.reset_peak();
    start_host_trace();
    host_trace_mark("forward");
    auto loss = torch::relu(torch::matmul(input, weight)).pow(2).sum();
    host_trace_mark("backward");
    loss.backward();
    trace = stop_host_trace();
    after = host.sample();
  }
  CHECK(trace.peak_bytes() == after.peak_allocated_bytes - before.allocated_bytes);
  CHECK(trace.live_bytes() == after.allocated_bytes - before.allocated_bytes);
  trace.seed({256 * 256 * 4});
  SimulatedCachingSource source({1000 * M, 0, false});
  const ReplayResult result = source.replay(trace);
  CHECK(result.peak_allocated_bytes >= trace.peak_bytes());
  // Rounding adds at most 512 bytes to each block.
  CHECK(result.peak_allocated_bytes <= trace.peak_bytes() + 512 * static_cast<int64_t>(trace.events().size()));
  CHECK(result.phases.size() == 2);
}
