#include <yolo9/train/dataset_facts.h>

#include <cstdio>
#include <filesystem>

namespace yolo9 {

namespace {

class Fnv {
 public:
  void add(const void* data, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) hash_ = (hash_ ^ static_cast<const unsigned char*>(data)[i]) * 0x100000001B3ULL;
  }
  void add(const std::string& text) { add(text.c_str(), text.size() + 1); }
  std::string text() const {
    char out[20];
    std::snprintf(out, sizeof out, "%016llx", static_cast<unsigned long long>(hash_));
    return out;
  }

 private:
  uint64_t hash_ = 0xCBF29CE484222325ULL;
};

}  // namespace

std::vector<std::vector<int64_t>> classes_per_image(const Dataset& dataset) {
  std::vector<std::vector<int64_t>> out(static_cast<size_t>(dataset.size()));
  for (int64_t i = 0; i < dataset.size(); ++i)
    for (const LabelRow& row : dataset.labels(i)) out[static_cast<size_t>(i)].push_back(row.class_index);
  return out;
}

torch::Tensor all_labels(const Dataset& dataset) {
  std::vector<float> values;
  for (int64_t i = 0; i < dataset.size(); ++i)
    for (const LabelRow& row : dataset.labels(i))
      for (const double value : {static_cast<double>(row.class_index), static_cast<double>(row.cx),
                                 static_cast<double>(row.cy), static_cast<double>(row.w), static_cast<double>(row.h)})
        values.push_back(static_cast<float>(value));
  return torch::tensor(values).reshape({-1, 5});
}

std::string fingerprint(const Dataset& dataset) {
  Fnv hash;
  for (const auto& name : dataset.names()) hash.add(name);
  for (int64_t i = 0; i < dataset.size(); ++i) {
    // The file's name, not its path: a data set may be moved between a run and its continuation.
    hash.add(std::filesystem::path(dataset.path(i)).filename().string());
    for (const LabelRow& row : dataset.labels(i)) {
      hash.add(&row.class_index, sizeof row.class_index);
      for (const float value : {row.cx, row.cy, row.w, row.h}) hash.add(&value, sizeof value);
    }
  }
  return hash.text();
}

}  // namespace yolo9
