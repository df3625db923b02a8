#include <catch2/catch.hpp>

#include <set>

#include <yolo9/core/error.h>
#include <yolo9/memory/cards.h>

using namespace yolo9;

TEST_CASE("cards have names of their own and sizes from 6 to 141 GB, in order") {
  std::set<std::string> names;
  int64_t before = 0;
  for (const auto& card : known_cards()) {
    CAPTURE(card.name);
    CHECK(names.insert(card.name).second);
    CHECK(&find_card(card.name) == &card);
    CHECK(card.memory_bytes >= before);
    before = card.memory_bytes;
  }
  CHECK(known_cards().front().memory_bytes == int64_t{6} << 30);
  CHECK(known_cards().back().memory_bytes > int64_t{140} << 30);
}

TEST_CASE("cards are found whatever the case, blanks and maker's name") {
  const Card& card = find_card("RTX 4090");
  CHECK(card.memory_bytes == int64_t{24} << 30);
  for (const char* name : {"rtx4090", "rtx-4090", "NVIDIA GeForce RTX 4090", "Rtx_4090"})
    CHECK(&find_card(name) == &card);
  CHECK(find_card("tesla t4").name == "T4");
  CHECK(find_card("AGX Orin 64GB").name == "Jetson AGX Orin 64GB");
}

TEST_CASE("an unknown card is a usage error that names the nearest") {
  try {
    find_card("RTX 4091");
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::Usage);
    CHECK_THAT(error.what(), Catch::Contains("RTX 4091") && Catch::Contains("RTX 409"));
  }
  CHECK_THROWS_AS(find_card(""), Error);
  CHECK_THROWS_AS(find_card("GeForce"), Error);
}
