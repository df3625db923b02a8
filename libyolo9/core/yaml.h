// A yaml document that remembers where each value stands and which keys were read, so that every
// complaint names file and line, and a key that nobody reads is an error instead of a silent no-op.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <yolo9/core/error.h>

namespace YAML {
class Node;
}

namespace yolo9 {

class Yaml {
 public:
  // Throws Error(kind) with file and line if the file is missing, too large (> 16 MiB), nested deeper than 100
  // levels, holds more than a million nodes after aliases, or is not valid yaml.
  static Yaml load(const std::string& path, ErrorKind kind = ErrorKind::Usage);
  static Yaml parse(const std::string& text, const std::string& name, ErrorKind kind = ErrorKind::Usage);

  bool is_null() const;
  bool is_map() const;
  bool is_list() const;
  bool is_scalar() const;
  size_t size() const;
  std::string place() const;  // "file:line"
  std::string text() const;   // a scalar's text, or a short rendering of a list or map for messages

  bool has(const std::string& key) const;
  Yaml at(const std::string& key) const;  // Error if absent or not a map
  Yaml at(size_t index) const;            // Error if absent or not a list
  std::vector<std::string> keys() const;  // in file order
  std::vector<Yaml> items() const;        // of a list

  // Scalars with their meaning checked; the Error says what was expected and what was found.
  std::string as_string() const;
  int64_t as_int() const;
  double as_double() const;
  bool as_bool() const;
  bool is_int() const;
  bool is_number() const;

  // Keys of this map that `at` was never called for, with the line of each: {"key", "file:line"}.
  std::vector<std::pair<std::string, std::string>> unread_keys() const;
  // Throws for the first unread key, with the nearest of `known` as a suggestion.
  void refuse_unread(const std::vector<std::string>& known) const;

  [[noreturn]] void fail(const std::string& what, const std::string& remedy = "") const;

 private:
  struct Document;
  Yaml(std::shared_ptr<Document> document, std::shared_ptr<YAML::Node> node, std::string path);
  std::shared_ptr<Document> document_;
  std::shared_ptr<YAML::Node> node_;
  std::string path_;  // keys from the root, for the record of what was read
};

// Text of a scalar that yaml reads back as the same string (quoted where needed).
std::string yaml_quote(const std::string& text);

}  // namespace yolo9
