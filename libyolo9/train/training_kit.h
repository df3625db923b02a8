// A model and everything that a training step of it needs, put together.
#pragma once

#include <memory>

#include <yolo9/core/communicator.h>
#include <yolo9/loss/detection_loss.h>
#include <yolo9/memory/governor.h>
#include <yolo9/memory/planner.h>
#include <yolo9/nn/model.h>
#include <yolo9/train/ema.h>
#include <yolo9/train/optimizer.h>
#include <yolo9/train/parameter_store.h>
#include <yolo9/train/step.h>

namespace yolo9 {

struct KitOptions {
  LossOptions loss;  // classes, reg_max and strides are filled in from the model
  OptimizerKind optimizer = OptimizerKind::SGD;
  double learning_rate = 0.01;
  double momentum = 0.937;
  double weight_decay = 0;  // of convolution weights
  GovernorOptions governor;
  StepOptions step;
};

struct TrainingKit {
  DetectionModel model{nullptr}, ema_model{nullptr};
  std::unique_ptr<ParameterStore> store, ema_store;
  std::unique_ptr<DetectionLoss> loss;
  std::unique_ptr<Optimizer> optimizer;
  std::unique_ptr<Ema> ema;
  std::unique_ptr<Governor> governor;
  std::unique_ptr<Communicator> communicator;
  std::unique_ptr<TrainStep> step;

  // Around `trained`, whose average `averaged` of the same configuration holds (null: none is kept); both on their
  // device already, frozen as they are to be. The average starts as a copy.
  void assemble(DetectionModel trained, DetectionModel averaged, std::shared_ptr<MemorySource> source,
                KitOptions options);
  // What is live between steps.
  Baseline baseline() const;
  // Runs the step on made-up pictures, and undoes it.
  Probe probe();
};

// Pictures of grey with `boxes` boxes each, in a regular pattern: what a draw costs depends on no more than that.
Draw made_up_draw(int64_t images, int64_t height, int64_t width, int64_t boxes, int64_t classes);

// The allocator's view of a device.
std::shared_ptr<MemorySource> make_memory_source(torch::Device device);

}  // namespace yolo9
