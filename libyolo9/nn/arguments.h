// The argument list of one configuration row, read by position; each complaint names the module, the argument and
// what was expected.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <yolo9/core/yaml.h>

namespace yolo9 {

class Arguments {
 public:
  // `signature` is for messages: "channels, kernel=1, stride=1". Refuses a list that is too short or too long.
  Arguments(Yaml args, std::string type, std::string signature, size_t at_least, size_t at_most);

  size_t size() const { return items_.size(); }
  // None, null and ~ count as absent.
  bool has(size_t position) const;
  const Yaml& item(size_t position) const { return items_.at(position); }

  int64_t integer(size_t position, const std::string& what, int64_t low, int64_t high) const;
  int64_t integer_or(size_t position, const std::string& what, int64_t low, int64_t high, int64_t absent) const;
  double number_or(size_t position, const std::string& what, double low, double high, double absent) const;
  bool boolean_or(size_t position, const std::string& what, bool absent) const;
  std::vector<int64_t> integers(size_t position, const std::string& what, int64_t low, int64_t high) const;

  [[noreturn]] void refuse(size_t position, const std::string& what, const std::string& expected) const;

 private:
  Yaml args_;
  std::string type_;
  std::vector<Yaml> items_;
};

// JSON text of a yaml value, for display: numbers, booleans and null plainly, everything else quoted.
std::string json_text(const Yaml& value);
std::string json_text(const std::vector<int64_t>& values);

}  // namespace yolo9
