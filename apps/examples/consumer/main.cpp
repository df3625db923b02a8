// A model from a yaml file, one forward pass, and one training step under the memory governor.
#include <iostream>

#include <c10/core/GradMode.h>
#include <yolo9/yolo9.h>

int main(int argc, char** argv) try {
  yolo9::install_host_meter();  // before the first tensor
  yolo9::DetectionModel model(argc > 1 ? argv[1] : "yolov9-t");

  yolo9::Draw draw;
  draw.batch.images = at::randint(0, 256, {8, 3, 128, 128}, at::kByte);
  draw.batch.targets = at::zeros({8, 6});  // one box a picture: image, class, centre x, centre y, width, height
  draw.batch.targets.select(1, 0).copy_(at::arange(8));
  draw.batch.targets.narrow(1, 2, 4).fill_(0.5);

  model->eval();
  {
    c10::NoGradGuard no_grad;
    const auto output = model->forward(yolo9::to_network_input(draw.batch.images, at::kCPU));
    std::cout << "predictions: " << output.decoded_main.sizes() << "\n";
  }

  yolo9::LossOptions loss_options;
  loss_options.classes = model->classes();
  loss_options.reg_max = model->reg_max();
  loss_options.strides = model->strides();
  const yolo9::DetectionLoss loss(loss_options);
  yolo9::ParameterStore store(*model);
  std::vector<yolo9::ParameterGroup> groups;
  for (const auto& group : store.groups()) groups.push_back({group.values, group.gradients, 0.001, 0});
  const auto optimizer = yolo9::make_optimizer(yolo9::OptimizerKind::AdamW, groups, 0.9);

  yolo9::GovernorOptions governor_options;
  governor_options.budget_bytes = yolo9::parse_bytes("150MiB", 0);
  yolo9::Governor governor(std::make_shared<yolo9::HostMemorySource>(), governor_options);
  yolo9::LocalCommunicator alone;
  yolo9::TrainStep step(model, loss, store, *optimizer, /*ema=*/nullptr, governor, alone);
  const yolo9::StepReport report = step.run({draw});
  std::cout << "loss " << report.draws[0].total << ", gradient norm " << report.gradient_norm << ", slices of "
            << report.memory.micro_batch << ", peak " << yolo9::format_bytes(report.memory.peak_bytes) << "\n";
  return report.committed ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << "error: " << error.what() << "\n";
  return 1;
}
