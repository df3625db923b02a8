#include <yolo9/data/colour_row.h>

#include <algorithm>
#include <cmath>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace yolo9 {
namespace {

constexpr int kShift = 12;  // of the fixed-point reciprocals below

// Rounded reciprocals in fixed point, as OpenCV's 8-bit conversion defines saturation (255 (max - min) / max) and hue
// (in 180ths of the circle: 30 * numerator / (max - min)).
struct Reciprocals {
  std::array<int32_t, 256> saturation{}, hue{};
  Reciprocals() {
    for (size_t i = 1; i < 256; ++i) {
      const auto value = static_cast<double>(i);
      saturation[i] = static_cast<int32_t>(std::lrint((255 << kShift) / value));
      hue[i] = static_cast<int32_t>(std::lrint((180 << kShift) / (6 * value)));
    }
  }
};
const Reciprocals kReciprocals;

}  // namespace

ColourTables::ColourTables(double hue_gain, double saturation_gain, double value_gain) {
  for (int i = 0; i < 256; ++i) {
    const auto scaled = [i](double gain) { return std::floor(std::clamp(i * gain, 0.0, 255.0)); };
    const double turned = i * hue_gain - 180 * std::floor(i * hue_gain / 180);
    const auto at = static_cast<size_t>(i);
    hue[at] = static_cast<float>(std::floor(turned)) * (6.0f / 180.0f);
    saturation[at] = static_cast<float>(scaled(saturation_gain)) * (1.0f / 255.0f);
    value[at] = static_cast<float>(scaled(value_gain));
  }
}

void colour_row_plain(const uint8_t* bgr, int64_t count, const ColourTables& tables, bool mirror, const PlaneRow& out) {
  constexpr int32_t kHalf = 1 << (kShift - 1);
  for (int64_t i = 0; i < count; ++i, bgr += 3) {
    const int32_t b = bgr[0], g = bgr[1], r = bgr[2];
    const int32_t value = std::max({b, g, r}), range = value - std::min({b, g, r});
    const int32_t saturation = (range * kReciprocals.saturation[static_cast<size_t>(value)] + kHalf) >> kShift;
    const int32_t numerator = value == r ? g - b : value == g ? b - r + 2 * range : r - g + 4 * range;
    int32_t hue = (numerator * kReciprocals.hue[static_cast<size_t>(range)] + kHalf) >> kShift;
    if (hue < 0) hue += 180;
    const float h = tables.hue[static_cast<size_t>(hue)];
    const float s = tables.saturation[static_cast<size_t>(saturation)], v = tables.value[static_cast<size_t>(value)];
    // A channel falls from v by v s k, where k goes 0, 1, 1, 1, 0, 0 around the circle, straight in between.
    const float fall = v * s;
    const auto channel = [h, v, fall](float offset) {
      float place = h + offset;
      if (place >= 6.0f) place -= 6.0f;
      const float k = std::max(std::min(std::min(place, 4.0f - place), 1.0f), 0.0f);
      return static_cast<uint8_t>(std::lrint(v - fall * k));
    };
    const int64_t at = mirror ? count - 1 - i : i;
    out.red[at] = channel(5.0f);
    out.green[at] = channel(3.0f);
    out.blue[at] = channel(1.0f);
  }
}

#if defined(__x86_64__)

#define YOLO9_AVX2 __attribute__((target("avx2")))

namespace {

YOLO9_AVX2 inline __m256i pick(const std::array<int32_t, 256>& table, __m256i index) {
  return _mm256_i32gather_epi32(table.data(), index, 4);
}
YOLO9_AVX2 inline __m256 pick(const std::array<float, 256>& table, __m256i index) {
  return _mm256_i32gather_ps(table.data(), index, 4);
}

YOLO9_AVX2 inline __m256i channel(__m256 h, __m256 v, __m256 fall, float offset) {
  const __m256 six = _mm256_set1_ps(6.0f);
  __m256 place = _mm256_add_ps(h, _mm256_set1_ps(offset));
  place = _mm256_sub_ps(place, _mm256_and_ps(_mm256_cmp_ps(place, six, _CMP_GE_OQ), six));
  const __m256 nearer = _mm256_min_ps(place, _mm256_sub_ps(_mm256_set1_ps(4.0f), place));
  const __m256 k = _mm256_max_ps(_mm256_min_ps(nearer, _mm256_set1_ps(1.0f)), _mm256_setzero_ps());
  return _mm256_cvtps_epi32(_mm256_sub_ps(v, _mm256_mul_ps(fall, k)));
}

// Eight 32-bit values of 0..255 as eight bytes, in reverse if `mirror`.
YOLO9_AVX2 inline void store_eight(uint8_t* out, __m256i values, bool mirror) {
  const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(values), _mm256_extracti128_si256(values, 1));
  __m128i bytes = _mm_packus_epi16(words, words);
  if (mirror) bytes = _mm_shuffle_epi8(bytes, _mm_setr_epi8(7, 6, 5, 4, 3, 2, 1, 0, -1, -1, -1, -1, -1, -1, -1, -1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(out), bytes);
}

}  // namespace

