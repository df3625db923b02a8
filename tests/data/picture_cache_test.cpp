#include <yolo9/data/picture_cache.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <thread>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <yolo9/core/error.h>
#include <catch2/catch.hpp>
#include <opencv2/core.hpp>

#include "data_set_support.h"

namespace {

namespace fs = std::filesystem;

constexpr int64_t kPlenty = int64_t{1} << 30;

std::vector<yolo9::PixelSize> some_sizes(int64_t count) {
  std::vector<yolo9::PixelSize> sizes;
  for (int64_t i = 0; i < count; ++i) sizes.push_back({10 + i % 7, 20 + i % 5});
  return sizes;
}

cv::Mat picture(const std::vector<yolo9::PixelSize>& sizes, int64_t index, uint64_t seed = 0) {
  const auto size = sizes[static_cast<size_t>(index)];
  return data_set::noise(static_cast<int>(size.height), static_cast<int>(size.width),
                         static_cast<uint64_t>(index) + 1000 * seed);
}

bool same(const cv::Mat& a, const cv::Mat& b) {
  return a.size() == b.size() && a.type() == b.type() && cv::norm(a, b, cv::NORM_INF) == 0;
}

void fill(yolo9::PictureCache& cache, const std::vector<yolo9::PixelSize>& sizes, uint64_t seed = 0) {
  for (int64_t i = 0; i < static_cast<int64_t>(sizes.size()); ++i) cache.put(i, picture(sizes, i, seed));
}

int64_t found(const yolo9::PictureCache& cache, const std::vector<yolo9::PixelSize>& sizes, uint64_t seed = 0) {
  int64_t count = 0;
  for (int64_t i = 0; i < static_cast<int64_t>(sizes.size()); ++i) {
    const cv::Mat there = cache.find(i);
    if (there.empty()) continue;
    CHECK(same(there, picture(sizes, i, seed)));
    ++count;
  }
  return count;
}

std::string file_in(const std::string& name) { return fixture::temporary_dir(name) + "/pictures/set.raw"; }

// Changes one byte of the file.
void damage(const std::string& file, int64_t offset) {
  std::fstream stream(file, std::ios::binary | std::ios::in | std::ios::out);
  stream.seekg(offset);
  const auto byte = static_cast<char>(stream.get() ^ 0x55);
  stream.seekp(offset);
  stream.put(byte);
  REQUIRE(stream.good());
}

// In another process, where a lock is another's: the function's result, below 256.
template <typename Function>
int in_other_process(Function&& function) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(function());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("pictures are kept in memory within the budget", "[data]") {
  const auto sizes = some_sizes(40);
  const auto whole = yolo9::make_memory_cache(sizes, kPlenty);
  CHECK(whole->kept_pictures() == 40);
  CHECK(found(*whole, sizes) == 0);
  fill(*whole, sizes);
  CHECK(found(*whole, sizes) == 40);
  CHECK(whole->describe().find("40 pictures in ") == 0);

  for (const int64_t budget : {int64_t{0}, int64_t{100}, whole->bytes() / 3, whole->bytes() - 1, whole->bytes()}) {
    CAPTURE(budget);
    const auto part = yolo9::make_memory_cache(sizes, budget);
    CHECK(part->bytes() <= budget);
    CHECK((part->kept_pictures() == 40) == (budget == whole->bytes()));
    fill(*part, sizes);
    CHECK(found(*part, sizes) == part->kept_pictures());
    for (int64_t i = 0; i < 40; ++i) CHECK(part->keeps(i) == (i < part->kept_pictures()));
    if (budget < whole->bytes()) CHECK(part->describe().find("of 40 pictures fit in") != std::string::npos);
  }
}

TEST_CASE("a place takes one picture of its size, and more can be read behind it", "[data]") {
  const auto sizes = some_sizes(3);
  const auto cache = yolo9::make_memory_cache(sizes, kPlenty);
  cache->put(1, picture(sizes, 0));
  CHECK(cache->find(1).empty());
  cache->put(1, picture(sizes, 1));
  cache->put(1, picture(sizes, 1, 5));
  CHECK(same(cache->find(1), picture(sizes, 1)));
  cache->put(2, picture(sizes, 2));
  const cv::Mat last = cache->find(2);
  REQUIRE(last.isContinuous());
  const uint8_t* end = last.data + last.total() * 3;
  CHECK(std::accumulate(end, end + 16, 0) == 0);
}

TEST_CASE("many threads fill and read a cache", "[data]") {
  const auto sizes = some_sizes(64);
  const std::string file = file_in("cache_threads");
  for (const bool disk : {false, true}) {
    CAPTURE(disk);
    const auto cache =
        disk ? yolo9::make_disk_cache(file, sizes, "x", kPlenty) : yolo9::make_memory_cache(sizes, kPlenty);
    REQUIRE(cache);
    std::atomic<int64_t> wrong{0};
    std::vector<std::thread> threads;
    for (int64_t t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (int64_t k = 0; k < 64; ++k) {
          const int64_t i = t % 2 == 0 ? k : 63 - k;
          cv::Mat there = cache->find(i);
          if (there.empty()) cache->put(i, picture(sizes, i));
          there = cache->find(i);
          if (!there.empty() && !same(there, picture(sizes, i))) ++wrong;
        }
      });
    }
    for (auto& thread : threads) thread.join();
    CHECK(wrong == 0);
    CHECK(found(*cache, sizes) == 64);
  }
}

