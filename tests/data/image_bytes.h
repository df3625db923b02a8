// Picture files made byte by byte, for what OpenCV does not write.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace image_bytes {

inline std::string read_all(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

inline void write_all(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

inline std::string number(uint64_t value, size_t bytes, bool little) {
  std::string text(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i) text[little ? i : bytes - 1 - i] = static_cast<char>(value >> (8 * i) & 0xFF);
  return text;
}

inline std::string tiff_entry(int tag, int type, uint64_t count, uint64_t value, bool little) {
  const size_t value_bytes = type == 3 && count == 1 ? 2 : 4;
  return number(static_cast<uint64_t>(tag), 2, little) + number(static_cast<uint64_t>(type), 2, little) +
         number(count, 4, little) + number(value, value_bytes, little) + std::string(4 - value_bytes, '\0');
}

// A TIFF structure with nothing but an orientation.
inline std::string exif(int orientation, bool little) {
  return (little ? "II" : "MM") + number(42, 2, little) + number(8, 4, little) + number(1, 2, little) +
         tiff_entry(274, 3, 1, static_cast<uint64_t>(orientation), little) + number(0, 4, little);
}

// Puts an Exif segment behind the first marker of a JPEG.
inline std::string with_exif(const std::string& jpeg, int orientation, bool little) {
  const std::string data = std::string("Exif\0\0", 6) + exif(orientation, little);
  return jpeg.substr(0, 2) + "\xFF\xE1" + number(data.size() + 2, 2, false) + data + jpeg.substr(2);
}

inline uint32_t crc(const std::string& bytes) {
  uint32_t value = 0xFFFFFFFF;
  for (const char c : bytes) {
    value ^= static_cast<uint8_t>(c);
    for (int i = 0; i < 8; ++i) value = (value >> 1) ^ ((value & 1) != 0 ? 0xEDB88320u : 0u);
  }
  return ~value;
}

inline std::string png_chunk(const std::string& type, const std::string& data) {
  return number(data.size(), 4, false) + type + data + number(crc(type + data), 4, false);
}

// Puts a chunk behind the header of a PNG.
inline std::string with_chunk(const std::string& png, const std::string& type, const std::string& data) {
  return png.substr(0, 33) + png_chunk(type, data) + png.substr(33);
}

// An uncompressed grey TIFF in one strip.
inline std::string tiff(int width, int height, int orientation, bool little) {
  const auto pixels = static_cast<uint64_t>(width * height);
  const uint64_t entries = 9, data_at = 8 + 2 + entries * 12 + 4;
  const auto entry = [little](int tag, int type, uint64_t value) { return tiff_entry(tag, type, 1, value, little); };
  std::string out = (little ? "II" : "MM") + number(42, 2, little) + number(8, 4, little) + number(entries, 2, little);
  out += entry(256, 3, static_cast<uint64_t>(width)) + entry(257, 3, static_cast<uint64_t>(height)) + entry(258, 3, 8) +
         entry(259, 3, 1) + entry(262, 3, 1) + entry(273, 4, data_at) +
         entry(274, 3, static_cast<uint64_t>(orientation)) + entry(278, 3, static_cast<uint64_t>(height)) +
         entry(279, 4, pixels) + number(0, 4, little);
  for (uint64_t i = 0; i < pixels; ++i) out += static_cast<char>(i * 7 % 251);
  return out;
}

// The head of a PNG of any claimed size, with a few bytes of data.
inline std::string png_of_size(uint32_t width, uint32_t height, bool interlaced) {
  const std::string head = number(width, 4, false) + number(height, 4, false) + std::string("\x08\x02\0\0", 4) +
                           std::string(1, interlaced ? '\1' : '\0');
  return "\x89PNG\r\n\x1a\n" + png_chunk("IHDR", head) + png_chunk("IDAT", "some") + png_chunk("IEND", "");
}

}  // namespace image_bytes
