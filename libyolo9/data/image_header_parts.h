// The parsers behind image_header.h, one a format. They fill in what they find and return with `ok` set or a fault.
#pragma once

#include <yolo9/data/byte_source.h>
#include <yolo9/data/image_header.h>

namespace yolo9::header {

// Sets the fault, keeping what was found.
ImageHeader& fail(ImageHeader& header, ImageFault kind, std::string text);

// The Exif orientation (1..8) in a TIFF structure at [at, at + length); 1 if there is none that makes sense.
int tiff_orientation(ByteSource& source, uint64_t at, uint64_t length);

void parse_jpeg(ByteSource& source, ImageHeader& header);
void parse_png(ByteSource& source, ImageHeader& header);
void parse_bmp(ByteSource& source, ImageHeader& header);
void parse_tiff(ByteSource& source, ImageHeader& header);
void parse_webp(ByteSource& source, ImageHeader& header);
void parse_netpbm(ByteSource& source, ImageHeader& header);  // and PFM, its kind of floating point
void parse_jpeg_2000(ByteSource& source, ImageHeader& header);

}  // namespace yolo9::header
