#include "support/fixture.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <stdexcept>

#include <unistd.h>

namespace fixture {

namespace fs = std::filesystem;

std::string source_dir() { return YOLO9_SOURCE_DIR; }
std::string binary_dir() { return YOLO9_BINARY_DIR; }

std::string golden_dir() {
  const char* set = std::getenv("YOLO9_GOLDEN_DIR");
  return set && *set ? std::string(set) : source_dir() + "/tests/golden";
}

std::vector<std::string> golden_files(const std::string& folder, const std::string& suffix) {
  std::vector<std::string> paths;
  const fs::path root = fs::path(golden_dir()) / folder;
  if (!fs::is_directory(root)) return paths;
  for (const auto& entry : fs::directory_iterator(root)) {
    const std::string name = entry.path().filename().string();
    if (name.size() >= suffix.size() && name.compare(name.size() - suffix.size(), suffix.size(), suffix) == 0)
      paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

namespace {
struct TemporaryRoot {
  fs::path path = fs::temp_directory_path() / ("yolo9-test-" + std::to_string(::getpid()));
  ~TemporaryRoot() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};
}  // namespace

std::string temporary_dir(const std::string& name) {
  static TemporaryRoot root;
  const fs::path path = root.path / name;
  fs::remove_all(path);
  fs::create_directories(path);
  return path.string();
}

nlohmann::json read_json(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot open " + path);
  return nlohmann::json::parse(file);
}

double number(const nlohmann::json& value) {
  if (!value.is_object()) return value.get<double>();
  const auto text = value.at("nonfinite").get<std::string>();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  return text == "inf" ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
}

uint64_t fnv1a64(const std::string& name) {
  uint64_t hash = 0xCBF29CE484222325ULL;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  return hash;
}

namespace {
uint64_t mix(uint64_t seed, uint64_t index) {
  uint64_t z = seed + (index + 1) * 0x9E3779B97F4A7C15ULL;
  z ^= z >> 30;
  z *= 0xBF58476D1CE4E5B9ULL;
  z ^= z >> 27;
  z *= 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}
}  // namespace

uint64_t mixed_u64(const std::string& name, uint64_t index) { return mix(fnv1a64(name), index); }

torch::Tensor uniform(const std::string& name, const std::vector<int64_t>& shape) {
  auto tensor = torch::empty(shape, torch::kFloat32);
  const uint64_t seed = fnv1a64(name);
  float* data = tensor.data_ptr<float>();
  for (int64_t i = 0; i < tensor.numel(); ++i)
    data[i] = static_cast<float>(static_cast<double>(mix(seed, static_cast<uint64_t>(i)) >> 40) * 0x1.0p-24);
  return tensor;
}

torch::Tensor formula(const std::string& name, const std::vector<int64_t>& shape, const std::string& kind) {
  if (kind == "zero") return torch::zeros(shape, torch::kInt64);
  auto tensor = uniform(name, shape);
  float* data = tensor.data_ptr<float>();
  const auto apply = [&](auto function) {
    for (int64_t i = 0; i < tensor.numel(); ++i) data[i] = function(data[i], i);
  };
  if (kind == "uniform") return tensor;
  if (kind == "weight") {
    const double fan_in = static_cast<double>(shape[1] * shape[2] * shape[3]);
    const float bound = static_cast<float>(1.2 * std::sqrt(3.0 / fan_in));
    const float width = 2.0f * bound;
    apply([&](float u, int64_t) { return (u - 0.5f) * width; });
  } else if (kind == "bn_weight" || kind == "running_var") {
    apply([](float u, int64_t) {
      const float half = 0.5f * u;
      return 0.75f + half;
    });
  } else if (kind == "bn_bias") {
    apply([](float u, int64_t) { return 2.0f * (u - 0.5f); });
  } else if (kind == "bias") {
    apply([](float u, int64_t) { return 0.2f * (u - 0.5f); });
  } else if (kind == "box_bias") {
    apply([](float u, int64_t i) {
      const float noise = 0.2f * (u - 0.5f);
      const float slope = 0.25f * static_cast<float>(i % 16);
      return noise + (1.0f - slope);
    });
  } else if (kind == "cls_bias") {
    apply([](float u, int64_t) {
      const float noise = 0.2f * (u - 0.5f);
      return noise + (-3.0f);
    });
  } else if (kind == "frozen") {
    apply([](float, int64_t i) { return static_cast<float>(i); });
  } else {
    throw std::runtime_error("unknown formula kind " + kind);
  }
  return tensor;
}

double excess(const torch::Tensor& actual, const torch::Tensor& expected, double abs, double rel) {
  if (actual.sizes() != expected.sizes()) throw std::runtime_error("shapes differ");
  if (actual.numel() == 0) return 0;
  const auto a = actual.to(torch::kFloat64), b = expected.to(torch::kFloat64);
  const auto over = (a - b).abs() - (abs + rel * b.abs());
  // NaN on one side only is a failure; max() propagates it, and NaN <= 0 is false.
  return over.max().item<double>();
}

}  // namespace fixture
