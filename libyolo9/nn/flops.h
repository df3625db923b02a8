// What a model costs: parameters and floating-point operations.
#pragma once

#include <yolo9/nn/model.h>

namespace yolo9 {

// 1e9 operations for one square picture, an operation being half a multiply-add, counted the way the `thop` counter
// does, so that figures compare with published ones: each convolution weight once per output cell, four per
// normalised value, one per value of an enlarged map; activations, pools, sums and biases nothing.
// `size` is a multiple of the largest stride. Counts the model as it is now (fused or not, both branches).
double count_gflops(DetectionModelImpl& model, int64_t size = 640);

struct ParameterCount {
  int64_t total = 0, trainable = 0;
};
ParameterCount count_parameters(const torch::nn::Module& module);

}  // namespace yolo9
