#include <yolo9/data/picture_reader.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <yolo9/core/error.h>
#include <yolo9/data/image_header.h>
#include <yolo9/data/stored_part.h>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>

namespace yolo9 {
namespace {

constexpr int kSlackBytes = 8;

Error undecodable(const std::string& path) {
  return Error(ErrorKind::Data, "cannot decode the picture", path, "is it damaged or not a picture?");
}

// Shares of the picture as it is to be seen -> shares as it is stored, by the Exif orientation.
AffineMap unturn(int64_t orientation) {
  switch (orientation) {
    case 2: return {-1, 0, 1, 0, 1, 0};
    case 3: return {-1, 0, 1, 0, -1, 1};
    case 4: return {1, 0, 0, 0, -1, 1};
    case 5: return {0, 1, 0, 1, 0, 0};
    case 6: return {0, 1, 0, -1, 0, 1};
    case 7: return {0, -1, 1, -1, 0, 1};
    case 8: return {0, -1, 1, 1, 0, 0};
    default: return {};
  }
}

struct Share {
  double x, y;
};
Share apply(const AffineMap& m, Share p) { return {m.xx * p.x + m.xy * p.y + m.x0, m.yx * p.x + m.yy * p.y + m.y0}; }

// The whole file; the buffer is the thread's own and stays, so that files of like size need no memory of their own.
std::span<const uint8_t> read_file(const std::string& path) {
  thread_local std::vector<uint8_t> buffer;
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    const bool missing = errno == ENOENT;
    throw Error(ErrorKind::Data,
                missing ? "no such picture" : std::string("cannot open the picture: ") + strerror(errno), path);
  }
  struct stat status {};
  const bool regular = fstat(file, &status) == 0 && S_ISREG(status.st_mode);
  const auto size = regular ? static_cast<size_t>(status.st_size) : 0;
  constexpr size_t kKeptBytes = 64 << 20;
  if (buffer.size() < size || buffer.size() > std::max(size, kKeptBytes)) {
    std::vector<uint8_t>().swap(buffer);
    buffer.resize(size + size / 4);
  }
  size_t filled = 0;
  while (filled < size) {
    const ssize_t count = read(file, buffer.data() + filled, size - filled);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    filled += static_cast<size_t>(count);
  }
  close(file);
  if (!regular) throw Error(ErrorKind::Data, "no such picture", path);
  return {buffer.data(), filled};
}

PicturePart decode_whole(std::span<const uint8_t> bytes, const std::string& path) {
  cv::Mat picture;
  try {
    const cv::Mat encoded(1, static_cast<int>(bytes.size()), CV_8UC1, const_cast<uint8_t*>(bytes.data()));
    picture = cv::imdecode(encoded, cv::IMREAD_COLOR);
  } catch (const cv::Exception&) {  // for instance more pixels than OpenCV allows
    picture.release();
  }
  if (picture.empty()) throw undecodable(path);
  const auto width = static_cast<double>(picture.cols), height = static_cast<double>(picture.rows);
  return {with_slack(picture), {width, 0, -0.5, 0, height, -0.5}, picture.size()};
}

}  // namespace

AffineMap after(const AffineMap& s, const AffineMap& f) {
  return {s.xx * f.xx + s.xy * f.yx, s.xx * f.xy + s.xy * f.yy, s.xx * f.x0 + s.xy * f.y0 + s.x0,
          s.yx * f.xx + s.yy * f.yx, s.yx * f.xy + s.yy * f.yy, s.yx * f.x0 + s.yy * f.y0 + s.y0};
}

cv::Mat new_picture(int height, int width) {
  // One more row than is shown holds the slack.
  const int extra = (kSlackBytes + 3 * width - 1) / (3 * width);
  return cv::Mat(height + extra, width, CV_8UC3).rowRange(0, height);
}

