#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <memory>

#include <jpeglib.h>  // needs cstdio before it

#include <jerror.h>

#include <yolo9/data/picture_reader.h>
#include <yolo9/data/row_reducer.h>
#include <yolo9/data/stored_part.h>

namespace yolo9 {
namespace {

struct Failure {
  jpeg_error_mgr manager;  // first: libjpeg hands back a pointer to it
  std::jmp_buf jump;
};

extern "C" void leave_jpeg(j_common_ptr info) { std::longjmp(reinterpret_cast<Failure*>(info->err)->jump, 1); }
extern "C" void say_nothing(j_common_ptr) {}
// libjpeg goes on after damage with whatever comes out; a file that only has something odd beside the picture is fine.
extern "C" void leave_damaged_jpeg(j_common_ptr info, int level) {
  if (level >= 0) return;
  const int code = info->err->msg_code;
  if (code == JWRN_HIT_MARKER || code == JWRN_JPEG_EOF || code == JWRN_HUFF_BAD_CODE || code == JWRN_MUST_RESYNC) {
    leave_jpeg(info);
  }
}

// What libjpeg is asked for, and what it gives. Everything with a destructor lives outside the function that libjpeg
// may leave by a jump.
struct Decoding {
  jpeg_decompress_struct info;
  Failure failure;
  StoredRequest request;
  StoredPart part;
  int averaging = 1;  // what is left to do after libjpeg's own reduction
  std::unique_ptr<RowReducer> reducer;
  std::vector<uint8_t> row;
};

// The largest of libjpeg's fast reductions that leaves enough.
int jpeg_reduction(double wanted) {
  for (const int reduction : {8, 4, 2}) {
    if (wanted >= reduction) return reduction;
  }
  return 1;
}

// In libjpeg's hands from here on: no objects with destructors on the stack.
DecodeOutcome run(Decoding& d, const uint8_t* bytes, size_t size) {
  if (setjmp(d.failure.jump)) return DecodeOutcome::Damaged;
  jpeg_create_decompress(&d.info);
  jpeg_mem_src(&d.info, bytes, static_cast<unsigned long>(size));
  jpeg_read_header(&d.info, TRUE);
  if (d.info.num_components != 1 && d.info.num_components != 3) return DecodeOutcome::Unsupported;
  if (d.request.x2 > d.info.image_width || d.request.y2 > d.info.image_height) return DecodeOutcome::Unsupported;

  const int reduction = jpeg_reduction(d.request.reduction);
  d.averaging = static_cast<int>(d.request.reduction) / reduction;
  if (d.averaging < 1) d.averaging = 1;
  const int step = reduction * d.averaging;
  d.info.scale_num = 1;
  d.info.scale_denom = static_cast<unsigned>(reduction);
  d.info.out_color_space = JCS_EXT_BGR;
  jpeg_start_decompress(&d.info);

  // libjpeg moves the left edge to a block's and says where it went; the top must be a multiple of the averaging.
  const auto width = static_cast<JDIMENSION>(d.info.output_width), height = d.info.output_height;
  const auto first_row = static_cast<JDIMENSION>(d.request.y1 / step * d.averaging);
  const auto last_row = std::min(height, static_cast<JDIMENSION>((d.request.y2 + reduction - 1) / reduction + 1));
  JDIMENSION left = 0, columns = width;
  if (d.averaging == 1) {
    left = static_cast<JDIMENSION>(d.request.x1 / reduction);
    columns = std::min(width, static_cast<JDIMENSION>((d.request.x2 + reduction - 1) / reduction + 1)) - left;
    if (left == 0 && columns >= width) {
      columns = width;
    } else {
      jpeg_crop_scanline(&d.info, &left, &columns);
    }
  }
  if (first_row > 0) jpeg_skip_scanlines(&d.info, first_row);
  d.part.reduction = step;
  d.part.left = left / static_cast<unsigned>(d.averaging);
  d.part.top = first_row / static_cast<unsigned>(d.averaging);
  const int rows = static_cast<int>(last_row - first_row);
  if (d.averaging == 1) {
    d.part.pixels = new_picture(rows, static_cast<int>(columns));
    while (d.info.output_scanline < last_row) {
      JSAMPROW row = d.part.pixels.ptr(static_cast<int>(d.info.output_scanline - first_row));
      jpeg_read_scanlines(&d.info, &row, 1);
    }
  } else {
    d.reducer = std::make_unique<RowReducer>(rows, static_cast<int>(columns), d.averaging);
    d.row.resize(3 * static_cast<size_t>(columns));
    while (d.info.output_scanline < last_row) {
      JSAMPROW row = d.row.data();
      jpeg_read_scanlines(&d.info, &row, 1);
      d.reducer->add(row);
    }
    d.part.pixels = d.reducer->take();
  }
  return DecodeOutcome::Done;  // destroying the state below drops what is left of the file
}

}  // namespace

DecodeOutcome decode_jpeg_part(std::span<const uint8_t> bytes, const StoredRequest& request, StoredPart& part) {
  Decoding d;
  d.request = request;
  d.info.err = jpeg_std_error(&d.failure.manager);
  d.failure.manager.error_exit = leave_jpeg;
  d.failure.manager.emit_message = leave_damaged_jpeg;
  d.failure.manager.output_message = say_nothing;
  const DecodeOutcome outcome = run(d, bytes.data(), bytes.size());
  jpeg_destroy_decompress(&d.info);
  if (outcome == DecodeOutcome::Done) part = std::move(d.part);
  return outcome;
}

}  // namespace yolo9
