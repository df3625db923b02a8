#include <yolo9/data/sample_row.h>

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace yolo9 {
namespace {

constexpr int kFractionBits = 16;
constexpr int kWeightBits = 6;  // 64 steps between two pixels: products of a byte and a weight fit 16 bits
constexpr int32_t kWeightOne = 1 << kWeightBits;
constexpr int32_t kHalfStep = 1 << (kFractionBits - kWeightBits - 1);

struct Place {
  int32_t whole, weight;  // weight 0..63 of the pixel after `whole`
};
// The position is rounded to a 64th first, so that weights stay below 64 and need no pixel beyond the last.
inline Place place(int32_t position, int32_t side) {
  const int32_t last = (side - 1) << kFractionBits;
  const int32_t rounded = std::clamp(position, 0, last) + kHalfStep;
  return {rounded >> kFractionBits, rounded >> (kFractionBits - kWeightBits) & (kWeightOne - 1)};
}

// a * b / 32768, rounded: what the processors' instruction for it does.
inline int32_t multiply_round(int32_t a, int32_t b) { return (a * b + 0x4000) >> 15; }

}  // namespace

void sample_row_plain(const PixelSource& source, const SampleLine& line, int64_t count, uint8_t* out) {
  int32_t position_x = line.x, position_y = line.y;
  for (int64_t i = 0; i < count; ++i, out += 3, position_x += line.dx, position_y += line.dy) {
    const Place x = place(position_x, source.width), y = place(position_y, source.height);
    const uint8_t* top = source.pixels + static_cast<int64_t>(y.whole) * source.row_bytes + 3 * x.whole;
    const uint8_t* bottom = y.whole + 1 < source.height ? top + source.row_bytes : top;
    for (int c = 0; c < 3; ++c) {
      const int32_t upper = top[c] * (kWeightOne - x.weight) + top[c + 3] * x.weight;
      const int32_t lower = bottom[c] * (kWeightOne - x.weight) + bottom[c + 3] * x.weight;
      const int32_t sum = upper + multiply_round(lower - upper, y.weight << (15 - kWeightBits));
      out[c] = static_cast<uint8_t>((sum + kWeightOne / 2) >> kWeightBits);
    }
  }
}

#if defined(__x86_64__)

#define YOLO9_AVX2 __attribute__((target("avx2")))

namespace {

// What eight samples need, worked out together.
struct Eight {
  alignas(32) int32_t top[8], to_bottom[8];  // bytes from the picture's start, and from there to the row below
  alignas(32) int32_t across[8], down[8];    // weights, as the multiplications below take them
};

YOLO9_AVX2 inline __m256i round_position(__m256i position, __m256i last) {
  const __m256i clamped = _mm256_min_epi32(_mm256_max_epi32(position, _mm256_setzero_si256()), last);
  return _mm256_add_epi32(clamped, _mm256_set1_epi32(kHalfStep));
}

YOLO9_AVX2 inline __m256i weight_of(__m256i rounded) {
  return _mm256_and_si256(_mm256_srli_epi32(rounded, kFractionBits - kWeightBits), _mm256_set1_epi32(kWeightOne - 1));
}

YOLO9_AVX2 inline void prepare(const PixelSource& source, __m256i x, __m256i y, Eight& eight) {
  const __m256i last_x = _mm256_set1_epi32((source.width - 1) << kFractionBits);
  const __m256i last_y = _mm256_set1_epi32((source.height - 1) << kFractionBits);
  const __m256i rounded_x = round_position(x, last_x), rounded_y = round_position(y, last_y);
  const __m256i column = _mm256_srli_epi32(rounded_x, kFractionBits), row = _mm256_srli_epi32(rounded_y, kFractionBits);
  const __m256i row_bytes = _mm256_set1_epi32(source.row_bytes);
  const __m256i top =
      _mm256_add_epi32(_mm256_mullo_epi32(row, row_bytes), _mm256_add_epi32(column, _mm256_add_epi32(column, column)));
  const __m256i has_below = _mm256_cmpgt_epi32(_mm256_set1_epi32(source.height - 1), row);
  const __m256i weight = weight_of(rounded_x);
  const __m256i pair =
      _mm256_or_si256(_mm256_sub_epi32(_mm256_set1_epi32(kWeightOne), weight), _mm256_slli_epi32(weight, 8));
  const __m256i down = _mm256_slli_epi32(weight_of(rounded_y), 15 - kWeightBits);
  _mm256_store_si256(reinterpret_cast<__m256i*>(eight.top), top);
  _mm256_store_si256(reinterpret_cast<__m256i*>(eight.to_bottom), _mm256_and_si256(has_below, row_bytes));
  _mm256_store_si256(reinterpret_cast<__m256i*>(eight.across), _mm256_or_si256(pair, _mm256_slli_epi32(pair, 16)));
  _mm256_store_si256(reinterpret_cast<__m256i*>(eight.down), _mm256_or_si256(down, _mm256_slli_epi32(down, 16)));
}

// The two rows at one sample, interpolated across: b g r - of the upper one, then of the lower one, in 1/64.
YOLO9_AVX2 inline __m128i across(const uint8_t* pixels, const Eight& eight, int k) {
  // b0 g0 r0 b1 g1 r1 of both rows -> b0 b1 g0 g1 r0 r1: a pair for each product with (1 - x, x).
  const __m128i pairs = _mm_setr_epi8(0, 3, 1, 4, 2, 5, -1, -1, 8, 11, 9, 12, 10, 13, -1, -1);
  const uint8_t* top = pixels + static_cast<uint32_t>(eight.top[k]);
  const __m128i upper = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(top));
  const __m128i both =
      _mm_castps_si128(_mm_loadh_pi(_mm_castsi128_ps(upper), reinterpret_cast<const __m64*>(top + eight.to_bottom[k])));
  return _mm_maddubs_epi16(_mm_shuffle_epi8(both, pairs), _mm_set1_epi32(eight.across[k]));
}

// Two samples, interpolated down as well: b g r - b g r -.
YOLO9_AVX2 inline __m128i two(const uint8_t* pixels, const Eight& eight, int k) {
  const __m128i a = across(pixels, eight, k), b = across(pixels, eight, k + 1);
  const __m128i upper = _mm_unpacklo_epi64(a, b), lower = _mm_unpackhi_epi64(a, b);
  const __m128i weights = _mm_unpacklo_epi64(_mm_set1_epi32(eight.down[k]), _mm_set1_epi32(eight.down[k + 1]));
  const __m128i sum = _mm_add_epi16(upper, _mm_mulhrs_epi16(_mm_sub_epi16(lower, upper), weights));
  return _mm_srli_epi16(_mm_add_epi16(sum, _mm_set1_epi16(kWeightOne / 2)), kWeightBits);
}

YOLO9_AVX2 inline __m128i four(const uint8_t* pixels, const Eight& eight, int k) {
  const __m128i compact = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
  return _mm_shuffle_epi8(_mm_packus_epi16(two(pixels, eight, k), two(pixels, eight, k + 2)), compact);
}

}  // namespace

