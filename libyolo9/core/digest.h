// A 64-bit digest to notice changes by, not to withstand attacks: eight bytes at a time, several gigabytes a second.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace yolo9 {

class Digest {
 public:
  explicit Digest(uint64_t seed = 0) : state_(seed ^ 0x9e3779b97f4a7c15ULL) {}
  // The length goes in as well, so that "ab", "c" differs from "a", "bc".
  void add(const void* data, size_t size);
  void add(const std::string& text) { add(text.data(), text.size()); }
  void add_number(int64_t value) { add(&value, sizeof value); }
  uint64_t value() const;
  std::string hex() const;  // 16 digits

 private:
  uint64_t state_;
};

}  // namespace yolo9
