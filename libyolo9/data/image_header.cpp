#include <yolo9/data/image_header.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <yolo9/data/image_header_parts.h>

namespace yolo9 {

namespace header {

ImageHeader& fail(ImageHeader& header, ImageFault kind, std::string text) {
  header.ok = false;
  header.kind = kind;
  header.fault = std::move(text);
  return header;
}

}  // namespace header

namespace {

using header::fail;

// Pictures that people do have, but that OpenCV does not decode: named, so that nobody looks for damage.
const char* unsupported_kind(ByteSource& source) {
  if (source.matches(0, "GIF8")) return "a GIF";
  if (source.matches(4, "ftyp")) {
    for (const char* brand : {"heic", "heix", "mif1", "msf1", "hevc"}) {
      if (source.matches(8, brand)) return "a HEIF picture";
    }
    return source.matches(8, "avif") ? "an AVIF picture" : "a video or another container";
  }
  if (source.u32(0, false) == 0xFF4FFF51) return "a bare JPEG 2000 stream";
  if (source.matches(0, "%PDF")) return "a PDF document";
  if (source.matches(0, "8BPS")) return "a Photoshop document";
  return nullptr;
}

bool is_netpbm(ByteSource& source) {
  const uint8_t kind = source.u8(1);
  return source.u8(0) == 'P' && ((kind >= '1' && kind <= '6') || kind == 'F' || kind == 'f') &&
         std::isspace(source.u8(2)) != 0;
}

void parse(ByteSource& source, ImageHeader& header) {
  if (source.u8(0) == 0xFF && source.u8(1) == 0xD8 && source.u8(2) == 0xFF) return header::parse_jpeg(source, header);
  if (source.matches(0, "\x89PNG\r\n\x1a\n")) return header::parse_png(source, header);
  if (source.matches(0, "RIFF") && source.matches(8, "WEBP")) return header::parse_webp(source, header);
  const bool little = source.matches(0, "II");
  const uint16_t magic = source.u16(2, little);
  if ((little || source.matches(0, "MM")) && (magic == 42 || magic == 43)) return header::parse_tiff(source, header);
  // The two letters alone could begin a text.
  if (source.matches(0, "BM") && source.u16(16, true) == 0) return header::parse_bmp(source, header);
  if (is_netpbm(source)) return header::parse_netpbm(source, header);
  if (source.matches(4, "jP  \r\n\x87\n")) return header::parse_jpeg_2000(source, header);
  if (const char* kind = unsupported_kind(source)) {
    fail(header, ImageFault::Unsupported, std::string("is ") + kind + ", which cannot be read");
  } else {
    fail(header, ImageFault::NotAPicture, "is not a picture");
  }
}

// What a picture's decoding would need all at once.
void limit_size(ImageHeader& header) {
  const bool by_rows =
      (header.format == ImageFormat::Jpeg && header.components != 4) || header.format == ImageFormat::Png;
  const bool whole = !by_rows || header.progressive;
  const int64_t longest = std::max(header.height, header.width);
  const std::string size = std::to_string(header.width) + "x" + std::to_string(header.height) + " pixels";
  if (longest > kLongestSide || header.height * header.width > kMostPixels) {
    fail(header, ImageFault::TooLarge, size + " are more than can be read");
  } else if (whole && header.height * header.width > kMostPixelsWhole) {
    const char* kind = header.progressive ? (header.format == ImageFormat::Png ? "an interlaced " : "a progressive ")
                                          : (header.format == ImageFormat::Jpeg ? "a CMYK " : "a ");
    fail(header, ImageFault::TooLarge,
         size + " are too large for " + kind + to_string(header.format) + ", which is decoded as a whole");
  }
}

ImageHeader probe(ByteSource& source) {
  ImageHeader header;
  if (source.size() == 0) return fail(header, ImageFault::EmptyFile, "the file is empty");
  parse(source, header);
  if (header.height > 0 && header.width > 0 && (header.ok || header.kind == ImageFault::None)) limit_size(header);
  if (header.orientation > 4) std::swap(header.height, header.width);
  return header;
}

}  // namespace

std::string to_string(ImageFault fault) {
  constexpr const char* kNames[kImageFaults] = {"none",          "missing", "unreadable",  "empty_file", "truncated",
                                                "not_a_picture", "damaged", "unsupported", "too_small",  "too_large"};
  return kNames[static_cast<size_t>(fault)];
}

std::string to_string(ImageFormat format) {
  constexpr const char* kNames[kImageFormats] = {"other", "JPEG", "PNG", "BMP", "TIFF", "WebP", "Netpbm", "JPEG 2000"};
  return kNames[static_cast<size_t>(format)];
}

ImageHeader probe_image_bytes(std::span<const uint8_t> bytes) {
  ByteSource source(bytes);
  return probe(source);
}

ImageHeader probe_image(const std::string& path) {
  ImageHeader header;
  // Non-blocking, so that a pipe with a picture's name does not stop the run.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    const bool missing = errno == ENOENT || errno == ENOTDIR || errno == ELOOP;
    return missing ? fail(header, ImageFault::Missing, "there is no such file")
                   : fail(header, ImageFault::Unreadable, "the file cannot be read");
  }
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    fail(header, ImageFault::Missing, "is not a file");
  } else {
    ByteSource source(descriptor, static_cast<uint64_t>(status.st_size));
    header = probe(source);
  }
  ::close(descriptor);
  return header;
}

ImageFormat format_of_extension(const std::string& path) {
  const size_t dot = path.find_last_of("./");
  if (dot == std::string::npos || path[dot] == '/') return ImageFormat::Other;
  std::string extension = path.substr(dot + 1);
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  constexpr std::pair<const char*, ImageFormat> kKnown[] = {
      {"jpg", ImageFormat::Jpeg},   {"jpeg", ImageFormat::Jpeg},   {"jpe", ImageFormat::Jpeg},
      {"mpo", ImageFormat::Jpeg},   {"png", ImageFormat::Png},     {"bmp", ImageFormat::Bmp},
      {"dib", ImageFormat::Bmp},    {"tif", ImageFormat::Tiff},    {"tiff", ImageFormat::Tiff},
      {"dng", ImageFormat::Tiff},   {"webp", ImageFormat::WebP},   {"pbm", ImageFormat::Netpbm},
      {"pgm", ImageFormat::Netpbm}, {"ppm", ImageFormat::Netpbm},  {"pnm", ImageFormat::Netpbm},
      {"pfm", ImageFormat::Netpbm}, {"jp2", ImageFormat::Jpeg2000}};
  for (const auto& [name, format] : kKnown) {
    if (extension == name) return format;
  }
  return ImageFormat::Other;
}

}  // namespace yolo9
