#include <yolo9/core/digest.h>

#include <cstring>

namespace yolo9 {

namespace {

// The finalizer of Stafford's "Mix13", as in Random.
uint64_t finish(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// Multiplication alone would never carry high bits down.
uint64_t stir(uint64_t state, uint64_t word) {
  state = (state ^ word) * 0xd6e8feb86659fd93ULL;
  return state ^ (state >> 32);
}

}  // namespace

void Digest::add(const void* data, size_t size) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  state_ = stir(state_, size);
  for (; size >= 8; size -= 8, bytes += 8) {
    uint64_t word;
    std::memcpy(&word, bytes, 8);
    state_ = stir(state_, word);
  }
  if (size == 0) return;
  uint64_t word = 0;
  std::memcpy(&word, bytes, size);
  state_ = stir(state_, word);
}

uint64_t Digest::value() const { return finish(state_); }

std::string Digest::hex() const {
  std::string out;
  for (int shift = 60; shift >= 0; shift -= 4) out += "0123456789abcdef"[value() >> shift & 15];
  return out;
}

}  // namespace yolo9