cv::Mat with_slack(const cv::Mat& picture) {
  const bool has_slack = picture.datalimit - (picture.ptr(picture.rows - 1) + 3 * picture.cols) >= kSlackBytes;
  if (has_slack && picture.rows >= 2 && picture.cols >= 2) return picture;
  cv::Mat result = new_picture(std::max(picture.rows, 2), std::max(picture.cols, 2));
  cv::copyMakeBorder(picture, result, 0, result.rows - picture.rows, 0, result.cols - picture.cols,
                     cv::BORDER_REPLICATE);
  return result;
}

cv::Mat turned_upright(const PicturePart& part) {
  const AffineMap& m = part.to_pixels;
  cv::Mat picture = part.pixels(cv::Rect(0, 0, part.shown.width, part.shown.height));
  if (m.xx == 0) picture = picture.t();
  const bool mirror_x = m.xx + m.yx < 0, mirror_y = m.xy + m.yy < 0;
  if (mirror_x || mirror_y) cv::flip(picture.clone(), picture, mirror_x && mirror_y ? -1 : mirror_x ? 1 : 0);
  return picture;
}

std::string decode_fault(const std::string& path) {
  try {
    read_picture_part(path, {0, 0, 1, 1, 1, 1});
  } catch (const Error&) {
    return "its header is that of a picture, but it cannot be decoded";
  }
  return "";
}

PicturePart decode_picture_part(std::span<const uint8_t> bytes, const std::string& path, const PartRequest& request) {
  const ImageHeader header = probe_image_bytes(bytes);
  const bool jpeg = header.format == ImageFormat::Jpeg, png = header.format == ImageFormat::Png;
  if ((jpeg || png) && !header.ok) throw undecodable(path);
  if (!jpeg && !png) return decode_whole(bytes, path);

  const AffineMap turn = unturn(header.orientation);
  const bool swapped = header.orientation > 4;
  const auto width = static_cast<double>(swapped ? header.height : header.width);
  const auto height = static_cast<double>(swapped ? header.width : header.height);
  const double wide = swapped ? request.pixels_high : request.pixels_wide;
  const double high = swapped ? request.pixels_wide : request.pixels_high;
  const Share a = apply(turn, {request.x1, request.y1}), b = apply(turn, {request.x2, request.y2});
  StoredRequest stored{};
  const auto to_pixel = [](double share, double side, double margin) {
    return static_cast<int64_t>(std::clamp(std::floor(share * side) + margin, 0.0, side));
  };
  stored.reduction = std::max(1.0, std::min(width / wide, height / high));
  const double margin = std::ceil(stored.reduction);  // the neighbours that interpolation looks at
  stored.x1 = to_pixel(std::min(a.x, b.x), width, -margin);
  stored.x2 = to_pixel(std::max(a.x, b.x), width, margin + 1);
  stored.y1 = to_pixel(std::min(a.y, b.y), height, -margin);
  stored.y2 = to_pixel(std::max(a.y, b.y), height, margin + 1);
  if (stored.x2 <= stored.x1 || stored.y2 <= stored.y1) return decode_whole(bytes, path);

  StoredPart part;
  const DecodeOutcome outcome = jpeg ? decode_jpeg_part(bytes, stored, part) : decode_png_part(bytes, stored, part);
  if (outcome == DecodeOutcome::Damaged) throw undecodable(path);
  if (outcome == DecodeOutcome::Unsupported) return decode_whole(bytes, path);
  const auto step = static_cast<double>(part.reduction);
  const AffineMap to_stored{
      width / step, 0, -0.5 - static_cast<double>(part.left), 0, height / step, -0.5 - static_cast<double>(part.top)};
  return {with_slack(part.pixels), after(to_stored, turn), part.pixels.size()};
}

PicturePart read_picture_part(const std::string& path, const PartRequest& request) {
  const std::span<const uint8_t> bytes = read_file(path);
  if (bytes.empty()) throw undecodable(path);
  return decode_picture_part(bytes, path, request);
}

}  // namespace yolo9
