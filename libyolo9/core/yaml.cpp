#include <yolo9/core/yaml.h>

#include <cctype>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include <yaml-cpp/yaml.h>

namespace yolo9 {

namespace {

constexpr size_t kMaxBytes = 16u << 20;
constexpr int kMaxDepth = 100;
constexpr size_t kMaxNodes = 1'000'000;

// yaml-cpp recurses without a limit, so nesting is bounded on the text before it parses. Brackets inside
// quotes and comments do not count; indentation can nest at most one level a line and two columns.
void check_nesting(const std::string& text, const std::string& name, ErrorKind kind) {
  int depth = 0, line = 1;
  char quote = 0;
  bool comment = false;
  char previous = '\n';
  size_t indent = 0;
  bool at_start = true;
  const auto refuse = [&] {
    throw Error(kind, "nested deeper than " + std::to_string(kMaxDepth) + " levels", name + ":" + std::to_string(line),
                "this does not look like a configuration file");
  };
  for (const char c : text) {
    if (c == '\n') {
      ++line;
      comment = false;
      at_start = true;
      indent = 0;
    } else if (comment) {
      continue;
    } else if (quote) {
      if (c == quote && !(quote == '"' && previous == '\\')) quote = 0;
    } else if (at_start && (c == ' ' || c == '-' || c == '?')) {
      if (++indent > 2u * kMaxDepth) refuse();
      if (c != ' ' && indent > kMaxDepth) refuse();
    } else {
      at_start = false;
      if ((c == '"' || c == '\'') && !std::isalnum(static_cast<unsigned char>(previous)))
        quote = c;
      else if (c == '#' && std::isspace(static_cast<unsigned char>(previous)))
        comment = true;
      else if (c == '[' || c == '{') {
        if (++depth > kMaxDepth) refuse();
      } else if (c == ']' || c == '}')
        --depth;
    }
    previous = c;
  }
}

// Aliases share nodes, so a small file can stand for an enormous tree; counting with sharing expanded bounds it.
void count_nodes(const YAML::Node& node, size_t& count, int depth) {
  if (++count > kMaxNodes || depth > kMaxDepth) throw std::length_error("too many nodes");
  if (node.IsSequence()) {
    for (const auto& item : node) count_nodes(item, count, depth + 1);
  } else if (node.IsMap()) {
    for (const auto& item : node) count_nodes(item.second, count, depth + 1);
  }
}

}  // namespace

struct Yaml::Document {
  std::string name;
  ErrorKind kind;
  std::set<std::string> read;
};

Yaml::Yaml(std::shared_ptr<Document> document, std::shared_ptr<YAML::Node> node, std::string path)
    : document_(std::move(document)), node_(std::move(node)), path_(std::move(path)) {}

Yaml Yaml::parse(const std::string& text, const std::string& name, ErrorKind kind) {
  if (text.size() > kMaxBytes)
    throw Error(kind, "larger than 16 MiB", name, "this does not look like a configuration file");
  check_nesting(text, name, kind);
  auto document = std::make_shared<Document>(Document{name, kind, {}});
  try {
    auto node = std::make_shared<YAML::Node>(YAML::Load(text));
    size_t count = 0;
    count_nodes(*node, count, 0);
    return Yaml(document, node, "");
  } catch (const YAML::Exception& error) {
    throw Error(kind, "not valid yaml: " + error.msg, name + ":" + std::to_string(error.mark.line + 1), "");
  } catch (const std::length_error&) {
    throw Error(kind, "stands for more than a million values", name, "remove the aliases (&name, *name)");
  }
}

Yaml Yaml::load(const std::string& path, ErrorKind kind) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) throw Error(kind, "the file cannot be opened", path, "check the path");
  const auto bytes = static_cast<long long>(file.tellg());
  if (bytes < 0) throw Error(kind, "not a regular file", path, "give a yaml file");
  if (static_cast<size_t>(bytes) > kMaxBytes)
    throw Error(kind, "larger than 16 MiB", path, "this does not look like a configuration file");
  std::string text(static_cast<size_t>(bytes), '\0');
  file.seekg(0);
  if (!file.read(text.data(), bytes))
    throw Error(kind, "the file cannot be read", path, "check that it is a yaml file");
  return parse(text, path, kind);
}

bool Yaml::is_null() const { return node_->IsNull(); }
bool Yaml::is_map() const { return node_->IsMap(); }
bool Yaml::is_list() const { return node_->IsSequence(); }
bool Yaml::is_scalar() const { return node_->IsScalar(); }
size_t Yaml::size() const { return node_->size(); }

std::string Yaml::place() const {
  const int line = node_->Mark().line;
  return line < 0 ? document_->name : document_->name + ":" + std::to_string(line + 1);
}

