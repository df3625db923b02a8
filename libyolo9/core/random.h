// Random numbers that are a pure function of a key: no hidden state is shared between threads, so a sample
// does not depend on which worker draws it, or when.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

namespace yolo9 {

// splitmix64: a counter run through the finalizer of Stafford's "Mix13" (Steele, Lea & Flood 2014).
class Random {
 public:
  // Streams with different keys, for instance {seed, epoch, index}, are independent.
  explicit Random(std::initializer_list<uint64_t> key);

  uint64_t next_u64();
  double uniform();                         // [0, 1)
  double uniform(double low, double high);  // [low, high)
  int64_t integer(int64_t count);           // 0 .. count-1, count >= 1, without modulo bias that matters (< 2^-53)
  double normal();                          // mean 0, standard deviation 1 (Box-Muller)
  double gamma(double shape);               // scale 1 (Marsaglia & Tsang 2000), shape > 0
  double beta(double a, double b);
  // A uniformly drawn order of 0..count-1 (Fisher-Yates).
  std::vector<int64_t> permutation(int64_t count);

 private:
  uint64_t state_;
};

}  // namespace yolo9
