// A model from a yaml file, one forward pass, and one training step under the memory governor.
#include <iostream>

#include <c10/core/GradMode.h>
#include <yolo9/yolo9.h>

int main(int argc, char** argv) try {
  yolo9::install_host_meter();  // before the first tensor
  yolo9::DetectionModel model(argc > 1 ? argv[1] : "yolov9-t");
  const yolo9::Draw draw = yolo9::made_up_draw(/*images=*/8, 128, 128, /*boxes=*/1, model->classes());

  model->eval();
  {
    c10::NoGradGuard no_grad;
    const auto output = model->forward(yolo9::to_network_input(draw.batch.images, at::kCPU));
    std::cout << "predictions: " << output.decoded_main.sizes() << "\n";
  }

  yolo9::KitOptions options;
  options.optimizer = yolo9::OptimizerKind::AdamW;
  options.learning_rate = 0.001;
  options.governor.budget_bytes = yolo9::parse_bytes("150MiB", 0);
  yolo9::TrainingKit kit;
  kit.assemble(model, /*averaged=*/nullptr, yolo9::make_memory_source(torch::kCPU), options);
  const yolo9::StepReport report = kit.step->run({draw});
  std::cout << "loss " << report.draws[0].total << ", gradient norm " << report.gradient_norm << ", slices of "
            << report.memory.micro_batch << ", peak " << yolo9::format_bytes(report.memory.peak_bytes) << "\n";
  return report.committed ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << "error: " << error.what() << "\n";
  return 1;
}
