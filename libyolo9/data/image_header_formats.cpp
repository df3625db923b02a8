#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include <yolo9/data/image_header_parts.h>

namespace yolo9::header {
namespace {

// A directory of a TIFF structure inside [base, base + length) of a file, as in a TIFF or in Exif data.
struct TiffDirectory {
  ByteSource& source;
  uint64_t base, length;
  bool little, big;  // byte order; BigTIFF
  uint64_t entries_at = 0, entries = 0;
  bool whole = false;

  struct Entry {
    uint16_t type = 0;
    uint64_t count = 0, values_at = 0;  // from base
  };

  bool inside(uint64_t at, uint64_t count) const {
    return at <= length && count <= length - at && source.has(base + at, count);
  }
  uint64_t entry_size() const { return big ? 20 : 12; }

  void open() {
    const uint64_t at = big ? source.u64(base + 8, little) : source.u32(base + 4, little);
    const uint64_t head = big ? 8 : 2;
    if (at < 8 || !inside(at, head)) return;
    entries = big ? source.u64(base + at, little) : source.u16(base + at, little);
    entries_at = at + head;
    whole = entries <= 65535 && inside(entries_at, entries * entry_size());
    if (!whole) entries = 0;
  }

  static uint64_t type_size(uint16_t type) {
    constexpr std::array<uint8_t, 19> kSizes{0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8, 8, 8};
    return type < kSizes.size() ? kSizes[type] : 0;
  }

  bool find(uint16_t tag, Entry& entry) const {
    for (uint64_t i = 0; i < entries; ++i) {
      const uint64_t at = entries_at + i * entry_size();
      if (source.u16(base + at, little) != tag) continue;
      entry.type = source.u16(base + at + 2, little);
      entry.count = big ? source.u64(base + at + 4, little) : source.u32(base + at + 4, little);
      const uint64_t value_at = at + (big ? 12 : 8), room = big ? 8 : 4, size = type_size(entry.type);
      if (size == 0 || entry.count > length / size) return false;
      entry.values_at = value_at;
      if (entry.count * size > room) {
        entry.values_at = big ? source.u64(base + value_at, little) : source.u32(base + value_at, little);
      }
      return inside(entry.values_at, entry.count * size);
    }
    return false;
  }

  // Whether the values of all entries end inside the file.
  bool has_all_values() const {
    for (uint64_t i = 0; i < entries; ++i) {
      const uint64_t at = entries_at + i * entry_size();
      const uint64_t size = type_size(source.u16(base + at + 2, little));
      const uint64_t count = big ? source.u64(base + at + 4, little) : source.u32(base + at + 4, little);
      if (size == 0) continue;
      if (count > length / size) return false;
      const uint64_t value_at = at + (big ? 12 : 8);
      const uint64_t values = big ? source.u64(base + value_at, little) : source.u32(base + value_at, little);
      if (count * size > (big ? 8 : 4) && !inside(values, count * size)) return false;
    }
    return true;
  }

