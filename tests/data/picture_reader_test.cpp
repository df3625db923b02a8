// Parts of pictures at reduced scale, against the whole picture.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include <jpeglib.h>
#include <png.h>

#include <yolo9/core/error.h>
#include <yolo9/core/random.h>
#include <yolo9/data/dataset.h>
#include <yolo9/data/image.h>
#include <yolo9/data/picture_reader.h>
#include <catch2/catch.hpp>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>

#include "data/data_set_support.h"
#include "data/image_bytes.h"

namespace {

// Waves of 120 pixels and more, which a JPEG holds well and an eighth of the size still shows.
cv::Mat soft(int height, int width, uint64_t seed) {
  cv::Mat picture(height, width, CV_8UC3);
  const auto phase = static_cast<double>(seed);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < 3; ++c) {
        const double wave =
            std::sin(x / 21.0 + phase + c) + std::sin(y / 25.0 - phase + 2 * c) + std::sin((x + y) / 33.0);
        picture.at<cv::Vec3b>(y, x)[c] = static_cast<uint8_t>(std::lround(127 + 35 * wave));
      }
    }
  }
  return picture;
}

// The value of a picture at a place in shares of it, by the part's own map.
cv::Vec3d value_at(const yolo9::PicturePart& part, double u, double v) {
  const yolo9::AffineMap& m = part.to_pixels;
  const double x = std::clamp(m.xx * u + m.xy * v + m.x0, 0.0, part.pixels.cols - 1.0);
  const double y = std::clamp(m.yx * u + m.yy * v + m.y0, 0.0, part.pixels.rows - 1.0);
  const int column = std::min(static_cast<int>(x), part.pixels.cols - 2);
  const int row = std::min(static_cast<int>(y), part.pixels.rows - 2);
  const double fx = x - column, fy = y - row;
  const auto at = [&](int r, int c) { return cv::Vec3d(part.pixels.at<cv::Vec3b>(r, c)); };
  return (at(row, column) * (1 - fx) + at(row, column + 1) * fx) * (1 - fy) +
         (at(row + 1, column) * (1 - fx) + at(row + 1, column + 1) * fx) * fy;
}

double gap(const cv::Vec3d& a, const cv::Vec3d& b) {
  return std::max({std::abs(a[0] - b[0]), std::abs(a[1] - b[1]), std::abs(a[2] - b[2])});
}

// Random parts of the file against all of it as read_image() gives it.
void check_parts(const std::string& path, int trials) {
  const cv::Mat whole_picture = cv::imread(path, cv::IMREAD_COLOR);
  const auto width = static_cast<double>(whole_picture.cols), height = static_cast<double>(whole_picture.rows);
  const yolo9::PicturePart whole{whole_picture, {width, 0, -0.5, 0, height, -0.5}, whole_picture.size()};
  yolo9::Random random{8};
  for (int trial = 0; trial < trials; ++trial) {
    yolo9::PartRequest request;
    request.x1 = random.uniform(-0.1, 0.9);
    request.y1 = random.uniform(-0.1, 0.9);
    request.x2 = request.x1 + random.uniform(0.05, 0.6);
    request.y2 = request.y1 + random.uniform(0.05, 0.6);
    const double reduction = random.uniform(0.5, 12);
    request.pixels_wide = width / reduction;
    request.pixels_high = height / reduction;
    const yolo9::PicturePart part = yolo9::read_picture_part(path, request);
    CAPTURE(path, trial, request.x1, request.y1, request.x2, request.y2, reduction, part.pixels.cols, part.pixels.rows);
    // As fine as asked for.
    const double scale_x = std::hypot(part.to_pixels.xx, part.to_pixels.yx);
    REQUIRE(scale_x >= std::min(request.pixels_wide, width) - 1e-6);
    for (int i = 0; i < 40; ++i) {
      // Nearer to the border than half a reduced pixel there is nothing to interpolate with.
      const double edge_u = std::min(0.5, reduction / 2 / width), edge_v = std::min(0.5, reduction / 2 / height);
      const double u = std::clamp(random.uniform(request.x1, request.x2), edge_u, 1 - edge_u);
      const double v = std::clamp(random.uniform(request.y1, request.y2), edge_v, 1 - edge_v);
      CAPTURE(u, v);
      // The waves rise by up to 2.7 levels a pixel: a part that stood half a reduced pixel off would fail.
      REQUIRE(gap(value_at(part, u, v), value_at(whole, u, v)) <= 1.2 + 0.5 * std::max(reduction, 1.0));
    }
  }
}

