// What one rank says to the others. One process is a world of one; process groups implement the same calls.
#pragma once

#include <torch/types.h>

namespace yolo9 {

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int64_t rank() const = 0;
  virtual int64_t world_size() const = 0;
  // True on every rank if `flag` is true on any. Every rank must call it the same number of times.
  virtual bool any(bool flag) = 0;
  // In place, over all ranks.
  virtual void all_reduce_mean(torch::Tensor& tensor) = 0;
};

class LocalCommunicator final : public Communicator {
 public:
  int64_t rank() const override { return 0; }
  int64_t world_size() const override { return 1; }
  bool any(bool flag) override { return flag; }
  void all_reduce_mean(torch::Tensor&) override {}
};

}  // namespace yolo9