TEST_CASE("a later run uses the file of an earlier one", "[data]") {
  const auto sizes = some_sizes(20);
  const std::string file = file_in("cache_reuse");
  {
    const auto cache = yolo9::make_disk_cache(file, sizes, "pictures of Monday", kPlenty);
    REQUIRE(cache);
    CHECK(cache->describe().find("reused") == std::string::npos);
    for (int64_t i = 0; i < 20; i += 2) cache->put(i, picture(sizes, i));
    CHECK(found(*cache, sizes) == 10);
  }
  {
    const auto cache = yolo9::make_disk_cache(file, sizes, "pictures of Monday", kPlenty);
    REQUIRE(cache);
    CHECK(cache->describe().find("reused: 10 are there already") != std::string::npos);
    CHECK(found(*cache, sizes) == 10);
    fill(*cache, sizes);
  }
  {
    // Less room: the first ones; more room again: all of them.
    const auto part = yolo9::make_disk_cache(file, sizes, "pictures of Monday", 3000);
    REQUIRE(part);
    CHECK(part->kept_pictures() > 0);
    CHECK(part->kept_pictures() < 20);
    CHECK(found(*part, sizes) == part->kept_pictures());
  }
  const auto again = yolo9::make_disk_cache(file, sizes, "pictures of Monday", kPlenty);
  REQUIRE(again);
  CHECK(found(*again, sizes) == 20);
}

TEST_CASE("other pictures or other sizes begin anew", "[data]") {
  auto sizes = some_sizes(8);
  const std::string file = file_in("cache_anew");
  fill(*yolo9::make_disk_cache(file, sizes, "a", kPlenty), sizes);
  CHECK(found(*yolo9::make_disk_cache(file, sizes, "b", kPlenty), sizes) == 0);
  fill(*yolo9::make_disk_cache(file, sizes, "b", kPlenty), sizes, 2);
  sizes[3].width += 1;
  CHECK(found(*yolo9::make_disk_cache(file, sizes, "b", kPlenty), sizes) == 0);
  CHECK(std::distance(fs::directory_iterator(fs::path(file).parent_path()), fs::directory_iterator()) == 1);
}

TEST_CASE("what is damaged is not trusted, and is mended", "[data]") {
  const auto sizes = some_sizes(12);
  const std::string file = file_in("cache_damaged");
  fill(*yolo9::make_disk_cache(file, sizes, "x", kPlenty), sizes);
  const auto length = static_cast<int64_t>(fs::file_size(file));
  SECTION("a pixel") {
    damage(file, 8192 + 5);  // of the first picture: header and table take two pages
    const auto cache = yolo9::make_disk_cache(file, sizes, "x", kPlenty);
    CHECK(found(*cache, sizes) == 11);
    fill(*cache, sizes);
    CHECK(found(*cache, sizes) == 12);
  }
  SECTION("a checksum or a mark in the table") {
    for (const int64_t offset : {4096 + 16 * 2, 4096 + 16 * 3 + 8}) damage(file, offset);
    CHECK(found(*yolo9::make_disk_cache(file, sizes, "x", kPlenty), sizes) == 10);
  }
  SECTION("the header") {
    damage(file, 3);
    const auto cache = yolo9::make_disk_cache(file, sizes, "x", kPlenty);
    CHECK(found(*cache, sizes) == 0);
    fill(*cache, sizes);
    CHECK(found(*cache, sizes) == 12);
  }
  SECTION("the end, or everything but the beginning") {
    for (const int64_t kept : {length - 100, int64_t{5000}, int64_t{10}, int64_t{0}}) {
      CAPTURE(kept);
      fs::resize_file(file, static_cast<uintmax_t>(kept));
      const auto cache = yolo9::make_disk_cache(file, sizes, "x", kPlenty);
      REQUIRE(cache);
      found(*cache, sizes);  // whatever is found is right
      fill(*cache, sizes);
      CHECK(found(*cache, sizes) == 12);
    }
  }
}

