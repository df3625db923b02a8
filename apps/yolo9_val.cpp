// yolo9-val: measures a detector on a data set, or COCO predictions against COCO annotations.
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>

#include <yolo9/yolo9.h>
#include <nlohmann/json.hpp>

#include "program.h"

namespace fs = std::filesystem;
using namespace yolo9;
using nlohmann::ordered_json;

namespace {

struct Flags {
  std::string memory, weights, data, annotations, predictions;
  std::string task = "val", project = "runs/val", name = "exp", device = "cpu";
  int64_t image_size = 640, batch = 32, workers = 2, max_detections = 300;
  double confidence = 0.001, iou = 0.7;
  bool json = false, exist_ok = false, single_class = false, save_json = false, save_text = false, verbose = false,
       strict = false, no_plots = false;
};

void add_flags(CLI::App& app, Flags& f) {
  auto* weights = app.add_option("--weights", f.weights, "weights to measure");
  auto* data = app.add_option("--data", f.data, "data.yaml to measure them on");
  weights->needs(data);
  data->needs(weights);
  auto* annotations = app.add_option("--annotations", f.annotations, "COCO annotations: compare two files instead");
  auto* predictions = app.add_option("--predictions", f.predictions, "COCO predictions, with --annotations");
  annotations->needs(predictions)->excludes(weights);
  predictions->needs(annotations);
  app.add_option("--img,--imgsz,--img-size", f.image_size, "longest side in pixels, rounded up to a multiple of 32")
      ->check(CLI::Range(32, 8192))
      ->capture_default_str();
  app.add_option("--memory", f.memory,
                 "memory budget: 2GiB, 50% or bytes (default: no limit); a batch that does not fit "
                 "is done in parts");
  app.add_option("--batch,--batch-size", f.batch, "images a forward")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--conf,--conf-thres", f.confidence, "score that a detection must exceed")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--iou,--iou-thres", f.iou, "overlap above which the weaker box is dropped")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--max-det", f.max_detections, "most detections an image")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_option("--task", f.task, "which part of the data")
      ->check(CLI::IsMember({"val", "test", "train"}))
      ->capture_default_str();
  app.add_option("--workers", f.workers, "loader threads")->check(CLI::Range(0, 256))->capture_default_str();
  app.add_option("--device", f.device, "cpu, or a CUDA device number")->capture_default_str();
  app.add_option("--project", f.project, "folder of runs")->capture_default_str();
  app.add_option("--name", f.name, "this run's folder in it; a number is added if it exists")->capture_default_str();
  app.add_flag("--exist-ok", f.exist_ok, "write into an existing run folder");
  app.add_flag("--single-cls", f.single_class, "treat all classes as one");
  app.add_flag("--strict", f.strict, "end with an error at label rows and pictures that cannot be used");
  app.add_flag("--json", f.json, "print the figures as JSON and nothing else");
  app.add_flag("--save-json", f.save_json, "write the detections as COCO JSON, predictions.json");
  app.add_flag("--save-txt", f.save_text, "write the detections as text files, labels/*.txt");
  app.add_flag("--verbose", f.verbose, "a row for each class also where there are 50 or more");
  app.add_flag("--noplots", f.no_plots, "draw no pictures");
}

ordered_json json_of(const CocoSummary& summary) {
  ordered_json json;
  for (const auto& [name, value] : summary.figures()) json[name] = value;
  return json;
}

void print_summary(const CocoSummary& s) {
  const auto line = [](const char* what, const char* iou, const char* area, int limit, double value) {
    std::printf(" Average %-9s (IoU=%-9s | area=%6s | maxDets=%3d) = %.3f\n", what, iou, area, limit, value);
  };
  line("Precision", "0.50:0.95", "all", 100, s.ap);
  line("Precision", "0.50", "all", 100, s.ap50);
  line("Precision", "0.75", "all", 100, s.ap75);
  line("Precision", "0.50:0.95", "small", 100, s.ap_small);
  line("Precision", "0.50:0.95", "medium", 100, s.ap_medium);
  line("Precision", "0.50:0.95", "large", 100, s.ap_large);
  line("Recall", "0.50:0.95", "all", 1, s.ar1);
  line("Recall", "0.50:0.95", "all", 10, s.ar10);
  line("Recall", "0.50:0.95", "all", 100, s.ar100);
  line("Recall", "0.50:0.95", "small", 100, s.ar_small);
  line("Recall", "0.50:0.95", "medium", 100, s.ar_medium);
  line("Recall", "0.50:0.95", "large", 100, s.ar_large);
}

