#include <yolo9/data/sampling.h>

#include <yolo9/core/random.h>

namespace yolo9 {

std::vector<int64_t> shuffled_order(int64_t count, uint64_t seed, int64_t epoch) {
  constexpr uint64_t kOrderStream = 0x6F72646572;  // "order": apart from the samples' own streams
  Random random{seed, kOrderStream, static_cast<uint64_t>(epoch)};
  return random.permutation(count);
}

}  // namespace yolo9
