// Colour and the way into planes for one row of pixels: the inner loop of a sample's last pass.
#pragma once

#include <array>
#include <cstdint>

namespace yolo9 {

// Gains on hue, saturation and value, each in 8 bits as OpenCV's 8-bit HSV has them (hue 0..179), as tables.
struct ColourTables {
  ColourTables(double hue_gain, double saturation_gain, double value_gain);
  std::array<float, 256> hue;         // sixths of the circle, 0 <= hue < 6
  std::array<float, 256> saturation;  // 0..1
  std::array<float, 256> value;       // 0..255
};

struct PlaneRow {
  uint8_t *red, *green, *blue;
};

// `count` BGR pixels through the tables into the three rows, backwards if `mirror`. The same bits with and without
// vector instructions.
void colour_row(const uint8_t* bgr, int64_t count, const ColourTables& tables, bool mirror, const PlaneRow& out);

// The two ways it goes, by the processor; here for tests.
void colour_row_plain(const uint8_t* bgr, int64_t count, const ColourTables& tables, bool mirror, const PlaneRow& out);
bool has_colour_row_vector();
void colour_row_vector(const uint8_t* bgr, int64_t count, const ColourTables& tables, bool mirror, const PlaneRow& out);

}  // namespace yolo9
