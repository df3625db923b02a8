// Traces worked out by hand. M is 2^20 bytes; "@" gives offsets in a segment.
#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include <c10/util/Exception.h>

#include <yolo9/memory/oom.h>
#include <yolo9/memory/simulated_source.h>

using namespace yolo9;

namespace {

constexpr int64_t M = int64_t{1} << 20;

SimulatedCachingSource make_source(bool expandable = false, int64_t total = 1000 * M, int64_t context = 0) {
  SimulatedOptions options;
  options.device_total_bytes = total;
  options.context_bytes = context;
  options.expandable_segments = expandable;
  return SimulatedCachingSource(options);
}

void check_bytes(const MemorySource& source, int64_t allocated, int64_t reserved, int64_t inactive_split) {
  const MemorySample now = source.sample();
  CHECK(now.allocated_bytes == allocated);
  CHECK(now.reserved_bytes == reserved);
  CHECK(now.inactive_split_bytes == inactive_split);
}

}  // namespace

TEST_CASE("simulated: sizes are rounded up to 512 bytes in segments of 2 MiB") {
  auto source = make_source();
  source.allocate(1);  // 512
  check_bytes(source, 512, 2 * M, 2 * M - 512);
  source.allocate(513);  // 1024, behind it
  check_bytes(source, 1536, 2 * M, 2 * M - 1536);
  source.allocate(512);
  check_bytes(source, 2048, 2 * M, 2 * M - 2048);
  CHECK(source.sample().requested_bytes == 1 + 513 + 512);
  CHECK(source.sample().active_bytes == 2048);
}

TEST_CASE("simulated: 1 MiB belongs to the small pool, one byte more to the large one") {
  auto source = make_source();
  source.allocate(M);
  check_bytes(source, M, 2 * M, M);
  source.allocate(M);  // fills the segment
  check_bytes(source, 2 * M, 2 * M, 0);
  source.allocate(M);  // a second one
  check_bytes(source, 3 * M, 4 * M, M);
  source.allocate(M + 1);  // M + 512 of 20 M
  check_bytes(source, 4 * M + 512, 24 * M, M + 19 * M - 512);
}

TEST_CASE("simulated: a large block is cut only if more than 1 MiB remains") {
  // 9.5 M of a 20 M segment leave 10.5 M.
  SECTION("0.75 M remain: given away whole") {
    auto source = make_source();
    source.allocate(19 * M / 2);
    check_bytes(source, 19 * M / 2, 20 * M, 21 * M / 2);
    source.allocate(39 * M / 4);
    check_bytes(source, 20 * M, 20 * M, 0);
    CHECK(source.sample().requested_bytes == 77 * M / 4);
  }
  SECTION("exactly 1 M remains: given away whole") {
    auto source = make_source();
    source.allocate(19 * M / 2);
    source.allocate(19 * M / 2);
    check_bytes(source, 20 * M, 20 * M, 0);
  }
  SECTION("1 M and 512 bytes remain: cut") {
    auto source = make_source();
    source.allocate(19 * M / 2);
    source.allocate(19 * M / 2 - 512);
    check_bytes(source, 19 * M - 512, 20 * M, M + 512);
  }
}

TEST_CASE("simulated: from 10 MiB on a request has its own segment, in steps of 2 MiB") {
  const auto reserved = [](int64_t bytes) {
    auto source = make_source();
    source.allocate(bytes);
    return source.sample().reserved_bytes;
  };
  CHECK(reserved(10 * M - 512) == 20 * M);
  CHECK(reserved(10 * M - 511) == 10 * M);  // rounded first
  CHECK(reserved(10 * M) == 10 * M);
  CHECK(reserved(10 * M + 1) == 12 * M);
  CHECK(reserved(123 * M) == 124 * M);
  auto source = make_source();
  source.allocate(11 * M);  // 12 M segment, 1 M left: not cut
  check_bytes(source, 12 * M, 12 * M, 0);
  source.allocate(10 * M + 1);  // 12 M segment, 2 M - 512 left: cut
  check_bytes(source, 22 * M + 512, 24 * M, 2 * M - 512);
}

