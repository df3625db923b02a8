#include <yolo9/memory/source.h>

#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include <yolo9/core/error.h>

namespace yolo9 {

namespace {

struct Unit {
  const char* name;  // lower case
  double bytes;
};
constexpr std::array<Unit, 14> kUnits{{{"", 1.0},
                                       {"b", 1.0},
                                       {"k", 0x1p10},
                                       {"m", 0x1p20},
                                       {"g", 0x1p30},
                                       {"t", 0x1p40},
                                       {"kb", 1e3},
                                       {"mb", 1e6},
                                       {"gb", 1e9},
                                       {"kib", 0x1p10},
                                       {"mib", 0x1p20},
                                       {"gib", 0x1p30},
                                       {"tib", 0x1p40},
                                       {"tb", 1e12}}};

}  // namespace

int64_t parse_bytes(const std::string& text, int64_t available_bytes) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorKind::Usage, "\"" + text + "\" is not an amount of memory: " + why, "",
                "write it as 8GiB, 500MB, 85% or plain bytes");
  };
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || !std::isfinite(value)) refuse("it does not begin with a number");
  if (value <= 0) refuse("it must be above zero");
  std::string unit;
  for (; *end; ++end)
    if (!std::isspace(static_cast<unsigned char>(*end)))
      unit += static_cast<char>(std::tolower(static_cast<unsigned char>(*end)));
  if (unit == "%") {
    if (value > 100) refuse("a share cannot pass 100 %");
    return static_cast<int64_t>(static_cast<double>(available_bytes) * value / 100.0);
  }
  for (const Unit& known : kUnits) {
    if (unit != known.name) continue;
    const double bytes = value * known.bytes;
    if (bytes >= 0x1p62) refuse("it is larger than any machine's memory");
    if (bytes < 1) refuse("it must be at least one byte");
    return static_cast<int64_t>(bytes);
  }
  refuse("unknown unit \"" + unit + "\"");
  return 0;
}

std::string format_bytes(int64_t bytes) {
  const char* const names[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (std::abs(value) >= 1024.0 && unit < 4) {
    value /= 1024.0;
    ++unit;
  }
  char out[48];
  std::snprintf(out, sizeof out, unit == 0 ? "%.0f %s" : "%.2f %s", value, names[unit]);
  return out;
}

}  // namespace yolo9
