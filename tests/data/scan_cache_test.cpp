#include <yolo9/data/scan_cache.h>

#include <cstdlib>
#include <thread>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <yolo9/core/random.h>
#include <catch2/catch.hpp>

#include "data_set_support.h"
#include "image_bytes.h"

using namespace image_bytes;
namespace fs = std::filesystem;

namespace {

const std::vector<std::string> kNames{"a", "b", "c"};

// A change must be older than a step of the file system's clock before it is cached.
void settle() { std::this_thread::sleep_for(std::chrono::milliseconds(40)); }

// The results of a scan, as records without the stamps, and how many came from the cache.
struct Result {
  std::vector<std::string> records;
  int64_t from_cache = 0;
};

Result scan(const std::string& root, const yolo9::ScanCachePlace& place,
            const std::vector<std::string>& names = kNames) {
  Result result;
  const yolo9::Annotations annotations({root + "/images"}, names);
  result.from_cache = yolo9::for_each_scanned(
                          annotations,
                          [&](int64_t, yolo9::ScannedImage&& image) {
                            result.records.push_back(yolo9::encode_scan_record({{}, 0, std::move(image)}));
                          },
                          {}, place)
                          .from_cache;
  return result;
}

// Scans with and without the cache agree; gives how many came from it.
int64_t check_scan(const std::string& root, const yolo9::ScanCachePlace& place,
                   const std::vector<std::string>& names = kNames) {
  const Result cached = scan(root, place, names), fresh = scan(root, {}, names);
  CHECK(fresh.from_cache == 0);
  CHECK(cached.records == fresh.records);
  return cached.from_cache;
}

// Sets a file's times back to what they were.
void restore_times(const std::string& path, const struct stat& before) {
  const timespec times[2] = {before.st_atim, before.st_mtim};
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
}

struct stat status_of(const std::string& path) {
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status;
}

// Every path below a folder with its contents and times of change.
std::vector<std::string> state_of(const std::string& root) {
  std::vector<std::string> state;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    const struct stat status = status_of(entry.path());
    state.push_back(entry.path().string() + " " + std::to_string(status.st_mtim.tv_sec) + "." +
                    std::to_string(status.st_mtim.tv_nsec) + " " +
                    (entry.is_regular_file() ? read_all(entry.path()) : ""));
  }
  std::sort(state.begin(), state.end());
  return state;
}

struct Fixture {
  std::string root, cache;
  yolo9::ScanCachePlace place;
  explicit Fixture(const std::string& name)
      : root(data_set::make(name, 8)), cache(fixture::temporary_dir(name + "_c")) {
    write_all(root + "/labels/01.txt", "0 0.5 0.5 0.1 0.1\n9 0.5 0.5 0.1 0.1\n0 0.5 0.5 0.1 0.1\nx\n");  // faults
    write_all(root + "/images/cut.jpg", "\xFF\xD8\xFF\xE0");
    place = yolo9::scan_cache_place(cache, {root + "/images"}, kNames);
    settle();
    CHECK(check_scan(root, place) == 0);
    CHECK(check_scan(root, place) == 9);
  }
};

}  // namespace

TEST_CASE("scan_cache: notices every change of pictures", "[data]") {
  const Fixture set("cache_pictures");
  const auto& [root, cache, place] = set;
  const std::string picture = root + "/images/02.png", other = root + "/images/05.png";
  SECTION("replaced by one of the same size and time") {
    // The same bytes but for the height: as long a file, another picture.
    const struct stat before = status_of(picture);
    std::string bytes = read_all(picture);
    bytes[23] = static_cast<char>(bytes[23] + 1);
    write_all(root + "/new", bytes);
    fs::rename(root + "/new", picture);
    restore_times(picture, before);
    CHECK(check_scan(root, place) == 8);
  }
  SECTION("written over in place, with its time restored") {
    const struct stat before = status_of(picture);
    std::string bytes = read_all(picture);
    bytes[23] = static_cast<char>(bytes[23] + 1);
    write_all(picture, bytes);
    restore_times(picture, before);
    CHECK(check_scan(root, place) == 8);
  }
  SECTION("removed") {
    fs::remove(picture);
    CHECK(check_scan(root, place) == 8);
  }
  SECTION("added") {
    fs::copy_file(other, root + "/images/new.png");
    settle();
    CHECK(check_scan(root, place) == 9);
    CHECK(check_scan(root, place) == 10);
  }
  SECTION("two exchanged") {
    fs::rename(picture, root + "/images/x");
    fs::rename(other, picture);
    fs::rename(root + "/images/x", other);
    CHECK(check_scan(root, place) == 7);
  }
}

