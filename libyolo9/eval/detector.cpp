#include <yolo9/eval/detector.h>

#include <yolo9/core/boxes.h>
#include <yolo9/core/error.h>
#include <yolo9/core/oom.h>

namespace yolo9 {

Detector::Detector(DetectionModel model, NmsOptions options, torch::Device device)
    : model_(std::move(model)), options_(std::move(options)), device_(device) {
  model_->eval();
}

int64_t Detector::stride() const {
  const auto strides = model_->strides();
  return static_cast<int64_t>(*std::max_element(strides.begin(), strides.end()));
}

torch::Tensor Detector::detect(const torch::Tensor& input, const LetterboxInfo& info) {
  const at::NoGradGuard no_grad;
  try {
    const torch::Tensor images = input.unsqueeze(0).to(device_).contiguous(at::MemoryFormat::ChannelsLast);
    const torch::Tensor decoded = model_->forward(images.to(torch::kFloat32).div_(255.0)).decoded_main;
    torch::Tensor found = non_max_suppression(decoded, options_)[0];
    found.slice(1, 0, 4).copy_(scale_boxes(found.slice(1, 0, 4), info));
    return found;
  } catch (const std::exception& error) {
    if (!is_out_of_memory(error)) throw;
  }
  throw Error(ErrorKind::Memory,
              "detection: one image of " + std::to_string(input.size(2)) + "x" + std::to_string(input.size(1)) +
                  " px does not fit into the memory",
              "", "use a smaller --img, a smaller model, or more memory");
}

}  // namespace yolo9
