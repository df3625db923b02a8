#include <algorithm>
#include <string_view>

#include <yolo9/data/image_header_parts.h>

namespace yolo9::header {
namespace {

// In entropy-coded data 0xFF is followed by 0 or a restart marker; the first other marker that is an end of image
// outside a segment says that the picture is whole. `at` stands behind a start-of-scan header.
bool finds_end_of_image(ByteSource& source, uint64_t at) {
  while (at + 1 < source.size()) {
    const std::span<const uint8_t> block = source.read(at, ByteSource::kLargestRead);
    if (block.size() < 2) return false;
    const auto found = std::find(block.begin(), block.end() - 1, uint8_t{0xFF});
    const auto offset = static_cast<uint64_t>(found - block.begin());
    if (found == block.end() - 1) {
      at += offset;  // the last byte may be the first of a marker
      if (*found != 0xFF) ++at;
      continue;
    }
    const uint8_t marker = found[1];
    at += offset;
    if (marker == 0xD9) return true;
    if (marker == 0xFF) {
      at += 1;
    } else if (marker == 0 || marker == 1 || (marker >= 0xD0 && marker <= 0xD8)) {
      at += 2;
    } else {  // a segment between the scans of a progressive picture
      at += 2 + std::max<uint64_t>(2, source.u16(at + 2, false));
    }
  }
  return false;
}

bool is_frame_marker(uint8_t marker) {
  return marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
}

// `at`: of the contents of a start-of-frame segment.
void read_frame(ByteSource& source, uint64_t at, uint8_t marker, ImageHeader& header) {
  header.bits = source.u8(at);
  header.height = source.u16(at + 1, false);
  header.width = source.u16(at + 3, false);
  header.components = source.u8(at + 5);
  header.progressive = marker == 0xC2 || marker == 0xCA;
  // Baseline, extended and progressive, with either entropy coder; the others are lossless or hierarchical.
  const bool known = marker <= 0xC2 || marker == 0xC9 || marker == 0xCA;
  if (!known || header.bits != 8) {
    fail(header, ImageFault::Unsupported, "is a JPEG of a kind (lossless, hierarchical, 12 bits) that cannot be read");
  } else if (header.components != 1 && header.components != 3 && header.components != 4) {
    fail(header, ImageFault::Unsupported, "is a JPEG of " + std::to_string(header.components) + " components");
  } else if (header.height < 1 || header.width < 1) {
    fail(header, ImageFault::Damaged, "the JPEG has no size");
  }
}

constexpr std::string_view kExif{"Exif\0\0", 6};

}  // namespace

void parse_jpeg(ByteSource& source, ImageHeader& header) {
  header.format = ImageFormat::Jpeg;
  const auto cut = [&header] { fail(header, ImageFault::Truncated, "the JPEG is cut short in its header"); };
  bool has_frame = false, has_exif = false;
  uint64_t at = 2;
  while (true) {
    if (!source.has(at, 4)) return cut();
    if (source.u8(at) != 0xFF) {  // bytes between segments are skipped, as decoders do
      ++at;
      continue;
    }
    const uint8_t type = source.u8(at + 1);
    if (type == 0xFF) {  // a fill byte
      ++at;
      continue;
    }
    if (type == 0 || type == 1 || (type >= 0xD0 && type <= 0xD8)) {  // no segment
      at += 2;
      continue;
    }
    if (type == 0xD9) {
      fail(header, ImageFault::Damaged, "the JPEG ends before its picture");
      return;
    }
    const uint64_t length = source.u16(at + 2, false), contents = at + 4;
    if (length < 2) {
      fail(header, ImageFault::Damaged, "a JPEG segment without length");
      return;
    }
    if (!source.has(at + 2, length)) return cut();
    if (type == 0xE1 && !has_exif && length >= 2 + kExif.size() && source.matches(contents, kExif)) {
      has_exif = true;
      header.orientation = tiff_orientation(source, contents + kExif.size(), length - 2 - kExif.size());
    } else if (is_frame_marker(type) && !has_frame) {
      if (length < 8) return cut();
      read_frame(source, contents, type, header);
      if (header.kind != ImageFault::None) return;
      has_frame = true;
    }
    at += 2 + length;
    if (type == 0xDA) break;
  }
  if (!has_frame) {
    fail(header, ImageFault::Damaged, "the JPEG has no size");
    return;
  }
  const uint64_t size = source.size();
  const bool ends_well = size - at >= 2 && source.u16(size - 2, false) == 0xFFD9;
  if (!ends_well && !finds_end_of_image(source, at)) {
    fail(header, ImageFault::Truncated, "the JPEG is cut short");
    return;
  }
  header.ok = true;
}

void parse_png(ByteSource& source, ImageHeader& header) {
  header.format = ImageFormat::Png;
  const auto cut = [&header] { fail(header, ImageFault::Truncated, "the PNG is cut short"); };
  const auto damaged = [&header](const char* text) { fail(header, ImageFault::Damaged, text); };
  if (!source.has(8, 25)) return cut();
  if (source.u32(8, false) != 13 || !source.matches(12, "IHDR")) return damaged("the PNG does not begin with a header");
  header.width = source.u32(16, false);
  header.height = source.u32(20, false);
  header.bits = source.u8(24);
  header.progressive = source.u8(28) != 0;
  switch (source.u8(25)) {  // colour type
    case 0:
    case 3: header.components = 1; break;
    case 2: header.components = 3; break;
    case 4: header.components = 2; break;
    case 6: header.components = 4; break;
    default: return damaged("the PNG has an unknown colour type");
  }
  constexpr int64_t kLargest = 0x7FFFFFFF;  // by the format's definition
  if (header.height < 1 || header.width < 1 || header.height > kLargest || header.width > kLargest) {
    return damaged("the PNG has no size");
  }
  bool has_data = false;
  uint64_t at = 8;
  while (true) {
    if (!source.has(at, 12)) return cut();
    const uint64_t length = source.u32(at, false);
    if (!source.has(at, 12 + length)) return cut();
    if (source.matches(at + 4, "IDAT")) {
      has_data = true;
    } else if (source.matches(at + 4, "eXIf")) {
      header.orientation = tiff_orientation(source, at + 8, length);
    } else if (source.matches(at + 4, "IEND")) {
      break;
    }
    at += 12 + length;
  }
  if (!has_data) return damaged("the PNG has no picture");
  header.ok = true;
}

}  // namespace yolo9::header
