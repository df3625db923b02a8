#include <yolo9/train/training_kit.h>

#include <cmath>

#include <ATen/ATen.h>

#include <yolo9/memory/cuda_source.h>
#include <yolo9/memory/host_source.h>

namespace yolo9 {

void TrainingKit::assemble(DetectionModel trained, DetectionModel averaged, std::shared_ptr<MemorySource> source,
                           KitOptions options) {
  model = std::move(trained);
  ema_model = std::move(averaged);
  store = std::make_unique<ParameterStore>(*model, options.step.memory_format);
  if (!ema_model.is_empty()) {
    ema_store = std::make_unique<ParameterStore>(*ema_model, options.step.memory_format, /*with_gradients=*/false);
    ema_store->copy_from(*store);
    // Validation reads the main branch only.
    ema_model->set_auxiliary(false);
    ema_model->eval();
    ema = std::make_unique<Ema>(store->floating_state(), ema_store->floating_state());
  }
  options.loss.classes = model->classes();
  options.loss.reg_max = model->reg_max();
  options.loss.strides = model->strides();
  loss = std::make_unique<DetectionLoss>(options.loss);
  std::vector<ParameterGroup> groups(3);
  for (size_t i = 0; i < 3; ++i)
    groups[i] = {store->groups()[i].values, store->groups()[i].gradients, options.learning_rate,
                 i == kWeight ? options.weight_decay : 0};
  optimizer = make_optimizer(options.optimizer, std::move(groups), options.momentum);
  governor = std::make_unique<Governor>(std::move(source), options.governor);
  communicator = std::make_unique<LocalCommunicator>();
  step =
      std::make_unique<TrainStep>(model, *loss, *store, *optimizer, ema.get(), *governor, *communicator, options.step);
}

Baseline TrainingKit::baseline() const {
  const auto bytes = [](const torch::Tensor& tensor) {
    return tensor.defined() ? static_cast<int64_t>(tensor.nbytes()) : int64_t{0};
  };
  Baseline out;
  for (const auto& tensor : store->floating_state()) out.weights_bytes += bytes(tensor);
  out.weights_bytes += bytes(store->counters());
  for (const auto& group : store->groups()) out.gradients_bytes += bytes(group.gradients);
  for (const auto& [name, tensor] : optimizer->state()) out.optimizer_bytes += bytes(tensor);
  if (ema_store)
    for (const auto& tensor : ema_store->floating_state()) out.ema_bytes += bytes(tensor);
  return out;
}

Draw made_up_draw(int64_t images, int64_t height, int64_t width, int64_t boxes, int64_t classes) {
  Draw draw;
  draw.batch.images = at::full({images, 3, height, width}, 114, at::kByte);
  draw.batch.targets = at::zeros({images * boxes, 6});
  float* row = draw.batch.targets.mutable_data_ptr<float>();
  const auto side = std::max<int64_t>(1, static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(boxes)))));
  for (int64_t image = 0; image < images; ++image)
    for (int64_t box = 0; box < boxes; ++box, row += 6) {
      row[0] = static_cast<float>(image);
      row[1] = static_cast<float>(box % std::max<int64_t>(1, classes));
      row[2] = (static_cast<float>(box % side) + 0.5f) / static_cast<float>(side);
      row[3] = (static_cast<float>(box / side) + 0.5f) / static_cast<float>(side);
      row[4] = row[5] = 0.2f;
    }
  return draw;
}

Probe TrainingKit::probe() {
  return [this](const StepShape& shape, const StepSetting& setting) {
    const int64_t images = std::max<int64_t>(1, shape.draw_size);
    const int64_t boxes = (shape.boxes + images - 1) / images;
    return step->probe(made_up_draw(images, shape.height, shape.width, boxes, model->classes()), setting);
  };
}

std::shared_ptr<MemorySource> make_memory_source(torch::Device device) {
  if (device.is_cpu()) return std::make_shared<HostMemorySource>();
  return make_cuda_memory_source(device.index());
}

}  // namespace yolo9
