// Bounded reading of a file or of memory, for parsers of hostile headers: no read goes beyond the end, and none
// allocates what a header asks for.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace yolo9 {

class ByteSource {
 public:
  explicit ByteSource(std::span<const uint8_t> bytes);
  // Keeps the descriptor, which the caller closes, and one block of the file.
  ByteSource(int descriptor, uint64_t size);

  uint64_t size() const { return size_; }
  // Whether `count` bytes from `at` on are there; safe for any values.
  bool has(uint64_t at, uint64_t count) const { return at <= size_ && count <= size_ - at; }
  // Fewer than `count` (at most kLargestRead) bytes if the file ends before; valid until the next read.
  std::span<const uint8_t> read(uint64_t at, size_t count);

  // 0 beyond the end.
  uint8_t u8(uint64_t at);
  uint16_t u16(uint64_t at, bool little);
  uint32_t u32(uint64_t at, bool little);
  uint64_t u64(uint64_t at, bool little);
  bool matches(uint64_t at, std::string_view text);

  static constexpr size_t kLargestRead = size_t{1} << 16;

 private:
  uint64_t number(uint64_t at, size_t count, bool little);

  std::span<const uint8_t> bytes_;  // all, or the block
  uint64_t block_at_ = 0, size_ = 0;
  int descriptor_ = -1;
  std::vector<uint8_t> block_;
};

}  // namespace yolo9
