// Runs a detector over a data set and measures it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <torch/types.h>

#include <yolo9/core/types.h>
#include <yolo9/data/loader.h>
#include <yolo9/eval/coco.h>
#include <yolo9/eval/metrics.h>
#include <yolo9/nn/model.h>

namespace yolo9 {

struct EvalOptions {
  double confidence = 0.001, iou = 0.7;  // of the suppression
  int64_t max_detections = 300;
  bool single_class = false;             // all classes count as class 0
  bool coco = false;                     // also COCO's twelve figures, and the detections themselves
  torch::Device device = torch::kCPU;
  std::vector<std::string> names;
  // Called after each batch with its detections in network pixels, [n, 6] per image.
  std::function<void(int64_t index, const Batch&, const std::vector<torch::Tensor>&)> on_batch;
};

struct EvalResult {
  std::vector<std::string> names;
  ApResult ap;
  double precision = 0, recall = 0, map50 = 0, map = 0;  // means over the classes that have labels
  ConfusionMatrix confusion{1};
  int64_t images = 0, labels = 0;
  std::vector<int64_t> class_images;  // images that show each class of `ap.classes`
  // Milliseconds an image.
  double preprocess_ms = 0, inference_ms = 0, nms_ms = 0;
  int64_t batch_halvings = 0;  // how often fewer images a forward were needed to fit the memory

  // With options.coco. The image with id k is image_paths[k - 1]; boxes are in original pixels.
  CocoResult coco;
  std::vector<CocoDetection> detections;
  std::vector<std::string> image_paths;

  double fitness() const { return 0.1 * map50 + 0.9 * map; }
  // mAP of each of `classes` classes; the mean for those without labels. For image weights.
  std::vector<double> class_maps(int64_t classes) const;
};

// images: float [n,3,H,W], 0..1, on the options' device -> [n, 4 + classes, A] decoded.
using Forward = std::function<torch::Tensor(const torch::Tensor& images)>;
using NextBatch = std::function<std::optional<Batch>()>;

// When the memory runs out, a batch is done in halves, and all later ones too: the detections are the same.
// Throws Error(Memory) if a single image does not fit.
EvalResult evaluate(const Forward& forward, const NextBatch& next, int64_t classes, const EvalOptions& options);

// The model's main branch over one pass of the loader, without augmentation. The model's mode is restored, also when
// this throws.
EvalResult evaluate(DetectionModel& model, Loader& loader, const EvalOptions& options);

// The detections of `result` as COCO JSON: image ids are the pictures' file names, as numbers where they are numbers;
// categories are class numbers, or COCO's own 1..90 when the names are COCO's 80.
void write_predictions(const std::string& path, const EvalResult& result);

}  // namespace yolo9