int compare_files(const Flags& flags) {
  const CocoResult result = evaluate_coco(read_coco_truth(flags.annotations), read_coco_detections(flags.predictions));
  if (!flags.json) {
    print_summary(result.summary);
    return kExitDone;
  }
  ordered_json json = {{"summary", json_of(result.summary)}, {"categories", ordered_json::array()}};
  for (const auto& c : result.categories) {
    json["categories"].push_back({{"id", c.id}, {"name", c.name}, {"AP", c.ap}, {"AP50", c.ap50}, {"AR100", c.ar}});
  }
  std::cout << json.dump(2) << std::endl;
  return kExitDone;
}

std::string class_name(const EvalResult& result, size_t row) {
  const auto c = static_cast<size_t>(result.ap.classes[row]);
  return c < result.names.size() ? result.names[c] : std::to_string(c);
}

void print_table(const EvalResult& r, bool every_class) {
  const char* row = "%22s %10lld %10lld %10.3f %10.3f %10.3f %10.3f\n";
  std::printf("%22s %10s %10s %10s %10s %10s %10s\n", "Class", "Images", "Instances", "P", "R", "mAP50", "mAP50-95");
  std::printf(row, "all", static_cast<long long>(r.images), static_cast<long long>(r.labels), r.precision, r.recall,
              r.map50, r.map);
  if (!every_class) return;
  for (size_t i = 0; i < r.ap.classes.size(); ++i) {
    std::printf(row, class_name(r, i).c_str(), static_cast<long long>(r.class_images[i]),
                static_cast<long long>(r.ap.label_counts[i]), r.ap.precision[i], r.ap.recall[i], r.ap.ap50(i),
                r.ap.ap5095(i));
  }
}

ordered_json json_of(const EvalResult& r, const std::string& folder) {
  ordered_json json = {
      {"images", r.images},
      {"labels", r.labels},
      {"metrics",
       {{"precision", r.precision},
        {"recall", r.recall},
        {"mAP50", r.map50},
        {"mAP50-95", r.map},
        {"fitness", r.fitness()}}},
      {"summary", json_of(r.coco.summary)},
      {"classes", ordered_json::array()},
      {"milliseconds_per_image", {{"preprocess", r.preprocess_ms}, {"inference", r.inference_ms}, {"nms", r.nms_ms}}},
      {"folder", folder}};
  for (size_t i = 0; i < r.ap.classes.size(); ++i) {
    json["classes"].push_back({{"class", r.ap.classes[i]},
                               {"name", class_name(r, i)},
                               {"images", r.class_images[i]},
                               {"instances", r.ap.label_counts[i]},
                               {"precision", r.ap.precision[i]},
                               {"recall", r.ap.recall[i]},
                               {"mAP50", r.ap.ap50(i)},
                               {"mAP50-95", r.ap.ap5095(i)}});
  }
  return json;
}

// One file a picture: class, centre x, centre y, width, height (normalised to the picture), score.
void save_text(const std::string& folder, const Batch& batch, const std::vector<torch::Tensor>& detections) {
  for (size_t i = 0; i < detections.size(); ++i) {
    const LetterboxInfo& info = batch.letterboxes[i];
    const torch::Tensor boxes =
        normalise_boxes(scale_boxes(detections[i].slice(1, 0, 4), info), static_cast<double>(info.original_width),
                        static_cast<double>(info.original_height));
    const std::string path = folder + "/" + fs::path(batch.paths[i]).stem().string() + ".txt";
    std::ofstream file(path);
    for (int64_t j = 0; j < boxes.size(0); ++j) {
      file << detections[i][j][5].item<int64_t>();
      for (int64_t k = 0; k < 4; ++k) file << " " << boxes[j][k].item<double>();
      file << " " << detections[i][j][4].item<double>() << "\n";
    }
    file.close();
    if (!file) throw Error(ErrorKind::Usage, "cannot write the detections", path, "check space and permissions");
  }
}

