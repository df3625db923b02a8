#include <yolo9/data/byte_source.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include <unistd.h>

namespace yolo9 {

ByteSource::ByteSource(std::span<const uint8_t> bytes) : bytes_(bytes), size_(bytes.size()) {}

ByteSource::ByteSource(int descriptor, uint64_t size) : size_(size), descriptor_(descriptor) {}

std::span<const uint8_t> ByteSource::read(uint64_t at, size_t count) {
  count = std::min(count, kLargestRead);
  if (at >= size_) return {};
  count = static_cast<size_t>(std::min<uint64_t>(count, size_ - at));
  if (descriptor_ < 0) return bytes_.subspan(static_cast<size_t>(at), count);
  if (at < block_at_ || at + count > block_at_ + bytes_.size()) {
    constexpr size_t kBlock = 4096;
    const size_t wanted = std::max(count, kBlock);
    if (block_.size() < wanted) block_.resize(wanted);
    size_t filled = 0;
    while (filled < wanted) {
      const ssize_t got = pread(descriptor_, block_.data() + filled, wanted - filled, static_cast<off_t>(at + filled));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      filled += static_cast<size_t>(got);
    }
    block_at_ = at;
    bytes_ = std::span<const uint8_t>(block_).first(filled);
  }
  const auto offset = static_cast<size_t>(at - block_at_);
  return bytes_.subspan(offset, std::min(count, bytes_.size() - offset));
}

uint64_t ByteSource::number(uint64_t at, size_t count, bool little) {
  const std::span<const uint8_t> bytes = read(at, count);
  if (bytes.size() < count) return 0;
  uint64_t value = 0;
  for (size_t i = 0; i < count; ++i) value = value << 8 | bytes[little ? count - 1 - i : i];
  return value;
}

uint8_t ByteSource::u8(uint64_t at) { return static_cast<uint8_t>(number(at, 1, true)); }
uint16_t ByteSource::u16(uint64_t at, bool little) { return static_cast<uint16_t>(number(at, 2, little)); }
uint32_t ByteSource::u32(uint64_t at, bool little) { return static_cast<uint32_t>(number(at, 4, little)); }
uint64_t ByteSource::u64(uint64_t at, bool little) { return number(at, 8, little); }

bool ByteSource::matches(uint64_t at, std::string_view text) {
  const std::span<const uint8_t> bytes = read(at, text.size());
  return bytes.size() == text.size() && std::memcmp(bytes.data(), text.data(), text.size()) == 0;
}

}  // namespace yolo9