std::string Yaml::text() const {
  if (node_->IsScalar()) return node_->Scalar();
  if (node_->IsNull()) return "null";
  YAML::Emitter out;
  out << YAML::Flow << *node_;
  std::string all = out.c_str();
  return all.size() > 80 ? all.substr(0, 77) + "..." : all;
}

void Yaml::fail(const std::string& what, const std::string& remedy) const {
  throw Error(document_->kind, what, place(), remedy);
}

bool Yaml::has(const std::string& key) const { return node_->IsMap() && (*node_)[key].IsDefined(); }

Yaml Yaml::at(const std::string& key) const {
  if (!node_->IsMap()) fail("expected a map with the key \"" + key + "\", found " + text());
  const YAML::Node& map = *node_;
  YAML::Node value = map[key];
  if (!value.IsDefined()) fail("the key \"" + key + "\" is missing", "add it");
  const std::string path = path_ + "/" + key;
  document_->read.insert(path);
  return Yaml(document_, std::make_shared<YAML::Node>(value), path);
}

Yaml Yaml::at(size_t index) const {
  if (!node_->IsSequence()) fail("expected a list, found " + text());
  if (index >= node_->size())
    fail("expected at least " + std::to_string(index + 1) + " items, found " + std::to_string(node_->size()));
  const YAML::Node& list = *node_;
  return Yaml(document_, std::make_shared<YAML::Node>(list[index]), path_ + "/" + std::to_string(index));
}

std::vector<std::string> Yaml::keys() const {
  std::vector<std::string> names;
  if (node_->IsMap())
    for (const auto& item : *node_) names.push_back(item.first.IsScalar() ? item.first.Scalar() : "");
  return names;
}

std::vector<Yaml> Yaml::items() const {
  if (!node_->IsSequence()) fail("expected a list, found " + text());
  std::vector<Yaml> out;
  for (size_t i = 0; i < node_->size(); ++i) out.push_back(at(i));
  return out;
}

std::string Yaml::as_string() const {
  if (!node_->IsScalar()) fail("expected a text, found " + text());
  return node_->Scalar();
}

bool Yaml::is_int() const {
  if (!node_->IsScalar()) return false;
  const std::string& s = node_->Scalar();
  if (s.empty()) return false;
  char* end = nullptr;
  errno = 0;
  std::strtoll(s.c_str(), &end, 10);
  return errno == 0 && *end == '\0' && !std::isspace(static_cast<unsigned char>(s[0]));
}

int64_t Yaml::as_int() const {
  if (!is_int()) fail("expected a whole number, found " + text());
  return std::strtoll(node_->Scalar().c_str(), nullptr, 10);
}

bool Yaml::is_number() const {
  if (!node_->IsScalar()) return false;
  const std::string& s = node_->Scalar();
  if (s.empty() || std::isspace(static_cast<unsigned char>(s[0]))) return false;
  char* end = nullptr;
  const double value = std::strtod(s.c_str(), &end);
  return *end == '\0' && value == value && value - value == 0.0;
}

double Yaml::as_double() const {
  if (!is_number()) fail("expected a finite number, found " + text());
  return std::strtod(node_->Scalar().c_str(), nullptr);
}

bool Yaml::as_bool() const {
  const std::string s = node_->IsScalar() ? node_->Scalar() : "";
  if (s == "true" || s == "True" || s == "TRUE" || s == "yes" || s == "on") return true;
  if (s == "false" || s == "False" || s == "FALSE" || s == "no" || s == "off") return false;
  fail("expected true or false, found " + text());
}

std::vector<std::pair<std::string, std::string>> Yaml::unread_keys() const {
  std::vector<std::pair<std::string, std::string>> out;
  if (!node_->IsMap()) return out;
  for (const auto& item : *node_) {
    const std::string key = item.first.IsScalar() ? item.first.Scalar() : "";
    if (!document_->read.count(path_ + "/" + key))
      out.emplace_back(key, document_->name + ":" + std::to_string(item.first.Mark().line + 1));
  }
  return out;
}

void Yaml::refuse_unread(const std::vector<std::string>& known) const {
  const auto unread = unread_keys();
  if (unread.empty()) return;
  const std::string near = nearest_word(unread[0].first, known);
  throw Error(document_->kind, "unknown key \"" + unread[0].first + "\"", unread[0].second,
              near.empty() ? "remove it" : "did you mean \"" + near + "\"?");
}

std::string yaml_quote(const std::string& text) {
  YAML::Emitter out;
  out << YAML::DoubleQuoted << text;
  return out.c_str();
}

}  // namespace yolo9
