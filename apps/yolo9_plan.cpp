// yolo9-plan: what a model is, what training and inference of it take, and which cards have that much.
#include <cstdio>
#include <iostream>

#include <nlohmann/json.hpp>

#include <yolo9/yolo9.h>

#include "plan_info.h"
#include "plan_memory.h"
#include "plan_request.h"
#include "plan_simulate.h"
#include "plan_text.h"
#include "program.h"

namespace {

using nlohmann::ordered_json;

ordered_json card_list() {
  auto cards = ordered_json::array();
  for (const auto& card : yolo9::known_cards())
    cards.push_back({{"name", card.name}, {"memory_bytes", card.memory_bytes}});
  return cards;
}

void print(const ordered_json& value) { std::cout << value.dump(2) << std::endl; }

void add_options(CLI::App& app, plan::Request& request, std::string& info, bool& list_gpus) {
  const auto positive = CLI::Range(int64_t{1}, int64_t{1} << 20);
  app.add_option("--info", info, "print the layers, parameters and GFLOPs of this model instead");
  app.add_option("--cfg", request.configs, "models: yaml files or bundled names (yolov9-t, gelan-c, ...)")
      ->delimiter(',');
  app.add_option("--img,--imgsz,--img-size", request.sizes, "picture sizes in pixels, multiples of the largest stride")
      ->delimiter(',')
      ->check(CLI::Range(1, 16384))
      ->capture_default_str();
  app.add_option("--batch,--batch-size", request.batches, "images that go through together")
      ->delimiter(',')
      ->check(CLI::Range(int64_t{1}, plan::kMostImages))
      ->capture_default_str();
  app.add_option("--amp", request.precisions, "off, fp16, bf16")->delimiter(',')->capture_default_str();
  app.add_option("--checkpointing", request.levels, "levels 0 to 3")
      ->delimiter(',')
      ->check(CLI::Range(0, yolo9::kMaxCheckpointing))
      ->capture_default_str();
  app.add_option("--optimizer", request.optimizers, "SGD, Adam, AdamW, LION")->delimiter(',')->capture_default_str();
  app.add_option("--classes,--nc", request.classes, "number of classes (default: as the configuration says)")
      ->check(CLI::Range(1, 10000));
  app.add_option("--boxes", request.boxes, "boxes in each image")->check(CLI::Range(0, 10000))->capture_default_str();
  app.add_option("--device-memory", request.device_memory, "memory of the card, such as 8GiB");
  app.add_option("--gpu", request.gpu, "a card by name, see --list-gpus");
  app.add_flag("--list-gpus", list_gpus, "print the cards that are known by name");
  app.add_option("--headroom", request.headroom, "share of the memory to keep free")->capture_default_str();
  app.add_option("--context", request.context,
                 "memory that a card holds besides tensors (CUDA context, cuDNN and cuBLAS workspace); an assumption")
      ->capture_default_str();
  app.add_option("--nominal-batch", request.nominal_batch, "images per optimizer step to accumulate to")
      ->check(positive)
      ->capture_default_str();
  app.add_option("--ranks", request.ranks, "processes that share each batch")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_flag("--simulate", request.simulate,
               "run one step (the first of each list) on the CPU and replay its allocations through a model of the "
               "CUDA caching allocator");
  app.add_flag("--expandable-segments", request.expandable, "replay with expandable segments only");
  app.add_option("--trace", request.trace_file, "with --simulate: write the allocations to this file");
  app.add_option("--replay", request.replay_file, "replay this file instead of running a step");
  app.add_flag("--json", request.json, "print one JSON document instead of text");
}

int run(const plan::Request& request, const std::string& info, bool list_gpus) {
  if (list_gpus) {
    const auto cards = card_list();
    if (request.json) print({{"cards", cards}});
    for (size_t i = 0; i < cards.size() && !request.json; ++i)
      std::printf("%-22s %s\n", plan::word(cards[i], "name").c_str(),
                  plan::bytes_text(cards[i], "memory_bytes").c_str());
    return yolo9::kExitDone;
  }
  if (!info.empty()) {
    const auto result = plan::model_info(info, request.classes, request.sizes.front());
    request.json ? print(result) : plan::print_model_info(result);
    return yolo9::kExitDone;
  }
  plan::check(request);
  if (request.configs.empty() && request.replay_file.empty())
    throw yolo9::Error(yolo9::ErrorKind::Usage, "no model was given", "", "add --cfg, or see --help");
  if (!request.trace_file.empty() && !request.simulate)
    throw yolo9::Error(yolo9::ErrorKind::Usage, "--trace writes what --simulate records", "--trace", "add --simulate");
  if (request.simulate || !request.replay_file.empty()) {
    const auto result = plan::simulate(request);
    request.json ? print(result) : plan::print_simulation(result);
    return yolo9::kExitDone;
  }
  const auto result = plan::make_plan(request);
  request.json ? print(result) : plan::print_plan(result, request.ranks > 1);
  std::fflush(stdout);
  plan::refuse_if_nothing_fits(request, result);
  return yolo9::kExitDone;
}

}  // namespace

int main(int argc, char** argv) {
  yolo9::install_host_meter();  // before the first tensor
  CLI::App app{
      "Predicts the memory that training and inference of a model take, split into what it is for, from a few small "
      "steps measured on the CPU; says which cards have it, and the largest safe batch of a given one.",
      "yolo9-plan"};
  plan::Request request;
  std::string info;
  bool list_gpus = false;
  add_options(app, request, info, list_gpus);
  return yolo9::run_program(app, argc, argv, [&] { return run(request, info, list_gpus); });
}