struct JpegKind {
  const char* name;
  bool progressive = false;
  int samples = 2;  // chroma subsampling both ways
  bool grey = false;
  bool cmyk = false;
};

void write_jpeg(const std::string& path, const cv::Mat& bgr, const JpegKind& kind) {
  jpeg_compress_struct info;
  jpeg_error_mgr errors;
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  std::FILE* file = std::fopen(path.c_str(), "wb");
  REQUIRE(file);
  jpeg_stdio_dest(&info, file);
  info.image_width = static_cast<JDIMENSION>(bgr.cols);
  info.image_height = static_cast<JDIMENSION>(bgr.rows);
  info.input_components = kind.grey ? 1 : kind.cmyk ? 4 : 3;
  info.in_color_space = kind.grey ? JCS_GRAYSCALE : kind.cmyk ? JCS_CMYK : JCS_EXT_BGR;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 97, TRUE);
  if (!kind.grey) info.comp_info[0].h_samp_factor = info.comp_info[0].v_samp_factor = kind.cmyk ? 1 : kind.samples;
  if (kind.progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  std::vector<uint8_t> row(4 * static_cast<size_t>(bgr.cols));
  for (int y = 0; y < bgr.rows; ++y) {
    const cv::Vec3b* pixel = bgr.ptr<cv::Vec3b>(y);
    for (int x = 0; x < bgr.cols; ++x) {
      const auto at = static_cast<size_t>(x);
      if (kind.grey) {
        row[at] = pixel[x][1];
      } else if (kind.cmyk) {  // inverted, as Adobe's programs write it
        for (int c = 0; c < 3; ++c) row[4 * at + static_cast<size_t>(c)] = pixel[x][2 - c];
        row[4 * at + 3] = 255;
      } else {
        for (int c = 0; c < 3; ++c) row[3 * at + static_cast<size_t>(c)] = pixel[x][c];
      }
    }
    JSAMPROW line = row.data();
    jpeg_write_scanlines(&info, &line, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::fclose(file);
}

// The most memory that this process has held since the last reset, in MiB; 0 where the kernel does not tell.
void reset_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }
int64_t status_mib(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(key, 0) == 0) return std::stoll(line.substr(key.size() + 1)) / 1024;
  }
  return 0;
}

}  // namespace

TEST_CASE("picture_reader: parts of every kind of JPEG", "[data]") {
  const std::string folder = fixture::temporary_dir("reader_jpeg");
  const JpegKind kind = GENERATE(JpegKind{"420"}, JpegKind{"444", false, 1}, JpegKind{"progressive", true, 2},
                                 JpegKind{"grey", false, 1, true}, JpegKind{"cmyk", false, 1, false, true});
  const std::string path = folder + "/" + kind.name + ".jpg";
  write_jpeg(path, soft(203, 317, 4), kind);
  check_parts(path, 60);
}

TEST_CASE("picture_reader: the eight orientations", "[data]") {
  const std::string folder = fixture::temporary_dir("reader_exif");
  write_jpeg(folder + "/plain.jpg", soft(150, 230, 5), {"plain"});
  const std::string bytes = image_bytes::read_all(folder + "/plain.jpg");
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const std::string path = folder + "/turned" + std::to_string(orientation) + ".jpg";
    image_bytes::write_all(path, image_bytes::with_exif(bytes, orientation, orientation % 2 == 0));
    const cv::Mat whole = cv::imread(path, cv::IMREAD_COLOR);
    CHECK(whole.cols == (orientation > 4 ? 150 : 230));
    check_parts(path, 20);
    yolo9::PartRequest all;
    const cv::Mat upright = yolo9::turned_upright(yolo9::read_picture_part(path, all));
    REQUIRE(upright.size() == whole.size());
    CHECK(cv::norm(upright, whole, cv::NORM_INF) == 0);
  }
}