TEST_CASE("scan_cache: notices every change of labels", "[data]") {
  const Fixture set("cache_labels");
  const auto& [root, cache, place] = set;
  const std::string label = root + "/labels/02.txt";
  SECTION("edited in place to the same size and time") {
    const struct stat before = status_of(label);
    std::string text = read_all(label);
    text[0] = text[0] == '0' ? '1' : '0';
    write_all(label, text);
    restore_times(label, before);
  }
  SECTION("removed") { fs::remove(label); }
  SECTION("emptied") { write_all(label, ""); }
  CHECK(check_scan(root, place) == 8);
  CHECK(check_scan(root, place) == 9);
}

TEST_CASE("scan_cache: a label that is added, other names, other sources", "[data]") {
  const Fixture set("cache_names");
  const auto& [root, cache, place] = set;
  fs::copy_file(root + "/labels/03.txt", root + "/labels/cut.txt");
  CHECK(check_scan(root, place) == 8);
  CHECK(check_scan(root, place) == 9);
  const std::vector<std::string> fewer{"a", "b"}, renamed{"a", "b", "d"};
  for (const auto& names : {fewer, renamed}) {
    const auto other = yolo9::scan_cache_place(cache, {root + "/images"}, names);
    CHECK(other.path == place.path);
    CHECK(check_scan(root, other, names) == 0);
    CHECK(check_scan(root, other, names) == 9);
  }
  CHECK(yolo9::scan_cache_place(cache, {root + "/labels"}, kNames).path != place.path);
  CHECK(yolo9::scan_cache_place("", {root}, kNames).path.empty());
}

TEST_CASE("scan_cache: a file changed a moment ago is looked at again", "[data]") {
  const auto now = int64_t{1'700'000'000'123'456'789};
  CHECK_FALSE(yolo9::is_settled({1, 1, 0, now - 1'000'000}, now));
  CHECK(yolo9::is_settled({1, 1, 0, now - 100'000'000}, now));
  // Whole seconds: of a file system that counts no finer.
  CHECK_FALSE(yolo9::is_settled({1, 1, 0, int64_t{1'699'999'999'000'000'000}}, now));
  CHECK(yolo9::is_settled({1, 1, 0, int64_t{1'699'999'990'000'000'000}}, now));
}

TEST_CASE("scan_cache: damage is made good", "[data]") {
  const Fixture set("cache_damage");
  const auto& [root, cache, place] = set;
  const std::string bytes = read_all(place.path);
  REQUIRE(yolo9::parse_scan_cache(bytes));
  CHECK(yolo9::parse_scan_cache(bytes)->size() == 9);
  std::string flipped = bytes, older = bytes;
  flipped[bytes.size() / 2] ^= 4;
  older[8] ^= 1;  // the version
  for (const std::string& damaged :
       {flipped, older, bytes.substr(0, bytes.size() / 2), bytes + "x", std::string(), std::string("a foreign file")}) {
    CHECK_FALSE(yolo9::parse_scan_cache(damaged));
    write_all(place.path, damaged);
    CHECK(check_scan(root, place) == 0);
    CHECK(check_scan(root, place) == 9);
  }
  // Every single byte counts.
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string changed = bytes;
    changed[i] ^= 0x20;
    REQUIRE_FALSE(yolo9::parse_scan_cache(changed));
    REQUIRE_FALSE(yolo9::parse_scan_cache(std::string_view(bytes).substr(0, i)));
  }
}