bool has_colour_row_vector() {
  static const bool has = __builtin_cpu_supports("avx2") != 0;
  return has;
}

YOLO9_AVX2 void colour_row_vector(const uint8_t* bgr, int64_t count, const ColourTables& tables, bool mirror,
                                  const PlaneRow& out) {
  // Of every four pixels of 3 bytes, one channel as four 32-bit values.
  const __m128i take_blue = _mm_setr_epi8(0, -1, -1, -1, 3, -1, -1, -1, 6, -1, -1, -1, 9, -1, -1, -1);
  const __m128i one = _mm_setr_epi8(1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0);
  const __m128i take_green = _mm_add_epi8(take_blue, one), take_red = _mm_add_epi8(take_green, one);
  const __m256i half = _mm256_set1_epi32(1 << (kShift - 1));
  int64_t i = 0;
  for (; i + 10 <= count; i += 8) {  // 28 bytes are read
    const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bgr + 3 * i));
    const __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bgr + 3 * i + 12));
    const auto spread = [&](__m128i mask) YOLO9_AVX2 {
      return _mm256_set_m128i(_mm_shuffle_epi8(high, mask), _mm_shuffle_epi8(low, mask));
    };
    const __m256i b = spread(take_blue), g = spread(take_green), r = spread(take_red);
    const __m256i value = _mm256_max_epi32(_mm256_max_epi32(b, g), r);
    const __m256i range = _mm256_sub_epi32(value, _mm256_min_epi32(_mm256_min_epi32(b, g), r));
    const __m256i saturation = _mm256_srai_epi32(
        _mm256_add_epi32(_mm256_mullo_epi32(range, pick(kReciprocals.saturation, value)), half), kShift);
    const __m256i is_red = _mm256_cmpeq_epi32(value, r), is_green = _mm256_cmpeq_epi32(value, g);
    const __m256i twice = _mm256_add_epi32(range, range);
    const __m256i from_green = _mm256_add_epi32(_mm256_sub_epi32(b, r), twice);
    const __m256i from_blue = _mm256_add_epi32(_mm256_sub_epi32(r, g), _mm256_add_epi32(twice, twice));
    const __m256i numerator =
        _mm256_blendv_epi8(_mm256_blendv_epi8(from_blue, from_green, is_green), _mm256_sub_epi32(g, b), is_red);
    __m256i hue =
        _mm256_srai_epi32(_mm256_add_epi32(_mm256_mullo_epi32(numerator, pick(kReciprocals.hue, range)), half), kShift);
    const __m256i negative = _mm256_srai_epi32(hue, 31);
    hue = _mm256_add_epi32(hue, _mm256_and_si256(negative, _mm256_set1_epi32(180)));

    const __m256 h = pick(tables.hue, hue), v = pick(tables.value, value);
    const __m256 fall = _mm256_mul_ps(v, pick(tables.saturation, saturation));
    const int64_t at = mirror ? count - 8 - i : i;
    store_eight(out.red + at, channel(h, v, fall, 5.0f), mirror);
    store_eight(out.green + at, channel(h, v, fall, 3.0f), mirror);
    store_eight(out.blue + at, channel(h, v, fall, 1.0f), mirror);
  }
  const int64_t at = mirror ? 0 : i;
  colour_row_plain(bgr + 3 * i, count - i, tables, mirror, {out.red + at, out.green + at, out.blue + at});
}

#else

bool has_colour_row_vector() { return false; }
void colour_row_vector(const uint8_t* bgr, int64_t count, const ColourTables& tables, bool mirror,
                       const PlaneRow& out) {
  colour_row_plain(bgr, count, tables, mirror, out);
}

#endif

void colour_row(const uint8_t* bgr, int64_t count, const ColourTables& tables, bool mirror, const PlaneRow& out) {
  if (has_colour_row_vector()) {
    colour_row_vector(bgr, count, tables, mirror, out);
  } else {
    colour_row_plain(bgr, count, tables, mirror, out);
  }
}

}  // namespace yolo9