TEST_CASE("picture_reader: parts of every kind of PNG, BMP, TIFF and WebP", "[data]") {
  const std::string folder = fixture::temporary_dir("reader_png");
  const cv::Mat picture = soft(203, 317, 6);
  cv::Mat grey, alpha, deep, bits;
  cv::cvtColor(picture, grey, cv::COLOR_BGR2GRAY);
  cv::cvtColor(picture, alpha, cv::COLOR_BGR2BGRA);
  picture.convertTo(deep, CV_16UC3, 257);
  yolo9::write_image(folder + "/colour.png", picture);
  yolo9::write_image(folder + "/grey.png", grey);
  yolo9::write_image(folder + "/alpha.png", alpha);
  yolo9::write_image(folder + "/deep.png", deep);
  yolo9::write_image(folder + "/b.bmp", picture);
  yolo9::write_image(folder + "/t.tiff", picture);
  cv::imwrite(folder + "/w.webp", picture, {cv::IMWRITE_WEBP_QUALITY, 101});
  for (const char* name : {"colour.png", "grey.png", "alpha.png", "deep.png", "b.bmp", "t.tiff", "w.webp"}) {
    check_parts(folder + "/" + name, 40);
    const std::string path = folder + "/" + name;
    CHECK(cv::norm(yolo9::read_picture_part(path, {}).pixels, cv::imread(path, cv::IMREAD_COLOR), cv::NORM_INF) == 0);
    CHECK(cv::norm(yolo9::read_image(path), cv::imread(path, cv::IMREAD_COLOR), cv::NORM_INF) == 0);
    CHECK(yolo9::decode_fault(path).empty());
  }
}

TEST_CASE("picture_reader: files that cannot be read", "[data]") {
  const std::string folder = fixture::temporary_dir("reader_bad");
  const auto message = [](const std::string& path) {
    try {
      yolo9::read_picture_part(path, {});
    } catch (const yolo9::Error& error) {
      CHECK(error.kind() == yolo9::ErrorKind::Data);
      return std::string(error.what());
    }
    return std::string("no error");
  };
  image_bytes::write_all(folder + "/empty.jpg", "");
  image_bytes::write_all(folder + "/text.jpg", "not a picture");
  CHECK(message(folder + "/absent.jpg").find("no such picture") != std::string::npos);
  CHECK(message(folder).find("no such picture") != std::string::npos);
  CHECK(message(folder + "/empty.jpg").find("cannot decode") != std::string::npos);
  CHECK(message(folder + "/text.jpg").find("cannot decode") != std::string::npos);
  // Any cut of a good file gives a picture or an error, never anything else.
  for (const char* name : {"/good.jpg", "/good.png"}) {
    yolo9::write_image(folder + name, soft(60, 80, 7));
    const std::string bytes = image_bytes::read_all(folder + name);
    int64_t read = 0, refused = 0;
    for (size_t length = 1; length < bytes.size(); length += 37) {
      image_bytes::write_all(folder + "/cut", bytes.substr(0, length));
      try {
        read += yolo9::read_picture_part(folder + "/cut", {0.2, 0.2, 0.5, 0.9, 30, 30}).pixels.empty() ? 0 : 1;
      } catch (const yolo9::Error&) {
        ++refused;
      }
    }
    CHECK(read + refused == static_cast<int64_t>((bytes.size() + 35) / 37));
    CHECK(refused > 0);
  }
}

