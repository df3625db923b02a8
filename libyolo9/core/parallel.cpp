#include <yolo9/core/parallel.h>

#include <ATen/TensorIterator.h>

namespace yolo9 {

void in_parallel(int64_t count, int64_t grain, c10::function_ref<void(int64_t begin, int64_t end)> body) {
  if (count <= 0) return;
  if (count <= grain) return body(0, count);
  // An iterator's loop is shared out inside LibTorch. It walks over the indices, of which each range reads its first.
  auto indices = at::arange(count, at::kLong);
  auto iterator = at::TensorIteratorConfig()
                      .check_all_same_dtype(false)
                      .resize_outputs(false)
                      .declare_static_shape(indices.sizes())
                      .add_output(indices)
                      .build();
  iterator.for_each(
      [&](char** data, const int64_t*, int64_t size, int64_t) {
        const int64_t begin = *reinterpret_cast<const int64_t*>(data[0]);
        body(begin, begin + size);
      },
      std::max<int64_t>(1, grain));
}

}  // namespace yolo9