TEST_CASE("scan_cache: hostile records are refused", "[data]") {
  yolo9::ScanRecord record;
  record.image.path = "a.png";
  record.image.labels = yolo9::parse_labels("0 0.5 0.5 0.1 0.1\n1 0.1 0.1 0.2 0.2 0.3 0.1\nx\n", 3);
  record.image.has_label_file = true;
  const std::string bytes = yolo9::encode_scan_record(record);
  const auto decoded = yolo9::decode_scan_record(bytes);
  REQUIRE(decoded);
  CHECK(yolo9::encode_scan_record(*decoded) == bytes);
  for (size_t i = 0; i < bytes.size(); ++i) {
    REQUIRE_FALSE(yolo9::decode_scan_record(std::string_view(bytes).substr(0, i)));
  }
  CHECK_FALSE(yolo9::decode_scan_record(bytes + "x"));
  // Lengths of four thousand million, anywhere: refused before anything of the size is allocated, or harmless.
  for (size_t i = 0; i + 4 <= bytes.size(); ++i) {
    std::string hostile = bytes;
    hostile.replace(i, 4, "\xFF\xFF\xFF\xFF");
    const auto result = yolo9::decode_scan_record(hostile);
    if (result) REQUIRE(yolo9::encode_scan_record(*result).size() == hostile.size());
  }
}

TEST_CASE("scan_cache: where it cannot be written the scan goes on", "[data]") {
  const auto root = data_set::make("cache_unwritable", 4);
  settle();
  write_all(root + "/file", "no folder");
  const auto place = yolo9::scan_cache_place(root + "/file/scans", {root + "/images"}, kNames);
  CHECK(check_scan(root, place) == 0);
  CHECK(check_scan(root, place) == 0);
}

TEST_CASE("scan_cache: the data set is only read", "[data]") {
  const auto root = data_set::make("cache_read_only", 4);
  const auto cache = fixture::temporary_dir("cache_read_only_c");
  const auto place = yolo9::scan_cache_place(cache + "/new/folder", {root + "/images"}, kNames);
  settle();
  const auto before = state_of(root);
  for (const char* folder : {"", "/images", "/labels"}) {
    fs::permissions(root + folder, fs::perms::owner_read | fs::perms::owner_exec);
  }
  CHECK(check_scan(root, place) == 0);
  CHECK(check_scan(root, place) == 4);
  for (const char* folder : {"", "/images", "/labels"}) fs::permissions(root + folder, fs::perms::owner_all);
  CHECK(state_of(root) == before);
  CHECK(std::distance(fs::directory_iterator(cache + "/new/folder"), fs::directory_iterator()) == 1);
}

TEST_CASE("scan_cache: several scans at once", "[data]") {
  const auto root = data_set::make("cache_race", 8);
  const auto cache = fixture::temporary_dir("cache_race_c");
  const auto place = yolo9::scan_cache_place(cache, {root + "/images"}, kNames);
  settle();
  const auto expected = scan(root, {}).records;
  std::vector<Result> results(6);
  std::vector<std::thread> threads;
  for (Result& result : results) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5; ++i) {
        result = scan(root, place);
        if (i % 2 == 0) fs::remove(place.path);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Result& result : results) CHECK(result.records == expected);
  CHECK(check_scan(root, place) >= 0);
  CHECK(check_scan(root, place) == 8);
  CHECK(std::distance(fs::directory_iterator(cache), fs::directory_iterator()) == 1);  // nothing is left over
}

TEST_CASE("scan_cache: its folder follows the environment", "[data]") {
  const auto folder_with = [](const char* own, const char* shared, const char* home) {
    const auto set = [](const char* name, const char* value) { value ? ::setenv(name, value, 1) : ::unsetenv(name); };
    const auto get = [](const char* name) {
      const char* value = std::getenv(name);
      return value ? std::optional<std::string>(value) : std::nullopt;
    };
    const auto before = std::array{get("YOLO9_CACHE_DIR"), get("XDG_CACHE_HOME"), get("HOME")};
    set("YOLO9_CACHE_DIR", own);
    set("XDG_CACHE_HOME", shared);
    set("HOME", home);
    const std::string folder = yolo9::scan_cache_folder();
    size_t i = 0;
    for (const char* name : {"YOLO9_CACHE_DIR", "XDG_CACHE_HOME", "HOME"}) {
      set(name, before[i] ? before[i]->c_str() : nullptr);
      ++i;
    }
    return folder;
  };
  CHECK(folder_with("/own", "/shared", "/home/me") == "/own/scans");
  CHECK(folder_with("", "/shared", "/home/me").empty());
  CHECK(folder_with(nullptr, "/shared", "/home/me") == "/shared/yolo9/scans");
  CHECK(folder_with(nullptr, "relative", "/home/me") == "/home/me/.cache/yolo9/scans");
  CHECK(folder_with(nullptr, nullptr, nullptr).empty());
}
