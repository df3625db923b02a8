#include <yolo9/data/image_header.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <vector>

#include <opencv2/core.hpp>
#include <yolo9/core/error.h>
#include <yolo9/data/image.h>

namespace yolo9 {
namespace {

using Bytes = std::vector<uint8_t>;

ImageHeader bad(std::string fault) { return {false, std::move(fault), 0, 0}; }

std::optional<Bytes> read_bytes(std::ifstream& stream, size_t count) {
  Bytes bytes(count);
  stream.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(count));
  if (static_cast<size_t>(stream.gcount()) != count) return std::nullopt;
  return bytes;
}

int64_t big16(const Bytes& b, size_t at) { return b[at] << 8 | b[at + 1]; }
int64_t big32(const Bytes& b, size_t at) { return big16(b, at) << 16 | big16(b, at + 2); }

ImageHeader decode(const std::string& path) {
  try {
    const cv::Mat image = read_image(path);
    return {true, "", image.rows, image.cols};
  } catch (const Error&) {
    return bad("cannot be decoded");
  }
}

// The Exif orientation (1..8) of an APP1 segment, 1 if it has none. Orientations above 4 swap the sides.
int64_t exif_orientation(const Bytes& segment) {
  constexpr size_t kTiff = 6, kEntrySize = 12;
  if (segment.size() < kTiff + 8 || std::memcmp(segment.data(), "Exif\0\0", kTiff) != 0) return 1;
  const bool little = segment[kTiff] == 'I';
  const auto u16 = [&](size_t at) -> size_t {
    if (at + 2 > segment.size()) return 0;
    return little ? segment[at] | segment[at + 1] << 8 : segment[at] << 8 | segment[at + 1];
  };
  const auto u32 = [&](size_t at) { return little ? u16(at) | u16(at + 2) << 16 : u16(at) << 16 | u16(at + 2); };
  const size_t directory = kTiff + u32(kTiff + 4);
  const size_t entries = u16(directory);
  for (size_t i = 0; i < entries; ++i) {
    const size_t entry = directory + 2 + kEntrySize * i;
    if (entry + kEntrySize > segment.size()) break;
    if (u16(entry) == 0x0112) return static_cast<int64_t>(u16(entry + 8));
  }
  return 1;
}

// In entropy-coded data 0xFF is followed by 0 or a restart marker; the first other marker that is an end of image
// outside a segment says that the picture is whole. `stream` stands behind a start-of-scan header.
bool finds_end_of_image(std::ifstream& stream) {
  const Bytes rest((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  for (size_t i = 0; i + 1 < rest.size(); ++i) {
    if (rest[i] != 0xFF) continue;
    const uint8_t marker = rest[i + 1];
    if (marker == 0xD9) return true;
    if (marker == 0 || marker == 0xFF || (marker >= 0xD0 && marker <= 0xD7) || i + 3 >= rest.size()) continue;
    i += 1 + static_cast<size_t>(big16(rest, i + 2));  // a segment between the scans of a progressive picture
  }
  return false;
}

bool is_frame_marker(uint8_t marker) {
  return marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
}

ImageHeader probe_jpeg(const std::string& path, std::ifstream& stream, uintmax_t file_size) {
  ImageHeader header;
  int64_t orientation = 1;
  stream.seekg(-2, std::ios::end);
  const std::optional<Bytes> tail = read_bytes(stream, 2);
  const bool ends_well = tail && (*tail)[0] == 0xFF && (*tail)[1] == 0xD9;
  stream.clear();
  stream.seekg(2);
  while (true) {
    const std::optional<Bytes> marker = read_bytes(stream, 2);
    if (!marker) return bad("the file ends in its header");
    if ((*marker)[0] != 0xFF) return decode(path);
    const uint8_t type = (*marker)[1];
    if (type == 0xFF) {  // a fill byte
      stream.seekg(-1, std::ios::cur);
      continue;
    }
    const std::optional<Bytes> length = read_bytes(stream, 2);
    if (!length || big16(*length, 0) < 2) return bad("the file ends in its header");
    const auto size = static_cast<size_t>(big16(*length, 0) - 2);
    if (static_cast<uintmax_t>(stream.tellg()) + size > file_size) return bad("the file ends in its header");
    if (type == 0xE1 || is_frame_marker(type)) {
      const std::optional<Bytes> segment = read_bytes(stream, size);
      if (!segment) return bad("the file ends in its header");
      if (type == 0xE1) {
        if (orientation == 1) orientation = exif_orientation(*segment);
      } else if (size >= 5) {
        header.height = big16(*segment, 1);
        header.width = big16(*segment, 3);
      }
    } else {
      stream.seekg(static_cast<std::streamoff>(size), std::ios::cur);
    }
    if (type == 0xDA) break;
  }
  if (header.height < 1 || header.width < 1) return decode(path);
  if (!ends_well && !finds_end_of_image(stream)) return bad("the JPEG is cut short");
  if (orientation > 4 && orientation <= 8) std::swap(header.height, header.width);
  header.ok = true;
  return header;
}

ImageHeader probe_png(const std::string& path, std::ifstream& stream, uintmax_t file_size) {
  ImageHeader header;
  bool has_data = false;
  auto at = uintmax_t{8};
  while (true) {
    stream.seekg(static_cast<std::streamoff>(at));
    const std::optional<Bytes> chunk = read_bytes(stream, 8);
    if (!chunk) return bad("the PNG is cut short");
    const auto length = static_cast<uintmax_t>(big32(*chunk, 0));
    const std::string type(chunk->begin() + 4, chunk->end());
    if (at + 12 + length > file_size) return bad("the PNG is cut short");
    if (type == "IHDR") {
      const std::optional<Bytes> size = read_bytes(stream, 8);
      if (!size) return bad("the PNG is cut short");
      header.width = big32(*size, 0);
      header.height = big32(*size, 4);
    }
    has_data = has_data || type == "IDAT";
    if (type == "eXIf") return decode(path);  // may turn the picture
    if (type == "IEND") break;
    at += 12 + length;
  }
  if (!has_data || header.height < 1 || header.width < 1) return bad("the PNG has no picture");
  header.ok = true;
  return header;
}

}  // namespace

ImageHeader probe_image(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return bad("there is no such file");
  const uintmax_t size = std::filesystem::file_size(path, error);
  if (size == 0) return bad("the file is empty");
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return bad("the file cannot be read");
  const Bytes start = read_bytes(stream, 8).value_or(Bytes(8));
  stream.clear();
  if (start[0] == 0xFF && start[1] == 0xD8 && size > 4) return probe_jpeg(path, stream, size);
  if (std::memcmp(start.data(), "\x89PNG\r\n\x1a\n", 8) == 0) return probe_png(path, stream, size);
  return decode(path);
}

}  // namespace yolo9
