#include <yolo9/core/resources.h>

#include <catch2/catch.hpp>

#include "support/fixture.h"

TEST_CASE("bundled files are looked for in the current folder first, then in the source tree") {
  const std::string work = fixture::temporary_dir("resources");
  std::filesystem::create_directories(work + "/models");
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(work);
  const auto with_own = yolo9::resource_folders("models");
  std::filesystem::remove(work + "/models");
  const auto without = yolo9::resource_folders("models");
  const auto unknown = yolo9::resource_folders("no such kind");
  std::filesystem::current_path(before);

  const std::string bundled = fixture::source_dir() + "/models";
  REQUIRE(with_own.size() >= 2);
  CHECK(with_own[0] == "models");
  CHECK(with_own[1] == bundled);
  REQUIRE(!without.empty());
  CHECK(without[0] == bundled);
  CHECK(unknown.empty());
}