std::shared_ptr<Dataset> open_data(const Flags& flags, const DataConfig& config) {
  DatasetOptions options;
  options.image_size = round_up(static_cast<double>(flags.image_size), 32);
  options.rect = true;
  options.pad = 0.5;
  options.batch_size = flags.batch;
  options.single_class = flags.single_class;
  options.strict = flags.strict;
  options.scan_folder = scan_cache_folder();
  ScanBar bar(std::cerr, is_terminal(2));
  options.on_scan = [&bar](int64_t done, int64_t total) { bar.update(done, total); };
  return std::make_shared<Dataset>(config.split(flags.task), config.names, options);
}

EvalResult measure(const Flags& flags, DetectionModel& model, const std::shared_ptr<Dataset>& data,
                   const std::string& folder, torch::Device device) {
  LoaderOptions load;
  load.batch_size = flags.batch;
  load.workers = flags.workers;
  Loader loader(data, load);
  EvalOptions options;
  options.confidence = flags.confidence;
  options.iou = flags.iou;
  options.max_detections = flags.max_detections;
  options.single_class = flags.single_class;
  options.coco = true;
  options.device = device;
  options.names = data->names();
  if (flags.save_text) fs::create_directories(folder + "/labels");
  options.on_batch = [&](int64_t index, const Batch& batch, const std::vector<torch::Tensor>& detections) {
    if (flags.save_text) save_text(folder + "/labels", batch, detections);
    if (!flags.no_plots) save_validation_pictures(folder, index, batch, detections, options.names);
  };
  const HostBudgetScope budgeted;
  return evaluate(model, loader, options);
}

int validate(const Flags& flags) {
  const torch::Device device = parse_device(flags.device);
  limit_memory(flags.memory, device);
  const DataConfig config = load_data_config(flags.data);
  LoadedModel loaded = load_model(flags.weights, device);
  const int64_t classes = loaded.model->classes();
  if (!flags.single_class && classes != config.class_count()) {
    throw Error(
        ErrorKind::Data,
        "the data has " + std::to_string(config.class_count()) + " classes, the weights " + std::to_string(classes),
        flags.data, "use the data.yaml that the weights were trained with, or --single-cls");
  }
  const auto data = open_data(flags, config);
  if (!flags.json) log_info(data->describe());
  const std::string folder = make_run_folder(flags.project, flags.name, flags.exist_ok);
  const EvalResult result = measure(flags, loaded.model, data, folder, device);
  if (flags.save_json) write_predictions(folder + "/predictions.json", result);
  if (!flags.no_plots) plot_evaluation(result, data->names(), folder);
  if (flags.json) {
    std::cout << json_of(result, folder).dump(2) << std::endl;
    return kExitDone;
  }
  print_table(result, result.ap.classes.size() > 1 && (flags.verbose || data->names().size() < 50));
  std::printf("\n");
  print_summary(result.coco.summary);
  std::printf("\nSpeed: %.2f ms pre-process, %.1f ms inference, %.2f ms NMS an image\nResults in %s\n",
              result.preprocess_ms, result.inference_ms, result.nms_ms, folder.c_str());
  return kExitDone;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Measures a detector on a data set, or COCO predictions against COCO annotations.", "yolo9-val"};
  Flags flags;
  add_flags(app, flags);
  return run_program(app, argc, argv, [&] {
    if (!flags.annotations.empty()) return compare_files(flags);
    if (flags.weights.empty()) {
      throw Error(ErrorKind::Usage, "nothing to do", "",
                  "give --weights and --data, or --annotations and --predictions");
    }
    return validate(flags);
  });
}