TEST_CASE("simulated: a freed block merges with free neighbours on both sides") {
  auto source = make_source();
  const auto a = source.allocate(6 * M);  // @0
  const auto b = source.allocate(6 * M);  // @6
  const auto c = source.allocate(6 * M);  // @12, 2 M left @18
  check_bytes(source, 18 * M, 20 * M, 2 * M);
  source.release(a);
  check_bytes(source, 12 * M, 20 * M, 8 * M);
  source.release(c);  // 8 M free @12
  check_bytes(source, 6 * M, 20 * M, 14 * M);
  const auto d = source.allocate(8 * M - 512);  // fits @12 only if c merged with the rest; 512 bytes left: not cut
  check_bytes(source, 14 * M, 20 * M, 6 * M);
  source.release(d);
  source.release(b);  // joins both sides: the segment is whole again, so nothing of it is fragmentation
  check_bytes(source, 0, 20 * M, 0);
  source.allocate(18 * M);  // an unmerged segment could not hold it
  check_bytes(source, 18 * M, 20 * M, 2 * M);
}

TEST_CASE("simulated: the smallest block that suffices is taken, and whole segments go back") {
  auto source = make_source();
  std::vector<SimulatedCachingSource::Handle> handles;
  for (const int64_t bytes : {12 * M, 30 * M, 16 * M, 50 * M}) handles.push_back(source.allocate(bytes));
  for (const auto handle : handles) source.release(handle);
  check_bytes(source, 0, 108 * M, 0);
  const auto fit = source.allocate(14 * M);  // of the 16 M segment
  check_bytes(source, 14 * M, 108 * M, 2 * M);
  source.release_cached();
  check_bytes(source, 14 * M, 16 * M, 2 * M);
  source.release(fit);
  source.release_cached();
  check_bytes(source, 0, 0, 0);
  CHECK(source.sample().peak_reserved_bytes == 108 * M);
  source.reset_peak();
  CHECK(source.sample().peak_reserved_bytes == 0);
}

TEST_CASE("simulated: small and large requests never share a segment") {
  auto source = make_source();
  source.release(source.allocate(15 * M));
  check_bytes(source, 0, 16 * M, 0);
  source.allocate(1000);  // although 16 M lie free
  check_bytes(source, 1024, 18 * M, 2 * M - 1024);
}

TEST_CASE("simulated: at the limit cached segments are given back and the request is tried again") {
  auto source = make_source();
  source.set_limit(60 * M);
  source.release(source.allocate(40 * M));
  CHECK(source.sample().retries == 0);
  source.allocate(50 * M);  // 40 + 50 > 60
  check_bytes(source, 50 * M, 50 * M, 0);
  CHECK(source.sample().retries == 1);
  CHECK(source.sample().ooms == 0);
  CHECK(source.sample().peak_reserved_bytes == 50 * M);
}

TEST_CASE("simulated: what still does not fit is refused, and nothing that lives is touched") {
  auto source = make_source();
  source.set_limit(60 * M);
  source.allocate(40 * M);
  std::string message;
  try {
    source.allocate(30 * M);
  } catch (const c10::OutOfMemoryError& error) {
    CHECK(is_out_of_memory(error));
    message = error.what_without_backtrace();
  }
  CHECK_THAT(message, Catch::Contains("30.00 MiB") && Catch::Contains("40.00 MiB allocated") &&
                          Catch::Contains("budget 60.00 MiB"));
  CHECK(source.sample().ooms == 1);
  CHECK(source.sample().retries == 1);
  check_bytes(source, 40 * M, 40 * M, 0);
  source.allocate(20 * M);  // exactly what is left
  check_bytes(source, 60 * M, 60 * M, 0);
  source.set_limit(0);
  source.allocate(900 * M);
  CHECK(source.sample().ooms == 1);
}

TEST_CASE("simulated: fragmentation refuses a request although more bytes are free") {
  auto source = make_source();
  source.set_limit(40 * M);
  // Two segments: 8 M @0, 8 M @8, 4 M left @16 in each.
  std::vector<SimulatedCachingSource::Handle> handles;
  for (int block = 0; block < 4; ++block) handles.push_back(source.allocate(8 * M));
  check_bytes(source, 32 * M, 40 * M, 8 * M);
  source.release(handles[0]);
  source.release(handles[2]);
  check_bytes(source, 16 * M, 40 * M, 24 * M);
  CHECK_THROWS_AS(source.allocate(9 * M), c10::OutOfMemoryError);
  check_bytes(source, 16 * M, 40 * M, 24 * M);
  source.release(handles[1]);  // the first segment is free, and 9 M of it are taken
  source.allocate(9 * M);
  check_bytes(source, 17 * M, 40 * M, 23 * M);
}

