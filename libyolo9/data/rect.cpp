#include <yolo9/data/rect.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace yolo9 {
namespace {

double aspect(PixelSize size) { return static_cast<double>(size.height) / static_cast<double>(size.width); }

}  // namespace

std::vector<int64_t> rect_order(const std::vector<PixelSize>& sizes) {
  std::vector<int64_t> order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&sizes](int64_t a, int64_t b) {
    return aspect(sizes[static_cast<size_t>(a)]) < aspect(sizes[static_cast<size_t>(b)]);
  });
  return order;
}

std::vector<PixelSize> rect_shapes(const std::vector<PixelSize>& ordered_sizes, int64_t batch_size, int64_t image_size,
                                   int64_t stride, double pad) {
  const auto snap = [&](double share) {
    const double strides = share * static_cast<double>(image_size) / static_cast<double>(stride) + pad;
    return static_cast<int64_t>(std::ceil(strides)) * stride;
  };
  std::vector<PixelSize> shapes;
  const auto count = static_cast<int64_t>(ordered_sizes.size());
  for (int64_t begin = 0; begin < count; begin += batch_size) {
    const auto first = ordered_sizes.begin() + begin;
    const auto last = ordered_sizes.begin() + std::min(begin + batch_size, count);
    const auto [lowest, highest] =
        std::minmax_element(first, last, [](PixelSize a, PixelSize b) { return aspect(a) < aspect(b); });
    double height = 1, width = 1;
    if (aspect(*highest) < 1) {
      height = aspect(*highest);
    } else if (aspect(*lowest) > 1) {
      width = 1 / aspect(*lowest);
    }
    shapes.push_back({snap(height), snap(width)});
  }
  return shapes;
}

}  // namespace yolo9
