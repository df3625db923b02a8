#include <csetjmp>
#include <cstring>
#include <memory>

#include <png.h>

#include <yolo9/data/picture_reader.h>
#include <yolo9/data/row_reducer.h>
#include <yolo9/data/stored_part.h>

namespace yolo9 {
namespace {

struct Decoding {
  std::span<const uint8_t> rest;
  png_structp png = nullptr;
  png_infop info = nullptr;
  StoredRequest request;
  StoredPart part;
  std::unique_ptr<RowReducer> reducer;
  std::vector<uint8_t> row;
};

extern "C" void read_png(png_structp png, png_bytep out, size_t count) {
  auto& rest = *static_cast<std::span<const uint8_t>*>(png_get_io_ptr(png));
  if (count > rest.size()) png_error(png, "the file ends too early");
  std::memcpy(out, rest.data(), count);
  rest = rest.subspan(count);
}
extern "C" void leave_png(png_structp png, png_const_charp) { png_longjmp(png, 1); }
extern "C" void ignore_png(png_structp, png_const_charp) {}

// In libpng's hands: no objects with destructors on the stack.
DecodeOutcome run(Decoding& d) {
  if (setjmp(png_jmpbuf(d.png))) return DecodeOutcome::Damaged;
  png_set_read_fn(d.png, &d.rest, read_png);
  png_read_info(d.png, d.info);
  const int64_t width = png_get_image_width(d.png, d.info), height = png_get_image_height(d.png, d.info);
  if (png_get_interlace_type(d.png, d.info) != PNG_INTERLACE_NONE) return DecodeOutcome::Unsupported;
  if (d.request.x2 > width || d.request.y2 > height) return DecodeOutcome::Unsupported;
  // To 8-bit BGR, transparency dropped, as OpenCV reads it.
  png_set_expand(d.png);
  png_set_strip_16(d.png);
  png_set_strip_alpha(d.png);
  png_set_gray_to_rgb(d.png);
  png_set_bgr(d.png);
  png_read_update_info(d.png, d.info);
  if (png_get_rowbytes(d.png, d.info) != 3 * static_cast<size_t>(width)) return DecodeOutcome::Unsupported;

  const int64_t step = std::max<int64_t>(static_cast<int64_t>(d.request.reduction), 1);
  d.part.reduction = step;
  d.part.left = d.request.x1 / step;
  d.part.top = d.request.y1 / step;
  const int64_t x1 = d.part.left * step, y1 = d.part.top * step;
  const int64_t x2 = std::min(width, (d.request.x2 + step - 1) / step * step);
  const int64_t y2 = std::min(height, (d.request.y2 + step - 1) / step * step);
  d.reducer =
      std::make_unique<RowReducer>(static_cast<int>(y2 - y1), static_cast<int>(x2 - x1), static_cast<int>(step));
  d.row.resize(3 * static_cast<size_t>(width));
  for (int64_t y = 0; y < y2; ++y) {
    png_read_row(d.png, d.row.data(), nullptr);
    if (y >= y1) d.reducer->add(d.row.data() + 3 * x1);
  }
  d.part.pixels = d.reducer->take();
  return DecodeOutcome::Done;
}

}  // namespace

DecodeOutcome decode_png_part(std::span<const uint8_t> bytes, const StoredRequest& request, StoredPart& part) {
  Decoding d;
  d.rest = bytes;
  d.request = request;
  d.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, nullptr, leave_png, ignore_png);
  if (!d.png) return DecodeOutcome::Unsupported;
  d.info = png_create_info_struct(d.png);
  const DecodeOutcome outcome = d.info ? run(d) : DecodeOutcome::Unsupported;
  png_destroy_read_struct(&d.png, &d.info, nullptr);
  if (outcome == DecodeOutcome::Done) part = std::move(d.part);
  return outcome;
}

}  // namespace yolo9