  uint64_t value(const Entry& entry, uint64_t index) const {
    const uint64_t at = base + entry.values_at + index * type_size(entry.type);
    switch (type_size(entry.type)) {
      case 1: return source.u8(at);
      case 2: return source.u16(at, little);
      case 4: return source.u32(at, little);
      default: return source.u64(at, little);
    }
  }
  uint64_t number(uint16_t tag, uint64_t otherwise) const {
    Entry entry;
    return find(tag, entry) && entry.count > 0 ? value(entry, 0) : otherwise;
  }
};

TiffDirectory open_tiff(ByteSource& source, uint64_t at, uint64_t length) {
  const bool little = source.matches(at, "II");
  TiffDirectory directory{source, at, length, little, source.u16(at + 2, little) == 43};
  directory.open();
  return directory;
}

constexpr uint16_t kOrientationTag = 274;

int sane_orientation(uint64_t value) { return value >= 1 && value <= 8 ? static_cast<int>(value) : 1; }

// Whether the strips (or tiles) end inside the file. Files of more strips are looked at by their last.
bool has_data(const TiffDirectory& directory, uint16_t offsets_tag, uint16_t counts_tag, bool& whole) {
  constexpr uint64_t kMostChecked = 4096;
  TiffDirectory::Entry offsets, counts;
  if (!directory.find(offsets_tag, offsets) || !directory.find(counts_tag, counts) || offsets.count == 0) return false;
  const uint64_t count = std::min(offsets.count, counts.count);
  for (uint64_t i = count > kMostChecked ? count - kMostChecked : 0; i < count && whole; ++i) {
    whole = directory.inside(directory.value(offsets, i), directory.value(counts, i));
  }
  return true;
}

// WebP's chunks from `at` on: the size of a lossy or lossless picture.
bool read_webp_picture(ByteSource& source, uint64_t at, ImageHeader& header) {
  if (source.matches(at, "VP8 ")) {
    if (source.u8(at + 11) != 0x9D || source.u8(at + 12) != 0x01 || source.u8(at + 13) != 0x2A) return false;
    header.width = source.u16(at + 14, true) & 0x3FFF;
    header.height = source.u16(at + 16, true) & 0x3FFF;
    header.components = 3;
    return true;
  }
  if (!source.matches(at, "VP8L") || source.u8(at + 8) != 0x2F) return false;
  const uint32_t packed = source.u32(at + 9, true);
  header.width = static_cast<int64_t>(packed & 0x3FFF) + 1;
  header.height = static_cast<int64_t>(packed >> 14 & 0x3FFF) + 1;
  header.components = (packed >> 28 & 1) != 0 ? 4 : 3;
  return true;
}

}  // namespace

int tiff_orientation(ByteSource& source, uint64_t at, uint64_t length) {
  if (!source.matches(at, "II") && !source.matches(at, "MM")) return 1;
  const bool little = source.matches(at, "II");
  if (length < 8 || source.u16(at + 2, little) != 42) return 1;
  return sane_orientation(open_tiff(source, at, length).number(kOrientationTag, 1));
}

void parse_bmp(ByteSource& source, ImageHeader& header) {
  header.format = ImageFormat::Bmp;
  if (!source.has(0, 26)) {
    fail(header, ImageFault::Truncated, "the BMP is cut short");
    return;
  }
  const uint64_t offset = source.u32(10, true), info = source.u32(14, true);
  const bool old = info == 12;
  if (!old && (info < 36 || !source.has(14, info))) {
    const bool cut = info >= 36 && info <= 256;
    fail(header, cut ? ImageFault::Truncated : ImageFault::Damaged,
         cut ? "the BMP is cut short" : "the BMP has no header that makes sense");
    return;
  }
  header.width = old ? source.u16(18, true) : static_cast<int32_t>(source.u32(18, true));
  header.height = old ? source.u16(20, true) : static_cast<int32_t>(source.u32(22, true));
  header.height = std::abs(header.height);  // below zero: the rows run downwards
  const uint64_t bits = source.u16(old ? 24 : 28, true), compression = old ? 0 : source.u32(30, true);
  header.components = bits <= 8 ? 1 : bits == 32 ? 4 : 3;
  if (header.height < 1 || header.width < 1 || bits > 32) {
    fail(header, ImageFault::Damaged, "the BMP has no size");
    return;
  }
  constexpr uint64_t kPlain = 0, kRle8 = 1, kRle4 = 2, kMasks = 3, kAlphaMasks = 6;
  const bool plain = compression == kPlain || compression == kMasks || compression == kAlphaMasks;
  if (!plain && compression != kRle8 && compression != kRle4) {
    fail(header, ImageFault::Unsupported, "is a BMP of a kind that cannot be read");
    return;
  }
  // Sides are below 2^31, so the product stays below 2^64.
  const uint64_t row = (static_cast<uint64_t>(header.width) * bits + 31) / 32 * 4;
  const uint64_t data = plain ? row * static_cast<uint64_t>(header.height) : source.u32(34, true);
  if (!source.has(offset, std::max<uint64_t>(data, 1))) {
    fail(header, ImageFault::Truncated, "the BMP is cut short");
    return;
  }
  header.ok = true;
}

void parse_tiff(ByteSource& source, ImageHeader& header) {
  header.format = ImageFormat::Tiff;
  const TiffDirectory directory = open_tiff(source, 0, source.size());
  if (!directory.whole || !directory.has_all_values()) {
    fail(header, ImageFault::Truncated, "the TIFF is cut short");
    return;
  }
  constexpr uint16_t kWidth = 256, kHeight = 257, kBits = 258, kStrips = 273, kSamples = 277, kStripSizes = 279,
                     kTiles = 324, kTileSizes = 325;
  constexpr uint64_t kLargest = 0x7FFFFFFF;
  const uint64_t width = directory.number(kWidth, 0), height = directory.number(kHeight, 0);
  if (width < 1 || height < 1 || width > kLargest || height > kLargest) {
    fail(header, ImageFault::Damaged, "the TIFF has no size");
    return;
  }
  header.width = static_cast<int64_t>(width);
  header.height = static_cast<int64_t>(height);
  header.components = static_cast<int>(std::min<uint64_t>(directory.number(kSamples, 1), 255));
  header.bits = static_cast<int>(std::min<uint64_t>(directory.number(kBits, 1), 255));
  header.orientation = sane_orientation(directory.number(kOrientationTag, 1));
  bool whole = true;
  if (!has_data(directory, kStrips, kStripSizes, whole) && !has_data(directory, kTiles, kTileSizes, whole)) {
    fail(header, ImageFault::Truncated, "the TIFF has no picture");
  } else if (!whole) {
    fail(header, ImageFault::Truncated, "the TIFF is cut short");
  } else {
    header.ok = true;
  }
}

void parse_webp(ByteSource& source, ImageHeader& header) {
  header.format = ImageFormat::WebP;
  const uint64_t end = uint64_t{8} + source.u32(4, true);
  if (!source.has(0, 30) || !source.has(0, end)) {
    fail(header, ImageFault::Truncated, "the WebP is cut short");
    return;
  }
  if (source.matches(12, "VP8X")) {
    constexpr uint8_t kAnimated = 2, kAlpha = 16;
    const uint8_t flags = source.u8(20);
    header.width = static_cast<int64_t>(source.u32(24, true) & 0xFFFFFF) + 1;
    header.height = static_cast<int64_t>(source.u32(26, true) >> 8) + 1;  // without byte 26, the width's last
    header.components = (flags & kAlpha) != 0 ? 4 : 3;
    if ((flags & kAnimated) != 0) {
      fail(header, ImageFault::Unsupported, "is an animation, which cannot be read");
      return;
    }
  } else if (!read_webp_picture(source, 12, header) || header.height < 1 || header.width < 1) {
    fail(header, ImageFault::Damaged, "the WebP has no header that makes sense");
    return;
  }
  header.ok = true;
}

void parse_netpbm(ByteSource& source, ImageHeader& header) {
  header.format = ImageFormat::Netpbm;
  const uint8_t kind = source.u8(1);
  const bool bitmap = kind == '1' || kind == '4', text = kind <= '3', real = kind == 'F' || kind == 'f';
  header.components = kind == '3' || kind == '6' || kind == 'F' ? 3 : 1;
  std::array<int64_t, 3> numbers{0, 0, 1};  // width, height, largest value
  constexpr uint64_t kLongestHeader = 4096;
  uint64_t at = 2;
  for (size_t i = 0; i < (bitmap ? 2u : 3u); ++i) {
    while (at < kLongestHeader && (std::isspace(source.u8(at)) != 0 || source.u8(at) == '#')) {
      if (source.u8(at) == '#') {
        while (at < kLongestHeader && source.has(at, 1) && source.u8(at) != '\n') ++at;
      }
      ++at;
    }
    numbers[i] = 0;
    for (int digits = 0; std::isdigit(source.u8(at)) != 0 && digits < 9; ++digits, ++at) {
      numbers[i] = 10 * numbers[i] + (source.u8(at) - '0');
    }
  }
  // A PFM has a scale, such as -1.0, for the largest value.
  while (real && at < kLongestHeader && source.has(at, 1) && std::isspace(source.u8(at)) == 0) ++at;
  if (real) numbers[2] = 1;
  ++at;  // one blank before the pixels
  header.width = numbers[0];
  header.height = numbers[1];
  header.bits = real ? 32 : numbers[2] > 255 ? 16 : 8;
  if (header.height < 1 || header.width < 1 || numbers[2] < 1 || numbers[2] > 65535) {
    fail(header, ImageFault::Damaged, "the Netpbm picture has no header that makes sense");
    return;
  }
  const auto width = static_cast<uint64_t>(header.width), height = static_cast<uint64_t>(header.height);
  const auto samples = width * static_cast<uint64_t>(header.components);
  // A text needs a digit a sample, with a blank behind it but in bitmaps.
  uint64_t bytes = bitmap ? (width + 7) / 8 * height : samples * height * static_cast<uint64_t>(header.bits / 8);
  if (text) bytes = bitmap ? width * height : 2 * samples * height;
  if (source.has(at, bytes)) {
    header.ok = true;
  } else {
    fail(header, ImageFault::Truncated, "the Netpbm picture is cut short");
  }
}

void parse_jpeg_2000(ByteSource& source, ImageHeader& header) {
  header.format = ImageFormat::Jpeg2000;
  uint64_t at = 12;
  while (source.has(at, 8)) {
    const uint64_t claimed = source.u32(at, false), size = claimed == 0 ? source.size() - at : claimed;
    if (claimed == 1 || (claimed > 1 && claimed < 8)) break;  // boxes above 4 GiB, or nonsense
    if (!source.has(at, size)) break;
    if (source.matches(at + 4, "jp2h") && source.matches(at + 12, "ihdr") && source.has(at + 16, 12)) {
      header.height = source.u32(at + 16, false);
      header.width = source.u32(at + 20, false);
      header.components = std::min<int>(source.u16(at + 24, false), 255);
      header.bits = (source.u8(at + 26) & 0x7F) + 1;
    } else if (source.matches(at + 4, "jp2c")) {
      header.ok = header.height > 0 && header.width > 0 && source.u16(at + size - 2, false) == 0xFFD9;
    }
    at += size;
  }
  if (!header.ok) fail(header, ImageFault::Truncated, "the JPEG 2000 picture is cut short or damaged");
}

}  // namespace yolo9::header