TEST_CASE("picture_reader: data that is damaged behind a good header is told", "[data]") {
  const std::string folder = fixture::temporary_dir("reader_damaged");
  yolo9::write_image(folder + "/good.png", soft(60, 80, 7));
  yolo9::write_image(folder + "/good.jpg", soft(60, 80, 7));
  const auto damaged = [&](const std::string& name, size_t at, size_t count) {
    std::string bytes = image_bytes::read_all(folder + "/good." + name);
    if (count > 0) {
      bytes.erase(at, count);
    } else {
      bytes[at] = static_cast<char>(bytes[at] ^ 0x5A);
    }
    image_bytes::write_all(folder + "/bad." + name, bytes);
    return folder + "/bad." + name;
  };
  const size_t png_size = image_bytes::read_all(folder + "/good.png").size();
  const size_t jpeg_size = image_bytes::read_all(folder + "/good.jpg").size();
  CHECK_FALSE(yolo9::decode_fault(damaged("png", png_size / 2, 0)).empty());
  CHECK_FALSE(yolo9::decode_fault(damaged("jpg", jpeg_size - 400, 398)).empty());  // its end marker is still there
  CHECK_THROWS_AS(yolo9::read_image(folder + "/bad.jpg"), yolo9::Error);
  CHECK_THROWS_AS(yolo9::read_image(folder + "/bad.png"), yolo9::Error);
  // One pixel is one pixel, although there is memory for more behind it.
  yolo9::write_image(folder + "/one.png", soft(1, 1, 1));
  CHECK(yolo9::read_image(folder + "/one.png").size() == cv::Size(1, 1));
}

TEST_CASE("picture_reader: 20000 x 20000 pixels in bounded memory", "[data][slow]") {
  const std::string folder = fixture::temporary_dir("reader_huge");
  constexpr int kSide = 20000;
  std::filesystem::create_directories(folder + "/images");
  std::filesystem::create_directories(folder + "/labels");
  {
    jpeg_compress_struct info;
    jpeg_error_mgr errors;
    info.err = jpeg_std_error(&errors);
    jpeg_create_compress(&info);
    std::FILE* file = std::fopen((folder + "/images/huge.jpg").c_str(), "wb");
    jpeg_stdio_dest(&info, file);
    info.image_width = info.image_height = kSide;
    info.input_components = 1;
    info.in_color_space = JCS_GRAYSCALE;
    jpeg_set_defaults(&info);
    jpeg_start_compress(&info, TRUE);
    std::vector<uint8_t> row(kSide, 200);
    for (int y = 0; y < kSide; ++y) {
      if (y == kSide / 2) std::fill(row.begin(), row.end(), uint8_t{50});
      JSAMPROW line = row.data();
      jpeg_write_scanlines(&info, &line, 1);
    }
    jpeg_finish_compress(&info);
    jpeg_destroy_compress(&info);
    std::fclose(file);
  }
  {
    std::FILE* file = std::fopen((folder + "/images/huge.png").c_str(), "wb");
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
    png_infop info = png_create_info_struct(png);
    png_init_io(png, file);
    png_set_IHDR(png, info, kSide, kSide, 8, PNG_COLOR_TYPE_GRAY, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_set_compression_level(png, 1);
    png_write_info(png, info);
    std::vector<uint8_t> row(kSide, 200);
    for (int y = 0; y < kSide; ++y) {
      if (y == kSide / 2) std::fill(row.begin(), row.end(), uint8_t{50});
      png_write_row(png, row.data());
    }
    png_write_end(png, nullptr);
    png_destroy_write_struct(&png, &info);
    std::fclose(file);
  }
  for (const char* name : {"huge.jpg", "huge.png"})
    data_set::write_label(folder + "/labels/" + std::string(name).substr(0, 4) + ".txt", "0 0.5 0.5 0.5 0.5\n");
  for (const bool augment : {true, false}) {
    yolo9::DatasetOptions options;
    options.augment = augment;
    options.augmentation = {};
    options.augmentation.hsv_h = options.augmentation.hsv_s = options.augmentation.hsv_v = 0;
    options.augmentation.filters = options.augmentation.mixup = 0;
    options.image_size = 320;
    const yolo9::Dataset dataset({folder + "/images"}, {"a"}, options);
    REQUIRE(dataset.size() == 2);
    reset_peak();
    const int64_t before = status_mib("VmRSS:");
    for (int64_t i = 0; i < 2; ++i) {
      const yolo9::Sample sample = dataset.get(i);
      CHECK(sample.labels.size(0) >= 1);
      CHECK((sample.image == 200).any().item<bool>());
      CHECK((sample.image == 50).any().item<bool>());
    }
    const int64_t grown = status_mib("VmHWM:") - before;
    CAPTURE(augment, grown);
    CHECK(grown < 120);  // decoded it would be 1,144 MiB
  }
}
