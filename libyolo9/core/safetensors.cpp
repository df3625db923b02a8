#include <yolo9/core/safetensors.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include <yolo9/core/error.h>
#include <nlohmann/json.hpp>

namespace yolo9 {

namespace {

constexpr uint64_t kMaxHeaderBytes = 100u << 20;
constexpr int kMaxJsonDepth = 8;

struct TypeName {
  const char* name;
  torch::ScalarType type;
};
constexpr TypeName kTypes[] = {
    {"F32", torch::kFloat32}, {"F16", torch::kFloat16}, {"BF16", torch::kBFloat16}, {"F64", torch::kFloat64},
    {"I64", torch::kInt64},   {"I32", torch::kInt32},   {"I16", torch::kInt16},     {"I8", torch::kInt8},
    {"U8", torch::kUInt8},    {"BOOL", torch::kBool},
};

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw Error(ErrorKind::Weights, "not a valid safetensors file: " + what, path, "get or write the file again");
}

nlohmann::json parse_header(const std::string& path, const std::string& text) {
  std::set<std::string> names;
  bool duplicate = false;
  const auto callback = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& value) {
    if (depth > kMaxJsonDepth) refuse(path, "its header is nested too deeply");
    if (depth == 1 && event == nlohmann::json::parse_event_t::key && !names.insert(value.get<std::string>()).second)
      duplicate = true;
    return true;
  };
  nlohmann::json header;
  try {
    header = nlohmann::json::parse(text, callback);
  } catch (const nlohmann::json::exception&) {
    refuse(path, "its header is not JSON");
  }
  if (duplicate) refuse(path, "a name occurs twice");
  if (!header.is_object()) refuse(path, "its header is not a JSON object");
  return header;
}

struct Entry {
  std::string name;
  torch::ScalarType type;
  std::vector<int64_t> shape;
  uint64_t begin, end;
};

Entry read_entry(const std::string& path, const std::string& name, const nlohmann::json& value) {
  try {
    Entry entry{name, torch::kFloat32, value.at("shape").get<std::vector<int64_t>>(),
                value.at("data_offsets").at(0).get<uint64_t>(), value.at("data_offsets").at(1).get<uint64_t>()};
    const auto dtype = value.at("dtype").get<std::string>();
    const auto found =
        std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TypeName& t) { return dtype == t.name; });
    if (found == std::end(kTypes)) refuse(path, "unknown type " + dtype + " of " + name);
    entry.type = found->type;
    for (const auto& offset : value.at("data_offsets")) {
      if (!offset.is_number_unsigned()) refuse(path, "an offset of " + name + " is negative");
    }
    uint64_t bytes = torch::elementSize(entry.type);
    for (const int64_t size : entry.shape) {
      if (size < 0) refuse(path, "a size of " + name + " is negative");
      if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes))
        refuse(path, "the shape of " + name + " overflows");
    }
    if (entry.end < entry.begin || entry.end - entry.begin != bytes)
      refuse(path, "the shape of " + name + " does not match its bytes");
    return entry;
  } catch (const nlohmann::json::exception&) {
    refuse(path, "the entry of " + name + " is malformed");
  }
}

}  // namespace

std::vector<std::pair<std::string, torch::Tensor>> read_safetensors(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) throw Error(ErrorKind::Weights, "the file cannot be opened", path, "check the path");
  const auto total = static_cast<uint64_t>(file.tellg());
  if (total < 8) refuse(path, "it is shorter than 8 bytes");
  file.seekg(0);
  uint64_t header_bytes = 0;
  file.read(reinterpret_cast<char*>(&header_bytes), 8);
  if (header_bytes > kMaxHeaderBytes || header_bytes > total - 8) refuse(path, "its header runs past the end");
  std::string text(header_bytes, '\0');
  if (!file.read(text.data(), static_cast<std::streamsize>(header_bytes))) refuse(path, "its header cannot be read");

  std::vector<Entry> entries;
  const nlohmann::json header = parse_header(path, text);
  for (const auto& [name, value] : header.items()) {
    if (name != "__metadata__") entries.push_back(read_entry(path, name, value));
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  uint64_t expected = 0;
  for (const auto& entry : entries) {
    if (entry.begin != expected) refuse(path, "the bytes of " + entry.name + " overlap others or leave a hole");
    expected = entry.end;
  }
  if (expected != total - 8 - header_bytes) refuse(path, "its length does not match its header");

  std::vector<std::pair<std::string, torch::Tensor>> tensors;
  for (const auto& entry : entries) {
    auto tensor = torch::empty(entry.shape, torch::TensorOptions().dtype(entry.type));
    const auto bytes = static_cast<std::streamsize>(entry.end - entry.begin);
    if (bytes > 0 && !file.read(static_cast<char*>(tensor.data_ptr()), bytes)) refuse(path, "it ends early");
    tensors.emplace_back(entry.name, tensor);
  }
  return tensors;
}

std::map<std::string, torch::Tensor> read_safetensors_map(const std::string& path) {
  std::map<std::string, torch::Tensor> out;
  for (auto& [name, tensor] : read_safetensors(path)) out.emplace(name, tensor);
  return out;
}

void write_safetensors(const std::string& path, const std::vector<std::pair<std::string, torch::Tensor>>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header;
  if (!metadata.empty()) header["__metadata__"] = metadata;
  uint64_t offset = 0;
  std::vector<torch::Tensor> packed;
  for (const auto& [name, tensor] : tensors) {
    const auto found = std::find_if(std::begin(kTypes), std::end(kTypes),
                                    [&](const TypeName& t) { return tensor.scalar_type() == t.type; });
    TORCH_CHECK(found != std::end(kTypes), "[write_safetensors] ", name, " has a type that safetensors cannot hold");
    packed.push_back(tensor.detach().cpu().contiguous());
    const uint64_t bytes = packed.back().nbytes();
    header[name] = {
        {"dtype", found->name}, {"shape", tensor.sizes().vec()}, {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  const std::string temporary = path + ".tmp";
  {
    std::ofstream file(temporary, std::ios::binary);
    const uint64_t length = text.size();
    file.write(reinterpret_cast<const char*>(&length), 8);
    file.write(text.data(), static_cast<std::streamsize>(text.size()));
    for (const auto& tensor : packed)
      file.write(static_cast<const char*>(tensor.data_ptr()), static_cast<std::streamsize>(tensor.nbytes()));
    file.flush();
    if (!file) {
      std::error_code ignored;
      std::filesystem::remove(temporary, ignored);
      throw Error(ErrorKind::Weights, "the file cannot be written", path, "check free space and permissions");
    }
  }
  std::filesystem::rename(temporary, path);
}

}  // namespace yolo9
