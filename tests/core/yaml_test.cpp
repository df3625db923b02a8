#include <catch2/catch.hpp>

#include <yolo9/core/yaml.h>

using yolo9::Error;
using yolo9::Yaml;

namespace {
std::string message(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}
}  // namespace

TEST_CASE("yaml errors name file, line and what was expected") {
  const auto doc = Yaml::parse("a: 1\nb: text\nc: [1, 2]\nd: {x: .nan}\n", "f.yaml");
  CHECK(doc.at("a").as_int() == 1);
  CHECK(doc.at("c").at(1).as_int() == 2);
  CHECK(message([&] { doc.at("b").as_double(); }) == "f.yaml:2: expected a finite number, found text");
  CHECK(message([&] { doc.at("c").as_int(); }) == "f.yaml:3: expected a whole number, found [1, 2]");
  CHECK(message([&] { doc.at("zz"); }).find("the key \"zz\" is missing") != std::string::npos);
  CHECK(message([&] { doc.refuse_unread({"a", "b", "c", "delta"}); }).find("f.yaml:4: unknown key \"d\"") == 0);
}

TEST_CASE("an unknown key is refused with the nearest known one") {
  const auto doc = Yaml::parse("lr_0: 0.1\n", "hyp.yaml");
  CHECK(message([&] {
          doc.refuse_unread({"lr0", "lrf"});
        }) == "hyp.yaml:1: unknown key \"lr_0\"; did you mean \"lr0\"?");
}

TEST_CASE("yaml is bounded in depth and in aliases") {
  CHECK(message([] { Yaml::parse(std::string(100000, '['), "deep.yaml"); }).find("nested deeper") != std::string::npos);
  std::string dashes(100000, '-');
  dashes += " x";
  CHECK(message([&] { Yaml::parse(dashes, "deep.yaml"); }).find("nested deeper") != std::string::npos);
  std::string deep;
  for (int i = 0; i < 500; ++i) deep += std::string(static_cast<size_t>(i), ' ') + "a:\n";
  CHECK(message([&] { Yaml::parse(deep, "deep.yaml"); }).find("nested deeper") != std::string::npos);
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    const std::string previous = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + previous;
    for (int k = 1; k < 10; ++k) bomb += ", " + previous;
    bomb += "]\n";
  }
  CHECK(message([&] { Yaml::parse(bomb, "bomb.yaml"); }).find("million") != std::string::npos);
}
