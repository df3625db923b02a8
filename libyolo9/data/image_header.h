// A picture's size without decoding it, and whether the file is whole. No pixels, and no memory that a header could
// make large: a header that claims a billion pixels costs as much as any other.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace yolo9 {

enum class ImageFormat : uint8_t { Other, Jpeg, Png, Bmp, Tiff, WebP, Netpbm, Jpeg2000 };
constexpr int kImageFormats = 8;

// Why a picture cannot be used.
enum class ImageFault : uint8_t {
  None,
  Missing,     // there is no such file
  Unreadable,  // it may not be read
  EmptyFile,
  Truncated,
  NotAPicture,
  Damaged,      // its header contradicts itself
  Unsupported,  // a picture of a kind that cannot be decoded
  TooSmall,
  TooLarge,  // for a format that is decoded as a whole, or for any
};
constexpr int kImageFaults = 10;
std::string to_string(ImageFault fault);    // "empty_file"
std::string to_string(ImageFormat format);  // "JPEG"

struct ImageHeader {
  bool ok = false;
  std::string fault;              // what is wrong, when not ok; the size is given where it was found
  int64_t height = 0, width = 0;  // as read_image gives it, that is, after turning by the camera's orientation
  ImageFault kind = ImageFault::None;
  ImageFormat format = ImageFormat::Other;
  // Exif's 1..8: how the stored picture is to be turned; above 4 the sides are swapped. 1 for formats whose
  // orientation OpenCV does not apply (WebP).
  int orientation = 1;
  int components = 0;        // channels as stored, with alpha; 4 for a CMYK JPEG; 1 for a palette
  int bits = 8;              // of a component
  bool progressive = false;  // JPEG in scans, or interlaced PNG: nothing can be shown before all is read
};

// Pictures of formats (and kinds: progressive, CMYK) that must be decoded as a whole may have this many pixels.
constexpr int64_t kMostPixelsWhole = 100'000'000;
// Any picture may have this many, and such sides: the sums of a decoder's row and file sizes stay in range.
constexpr int64_t kMostPixels = int64_t{1} << 32;
constexpr int64_t kLongestSide = 1'000'000;

// By contents, whatever the file's name says. Never throws for a bad file; reads a few blocks of it, all of a JPEG
// with bytes behind its end.
ImageHeader probe_image(const std::string& path);
// The same for a file in memory.
ImageHeader probe_image_bytes(std::span<const uint8_t> bytes);
// The format that a file's extension promises; Other for unknown ones.
ImageFormat format_of_extension(const std::string& path);

}  // namespace yolo9