bool has_sample_row_vector() {
  static const bool has = __builtin_cpu_supports("avx2") != 0;
  return has;
}

YOLO9_AVX2 void sample_row_vector(const PixelSource& source, const SampleLine& line, int64_t count, uint8_t* out) {
  const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  __m256i x = _mm256_add_epi32(_mm256_set1_epi32(line.x), _mm256_mullo_epi32(lanes, _mm256_set1_epi32(line.dx)));
  __m256i y = _mm256_add_epi32(_mm256_set1_epi32(line.y), _mm256_mullo_epi32(lanes, _mm256_set1_epi32(line.dy)));
  // Unsigned, because samples past the end of the row may run over; nothing of them is kept.
  const __m256i eight_dx = _mm256_set1_epi32(static_cast<int32_t>(8u * static_cast<uint32_t>(line.dx)));
  const __m256i eight_dy = _mm256_set1_epi32(static_cast<int32_t>(8u * static_cast<uint32_t>(line.dy)));
  Eight eight;
  for (int64_t i = 0; i < count; i += 8, out += 24) {
    prepare(source, x, y, eight);
    const __m128i first = four(source.pixels, eight, 0), second = four(source.pixels, eight, 4);
    if (i + 10 <= count) {  // 28 bytes fit
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out), first);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 12), second);
    } else {
      uint8_t last[28];
      _mm_storeu_si128(reinterpret_cast<__m128i*>(last), first);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(last + 12), second);
      std::memcpy(out, last, 3 * static_cast<size_t>(std::min<int64_t>(8, count - i)));
    }
    x = _mm256_add_epi32(x, eight_dx);
    y = _mm256_add_epi32(y, eight_dy);
  }
}

#else

bool has_sample_row_vector() { return false; }
void sample_row_vector(const PixelSource& source, const SampleLine& line, int64_t count, uint8_t* out) {
  sample_row_plain(source, line, count, out);
}

#endif

void sample_row(const PixelSource& source, const SampleLine& line, int64_t count, uint8_t* out) {
  if (has_sample_row_vector()) {
    sample_row_vector(source, line, count, out);
  } else {
    sample_row_plain(source, line, count, out);
  }
}

}  // namespace yolo9
