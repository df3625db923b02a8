// Detection heads: per level a box branch (4 sides x 16 distance bins) and a class branch.
#pragma once

#include <vector>

#include <torch/nn/modules/conv.h>

#include <yolo9/core/types.h>
#include <yolo9/nn/conv.h>

namespace yolo9 {

inline constexpr int64_t kRegMax = 16;  // distance bins per side

// Expected distance of each side under the softmax over its bins: [B, 64, A] -> [B, 4, A], in units of the stride.
class DFLImpl : public torch::nn::Module {
 public:
  DFLImpl();
  torch::Tensor forward(const torch::Tensor& logits);
  void freeze();                    // sets the weights that never change
  torch::nn::Conv2d conv{nullptr};  // 1x1, frozen at 0, 1, ..., 15
};
TORCH_MODULE(DFL);

// What every head shares.
struct HeadOptions {
  int64_t classes = 80;
  std::vector<int64_t> widths;  // of the input maps
  std::vector<double> strides;  // one per level
  Activation activation = {};
};

class HeadImpl : public torch::nn::Module {
 public:
  explicit HeadImpl(const HeadOptions& options) : options_(options) {}

  // `maps` as the widths were. In training mode raw maps only; in evaluation mode decoded too.
  // Without `auxiliary` the auxiliary branch of a dual head is skipped and its fields stay empty.
  virtual HeadOutput forward(const std::vector<torch::Tensor>& maps, bool auxiliary) = 0;
  // Last box bias 1, last class bias log(5 / classes / (640 / stride)^2): about five objects on a 640-pixel picture.
  virtual void initialize_biases() = 0;
  virtual bool is_dual() const = 0;

  const HeadOptions& options() const { return options_; }
  // In training mode each level of each branch goes through `runner`; null: all run directly.
  void set_runner(SegmentRunner runner) { runner_ = std::move(runner); }

 protected:
  HeadOptions options_;
  SegmentRunner runner_;
};

class DDetectImpl : public HeadImpl {
 public:
  explicit DDetectImpl(const HeadOptions& options);
  HeadOutput forward(const std::vector<torch::Tensor>& maps, bool auxiliary) override;
  void initialize_biases() override;
  bool is_dual() const override { return false; }
  torch::nn::ModuleList cv2, cv3;
  DFL dfl{nullptr};
};
TORCH_MODULE(DDetect);

// The first half of the inputs feeds the auxiliary branch (cv2, cv3, dfl), the second the main one (cv4, cv5, dfl2).
class DualDDetectImpl : public HeadImpl {
 public:
  explicit DualDDetectImpl(const HeadOptions& options);
  HeadOutput forward(const std::vector<torch::Tensor>& maps, bool auxiliary) override;
  void initialize_biases() override;
  bool is_dual() const override { return true; }
  torch::nn::ModuleList cv2, cv3, cv4, cv5;
  DFL dfl{nullptr}, dfl2{nullptr};
};
TORCH_MODULE(DualDDetect);

// Raw maps [B, 64 + nc, h, w] per level -> [B, 4 + nc, A]: centre x, centre y, width, height in pixels, then class
// scores after the sigmoid. A runs over levels, then rows, then columns.
torch::Tensor decode_maps(const std::vector<torch::Tensor>& maps, const std::vector<double>& strides, DFL& dfl);

}  // namespace yolo9