TEST_CASE("simulated: what others hold and the context are missing from the device") {
  auto source = make_source(false, 100 * M, 10 * M);
  source.allocate(60 * M);
  CHECK(source.sample().held_bytes == 70 * M);
  CHECK(source.sample().device_free_bytes == 30 * M);
  source.set_others_bytes(20 * M);
  CHECK(source.sample().device_free_bytes == 10 * M);
  CHECK(source.sample().held_bytes == 70 * M);
  CHECK_THROWS_AS(source.allocate(20 * M), c10::OutOfMemoryError);
  source.allocate(10 * M);
  CHECK(source.sample().device_free_bytes == 0);
  source.set_others_bytes(0);
  source.allocate(20 * M);
  check_bytes(source, 90 * M, 90 * M, 0);
  source.set_others_bytes(50 * M);  // more than there is: the device cannot say less than nothing
  CHECK(source.sample().device_free_bytes == 0);
}

TEST_CASE("simulated: an expandable segment grows where others would need a second segment") {
  auto plain = make_source();
  auto expandable = make_source(true);
  for (SimulatedCachingSource* source : {&plain, &expandable}) {
    source->release(source->allocate(30 * M));
    source->allocate(50 * M);
  }
  check_bytes(plain, 50 * M, 80 * M, 0);
  // 30 M: two pages of 20 M. 50 M: one page more, 10 M left @50.
  check_bytes(expandable, 50 * M, 60 * M, 10 * M);
  // The small pool's pages have 2 M.
  expandable.allocate(1000);
  check_bytes(expandable, 50 * M + 1024, 62 * M, 10 * M + 2 * M - 1024);
}

TEST_CASE("simulated: expandable segments give back whole free pages, and map holes again") {
  auto source = make_source(true);
  const auto a = source.allocate(30 * M);  // @0, pages 0 and 1
  source.allocate(5 * M);                  // @30
  check_bytes(source, 35 * M, 40 * M, 5 * M);
  source.release(a);  // free: 30 M @0, of which page 0 could be given back; 5 M @35
  check_bytes(source, 5 * M, 40 * M, 15 * M);
  source.release_cached();
  check_bytes(source, 5 * M, 20 * M, 15 * M);  // 10 M @20 and 5 M @35
  // 25 M: no free block is large enough. The hole @0 and the free 10 M behind it are.
  const auto b = source.allocate(25 * M);
  check_bytes(source, 30 * M, 40 * M, 10 * M);  // 5 M @25, 5 M @35
  source.release(b);
  source.release_cached();
  check_bytes(source, 5 * M, 20 * M, 15 * M);
  // 31 M: hole and free block have 30 M only, so the segment's end grows: 5 M @35 and two pages.
  source.allocate(31 * M);
  check_bytes(source, 36 * M, 60 * M, 24 * M);  // 10 M @20, 14 M @66
}

TEST_CASE("simulated: the growing end of an expandable segment is the last to be cut") {
  auto source = make_source(true);
  const auto a = source.allocate(8 * M);  // @0
  source.allocate(8 * M);                 // @8, 4 M left @16
  source.release(a);
  source.allocate(3 * M);  // @0, not @16, where less would remain
  source.allocate(5 * M);  // @3, exactly
  source.allocate(4 * M);  // @16, exactly: had the first gone there, a page more would be needed now
  check_bytes(source, 20 * M, 20 * M, 0);
}

TEST_CASE("simulated: expandable segments cut large blocks from 512 bytes on") {
  auto source = make_source(true);
  source.allocate(20 * M - 512);
  check_bytes(source, 20 * M - 512, 20 * M, 512);
}

TEST_CASE("simulated: expandable segments retry and refuse as well") {
  auto source = make_source(true);
  source.set_limit(42 * M);
  source.release(source.allocate(100));                             // a small page, 2 M
  const auto a = source.allocate(21 * M);                           // two pages
  CHECK_THROWS_AS(source.allocate(20 * M), c10::OutOfMemoryError);  // the small page goes, 60 M are too many
  CHECK(source.sample().retries == 1);
  check_bytes(source, 21 * M, 40 * M, 19 * M);
  source.release(a);
  source.allocate(40 * M);
  check_bytes(source, 40 * M, 40 * M, 0);
  CHECK(source.sample().ooms == 1);
}

TEST_CASE("simulated: wrong use is told") {
  auto source = make_source();
  const auto handle = source.allocate(1);
  source.release(handle);
  CHECK_THROWS(source.release(handle));
  CHECK_THROWS(source.allocate(0));
  CHECK_THROWS(make_source(false, 0));
}