TEST_CASE("a process killed while it writes leaves nothing false", "[data]") {
  const auto sizes = std::vector<yolo9::PixelSize>(200, {64, 64});
  const std::string file = file_in("cache_killed");
  for (int round = 0; round < 5; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      const auto cache = yolo9::make_disk_cache(file, sizes, "x", kPlenty);
      for (int64_t i = 0; i < 200; ++i) cache->put(i, picture(sizes, i));
      ::_exit(0);
    }
    ::usleep(static_cast<useconds_t>(2000 * (round + 1)));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    const auto cache = yolo9::make_disk_cache(file, sizes, "x", kPlenty);
    REQUIRE(cache);
    found(*cache, sizes);  // checks each one that is there
  }
}

TEST_CASE("a second run reads what the first one writes, and goes without where it cannot", "[data]") {
  const auto sizes = some_sizes(10);
  const std::string file = file_in("cache_two");
  const auto writer = yolo9::make_disk_cache(file, sizes, "x", kPlenty);
  for (int64_t i = 0; i < 5; ++i) writer->put(i, picture(sizes, i));
  CHECK(in_other_process([&] {
          const auto reader = yolo9::make_disk_cache(file, sizes, "x", kPlenty);
          if (!reader || reader->describe().find("another run writes it") == std::string::npos) return 100;
          fill(*reader, sizes, 9);  // without effect
          return static_cast<int>(found(*reader, sizes));
        }) == 5);
  CHECK(in_other_process([&] { return yolo9::make_disk_cache(file, sizes, "y", kPlenty) ? 1 : 0; }) == 0);
  fill(*writer, sizes);
  CHECK(found(*writer, sizes) == 10);
}

TEST_CASE("a cache that cannot be made is done without", "[data]") {
  const std::string folder = fixture::temporary_dir("cache_refused");
  std::ofstream(folder + "/pictures") << "a file where a folder should be";
  CHECK_FALSE(yolo9::make_disk_cache(folder + "/pictures/set.raw", some_sizes(2), "x", kPlenty));
  const auto nothing = yolo9::make_disk_cache(folder + "/a/set.raw", some_sizes(2), "x", 0);
  REQUIRE(nothing);
  CHECK(nothing->kept_pictures() == 0);
  CHECK(nothing->find(0).empty());
}

TEST_CASE("a disk that fills up ends the keeping", "[data]") {
  const auto sizes = some_sizes(30);
  const std::string file = file_in("cache_full");
  // A limit on the size of files stands for the full disk: writes beyond it fail in the same way.
  CHECK(in_other_process([&] {
          ::signal(SIGXFSZ, SIG_IGN);
          const auto cache = yolo9::make_disk_cache(file, sizes, "x", kPlenty);
          struct rlimit limit {};
          limit.rlim_cur = limit.rlim_max = 8192 + 10000;
          ::setrlimit(RLIMIT_FSIZE, &limit);
          fill(*cache, sizes);
          const auto there = static_cast<int>(found(*cache, sizes));
          return there > 0 && there < 30 ? 1 : 0;
        }) == 1);
}

TEST_CASE("the cache's folder follows the environment", "[data]") {
  const auto get = [](const char* name) { return std::string(std::getenv(name) ? std::getenv(name) : ""); };
  const std::string own = get("YOLO9_CACHE_DIR"), xdg = get("XDG_CACHE_HOME"), home = get("HOME");
  ::setenv("HOME", "/h", 1);
  ::unsetenv("YOLO9_CACHE_DIR");
  ::unsetenv("XDG_CACHE_HOME");
  CHECK(yolo9::picture_cache_folder() == "/h/.cache/yolo9/pictures");
  ::setenv("XDG_CACHE_HOME", "/x", 1);
  CHECK(yolo9::picture_cache_folder() == "/x/yolo9/pictures");
  ::setenv("YOLO9_CACHE_DIR", "/y", 1);
  CHECK(yolo9::picture_cache_folder() == "/y/pictures");
  for (const char* name : {"HOME", "XDG_CACHE_HOME", "YOLO9_CACHE_DIR"}) ::unsetenv(name);
  CHECK_THROWS_AS(yolo9::picture_cache_folder(), yolo9::Error);
  for (const auto& [name, value] : {std::pair{"HOME", home}, {"XDG_CACHE_HOME", xdg}, {"YOLO9_CACHE_DIR", own}}) {
    if (!value.empty()) ::setenv(name, value.c_str(), 1);
  }
}
