#include <yolo9/data/image_header.h>

#include <yolo9/core/error.h>
#include <yolo9/core/random.h>
#include <catch2/catch.hpp>
#include <opencv2/imgcodecs.hpp>

#include "data_set_support.h"
#include "image_bytes.h"

using namespace image_bytes;
using yolo9::ImageFault;
using yolo9::ImageFormat;
using yolo9::ImageHeader;

namespace {

ImageHeader probe_bytes(const std::string& bytes) {
  return yolo9::probe_image_bytes({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

// The header of a file, which must say the same as that of its bytes, and the size that decoding gives.
ImageHeader probe_whole(const std::string& path) {
  CAPTURE(path);
  const ImageHeader header = yolo9::probe_image(path), same = probe_bytes(read_all(path));
  CAPTURE(header.fault);
  CHECK(header.ok);
  CHECK(same.ok);
  CHECK((same.height == header.height && same.width == header.width && same.orientation == header.orientation));
  const cv::Mat image = yolo9::read_image(path);
  CHECK(header.height == image.rows);
  CHECK(header.width == image.cols);
  return header;
}

std::string write(const std::string& folder, const std::string& name, const cv::Mat& image,
                  const std::vector<int>& parameters = {}) {
  REQUIRE(cv::imwrite(folder + "/" + name, image, parameters));
  return folder + "/" + name;
}

cv::Mat grey(int height, int width, int depth = CV_8U) {
  return cv::Mat(height, width, CV_MAKETYPE(depth, 1), cv::Scalar(90));
}

// A frame header of a JPEG with the given marker, and what else a decoder looks for.
std::string jpeg_of(char marker, int height, int width, int components, int bits = 8) {
  std::string frame = number(static_cast<uint64_t>(bits), 1, false) + number(static_cast<uint64_t>(height), 2, false) +
                      number(static_cast<uint64_t>(width), 2, false) + static_cast<char>(components);
  for (int i = 0; i < components; ++i) frame += static_cast<char>(i + 1) + std::string("\x11\0", 2);
  return "\xFF\xD8\xFF" + std::string(1, marker) + number(frame.size() + 2, 2, false) + frame +
         std::string("\xFF\xDA\0\x08\1\1\0\0\x3F\0", 10) + "data\xFF\xD9";
}

}  // namespace

TEST_CASE("image_header: JPEG", "[data]") {
  const auto folder = fixture::temporary_dir("header_jpeg");
  const cv::Mat colour = data_set::noise(30, 44, 1);
  const std::string plain = write(folder, "plain.jpg", colour);
  const ImageHeader header = probe_whole(plain);
  CHECK(header.format == ImageFormat::Jpeg);
  CHECK(header.components == 3);
  CHECK_FALSE(header.progressive);
  CHECK(probe_whole(write(folder, "progressive.jpg", colour, {cv::IMWRITE_JPEG_PROGRESSIVE, 1})).progressive);
  CHECK(probe_whole(write(folder, "grey.jpg", grey(30, 44))).components == 1);
  const std::string bytes = read_all(plain);
  for (int orientation = 1; orientation <= 8; ++orientation) {
    for (const bool little : {false, true}) {
      write_all(folder + "/turned.jpg", with_exif(bytes, orientation, little));
      const ImageHeader turned = probe_whole(folder + "/turned.jpg");
      CHECK(turned.orientation == orientation);
      CHECK(turned.width == (orientation > 4 ? 30 : 44));
    }
  }
  write_all(folder + "/odd.jpg", with_exif(bytes, 9, true));
  CHECK(probe_whole(folder + "/odd.jpg").orientation == 1);
  write_all(folder + "/trailing.jpg", bytes + "bytes that a camera added");
  probe_whole(folder + "/trailing.jpg");

  CHECK(probe_bytes(jpeg_of('\xC0', 40, 50, 4)).components == 4);  // CMYK
  CHECK(probe_bytes(jpeg_of('\xC0', 40, 50, 4)).ok);
  CHECK(probe_bytes(jpeg_of('\xC2', 40, 50, 3)).progressive);
  CHECK(probe_bytes(jpeg_of('\xC3', 40, 50, 3)).kind == ImageFault::Unsupported);
  CHECK(probe_bytes(jpeg_of('\xC1', 40, 50, 3, 12)).kind == ImageFault::Unsupported);
  CHECK(probe_bytes(jpeg_of('\xC0', 40, 50, 2)).kind == ImageFault::Unsupported);
  CHECK(probe_bytes(jpeg_of('\xC0', 0, 50, 3)).kind == ImageFault::Damaged);
}

TEST_CASE("image_header: PNG of every depth", "[data]") {
  const auto folder = fixture::temporary_dir("header_png");
  const std::string plain = write(folder, "plain.png", data_set::noise(30, 44, 2));
  CHECK(probe_whole(plain).format == ImageFormat::Png);
  CHECK(probe_whole(write(folder, "grey.png", grey(30, 44))).components == 1);
  CHECK(probe_whole(write(folder, "deep.png", grey(30, 44, CV_16U))).bits == 16);
  CHECK(probe_whole(write(folder, "bits.png", grey(30, 44), {cv::IMWRITE_PNG_BILEVEL, 1})).bits == 1);
  CHECK(probe_whole(write(folder, "alpha.png", cv::Mat(30, 44, CV_8UC4, cv::Scalar(1, 2, 3, 4)))).components == 4);
  const std::string bytes = read_all(plain);
  for (int orientation = 1; orientation <= 8; ++orientation) {
    write_all(folder + "/turned.png", with_chunk(bytes, "eXIf", exif(orientation, orientation % 2 == 0)));
    CHECK(probe_whole(folder + "/turned.png").orientation == orientation);
  }
  CHECK(probe_bytes(png_of_size(30, 40, true)).progressive);
}

TEST_CASE("image_header: BMP, TIFF, WebP and Netpbm", "[data]") {
  const auto folder = fixture::temporary_dir("header_others");
  const cv::Mat colour = data_set::noise(30, 45, 3);
  CHECK(probe_whole(write(folder, "a.bmp", colour)).format == ImageFormat::Bmp);
  CHECK(probe_whole(write(folder, "grey.bmp", grey(30, 45))).components == 1);
  std::string downwards = read_all(folder + "/a.bmp");
  downwards.replace(22, 4, number(static_cast<uint64_t>(-30), 4, true));
  write_all(folder + "/down.bmp", downwards);
  probe_whole(folder + "/down.bmp");
  CHECK(probe_whole(write(folder, "a.tiff", colour)).format == ImageFormat::Tiff);
  probe_whole(write(folder, "deep.tiff", grey(30, 45, CV_16U)));
  for (const bool little : {false, true}) {
    for (int orientation = 1; orientation <= 8; ++orientation) {
      CAPTURE(little, orientation);
      write_all(folder + "/turned.tiff", tiff(44, 30, orientation, little));
      CHECK(probe_whole(folder + "/turned.tiff").orientation == orientation);
    }
  }
  CHECK(probe_whole(write(folder, "lossy.webp", colour, {cv::IMWRITE_WEBP_QUALITY, 80})).format == ImageFormat::WebP);
  probe_whole(write(folder, "lossless.webp", colour, {cv::IMWRITE_WEBP_QUALITY, 101}));
  // The extended form: a canvas, then the same picture.
  const std::string inner = read_all(folder + "/lossy.webp").substr(12);
  const std::string extended = "VP8X" + number(10, 4, true) + number(8, 4, true) + number(44, 3, true) +
                               number(29, 3, true) + inner + "EXIF" + number(exif(6, true).size(), 4, true) +
                               exif(6, true);
  write_all(folder + "/extended.webp", "RIFF" + number(extended.size() + 4, 4, true) + "WEBP" + extended);
  probe_whole(folder + "/extended.webp");
  for (const char* name : {"a.ppm", "a.pgm", "a.pbm"}) {
    CHECK(probe_whole(write(folder, name, std::string(name) == "a.ppm" ? colour : grey(30, 45))).format ==
          ImageFormat::Netpbm);
  }
  if (cv::haveImageWriter("a.jp2")) {
    const std::string path = write(folder, "a.jp2", data_set::noise(90, 130, 6));
    CHECK(probe_whole(path).format == ImageFormat::Jpeg2000);
    const std::string bytes = read_all(path);
    CHECK(probe_bytes(bytes.substr(0, bytes.size() / 2)).kind == ImageFault::Truncated);
  }
  cv::Mat real;
  colour.convertTo(real, CV_32F);
  CHECK(probe_whole(write(folder, "a.pfm", real)).bits == 32);
  write_all(folder + "/text.pgm", "P2\n# made by hand\n3 2 # w h\n255\n1 2 3\n4 5 6\n");
  CHECK(probe_whole(folder + "/text.pgm").width == 3);
}

TEST_CASE("image_header: every file that is cut is told", "[data]") {
  const auto folder = fixture::temporary_dir("header_cut");
  const cv::Mat image = data_set::noise(40, 60, 4);
  for (const char* name : {"a.jpg", "a.png", "a.bmp", "a.tiff", "a.webp", "a.ppm"}) {
    const std::string bytes = read_all(write(folder, name, image));
    for (const double share : {0.002, 0.01, 0.1, 0.5, 0.9, 0.999}) {
      CAPTURE(name, share);
      const auto keep = static_cast<size_t>(static_cast<double>(bytes.size()) * share);
      const ImageHeader header = probe_bytes(bytes.substr(0, keep));
      CHECK_FALSE(header.ok);
      CHECK_FALSE(header.fault.empty());
      if (share >= 0.1) CHECK(header.kind == ImageFault::Truncated);
      write_all(folder + "/cut", bytes.substr(0, keep));
      CHECK(yolo9::probe_image(folder + "/cut").kind == header.kind);
    }
  }
}

TEST_CASE("image_header: what is no picture, or none that can be read", "[data]") {
  const auto folder = fixture::temporary_dir("header_none");
  write_all(folder + "/empty.jpg", "");
  write_all(folder + "/text.jpg", "BM is how this text begins, and it is no picture");
  CHECK(yolo9::probe_image(folder + "/empty.jpg").kind == ImageFault::EmptyFile);
  CHECK(yolo9::probe_image(folder + "/text.jpg").kind == ImageFault::NotAPicture);
  CHECK(yolo9::probe_image(folder + "/missing.jpg").kind == ImageFault::Missing);
  CHECK(yolo9::probe_image(folder).kind == ImageFault::Missing);
  CHECK(probe_bytes("GIF89a" + std::string(40, '\1')).kind == ImageFault::Unsupported);
  CHECK(probe_bytes(std::string("\0\0\0\x18", 4) + "ftypheic" + std::string(40, '\1')).fault.find("HEIF") !=
        std::string::npos);
  CHECK(probe_bytes("P").kind == ImageFault::NotAPicture);
}

TEST_CASE("image_header: sizes that cannot be had", "[data]") {
  // Row by row these fit; as a whole they do not. Nothing of that size is ever allocated: the files are tiny.
  CHECK(probe_bytes(png_of_size(20000, 20000, false)).ok);
  CHECK(probe_bytes(png_of_size(20000, 20000, true)).kind == ImageFault::TooLarge);
  CHECK(probe_bytes(jpeg_of('\xC0', 20000, 20000, 3)).ok);
  CHECK(probe_bytes(jpeg_of('\xC2', 20000, 20000, 3)).kind == ImageFault::TooLarge);
  CHECK(probe_bytes(jpeg_of('\xC0', 20000, 20000, 4)).kind == ImageFault::TooLarge);
  CHECK(probe_bytes(png_of_size(0x7FFFFFFF, 0x7FFFFFFF, false)).kind == ImageFault::TooLarge);
  CHECK(probe_bytes(png_of_size(0x80000000, 4, false)).kind == ImageFault::Damaged);
  std::string webp = "VP8X" + number(10, 4, true) + number(0, 4, true) + number(16382, 3, true) +
                     number(16382, 3, true) + std::string(20, '\0');
  webp = "RIFF" + number(webp.size() + 4, 4, true) + "WEBP" + webp;
  CHECK(probe_bytes(webp).kind == ImageFault::TooLarge);
  CHECK(probe_bytes(webp).fault.find("WebP") != std::string::npos);
}

TEST_CASE("image_header: damaged bytes do no harm", "[data]") {
  const auto folder = fixture::temporary_dir("header_damage");
  std::vector<std::string> files;
  for (const char* name : {"a.jpg", "a.png", "a.bmp", "a.tiff", "a.webp", "a.ppm"}) {
    files.push_back(read_all(write(folder, name, data_set::noise(20, 30, 5))));
  }
  files.push_back(with_exif(files[0], 6, true));
  files.push_back(tiff(20, 30, 1, false));
  yolo9::Random random{5, 9};
  for (int round = 0; round < 4000; ++round) {
    std::string bytes = files[static_cast<size_t>(random.integer(static_cast<int64_t>(files.size())))];
    for (int64_t i = random.integer(6); i >= 0; --i) {
      bytes[static_cast<size_t>(random.integer(std::min<int64_t>(120, std::ssize(bytes))))] =
          static_cast<char>(random.integer(256));
    }
    const ImageHeader header = probe_bytes(bytes);
    REQUIRE(header.ok == header.fault.empty());
    REQUIRE(header.ok == (header.kind == ImageFault::None));
    if (header.ok) REQUIRE((header.height > 0 && header.width > 0 && header.orientation >= 1));
  }
}
