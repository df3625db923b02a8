#include <yolo9/eval/evaluator.h>

#include <chrono>
#include <filesystem>

#include <yolo9/core/boxes.h>
#include <yolo9/core/error.h>
#include <yolo9/core/log.h>
#include <yolo9/core/oom.h>
#include <yolo9/eval/nms.h>

namespace yolo9 {

namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// Everything that grows while batches come in.
class Evaluation {
 public:
  Evaluation(const Forward& forward, int64_t classes, const EvalOptions& options)
      : forward_(forward), classes_(options.single_class ? 1 : classes), options_(options) {
    result_.names = options.names;
    result_.confusion = ConfusionMatrix(classes_);
  }

  void add(const Batch& batch) {
    const auto detections = detect(batch.images);
    const torch::Tensor targets = batch.targets.to(torch::kCPU, torch::kFloat32);
    for (int64_t i = 0; i < batch.size(); ++i) {
      add_image(batch, i, detections[static_cast<size_t>(i)], targets);
    }
    if (options_.on_batch) options_.on_batch(index_, batch, detections);
    ++index_;
  }

  EvalResult finish() {
    const auto joined = [](const std::vector<torch::Tensor>& parts, int64_t width) {
      return parts.empty() ? torch::zeros({0, width}) : torch::cat(parts);
    };
    const torch::Tensor detections = joined(scores_, 2), labels = joined(labels_, 1);
    result_.ap = ap_per_class(joined(correct_, kIouLevels), detections.select(1, 0), detections.select(1, 1),
                              labels.flatten());
    result_.precision = result_.ap.mean_precision();
    result_.recall = result_.ap.mean_recall();
    result_.map50 = result_.ap.map50();
    result_.map = result_.ap.map5095();
    for (const int64_t c : result_.ap.classes) result_.class_images.push_back(class_images_[c]);
    const double images = static_cast<double>(std::max<int64_t>(1, result_.images));
    result_.preprocess_ms /= images;
    result_.inference_ms /= images;
    result_.nms_ms /= images;
    if (options_.coco) {
      for (int64_t c = 0; c < classes_; ++c) {
        const auto k = static_cast<size_t>(c);
        truth_.categories.emplace_back(c, k < options_.names.size() ? options_.names[k] : std::to_string(c));
      }
      result_.coco = evaluate_coco(truth_, result_.detections);
    }
    return std::move(result_);
  }

 private:
  // Detections in network pixels, one tensor an image.
  std::vector<torch::Tensor> detect(const torch::Tensor& images) {
    std::vector<torch::Tensor> detections;
    const int64_t count = images.size(0);
    if (at_once_ == 0) at_once_ = count;
    for (int64_t begin = 0; begin < count;) {
      const int64_t end = std::min(count, begin + at_once_);
      const auto decoded = forward_slice(images.slice(0, begin, end));
      if (!decoded) {
        halve(end - begin, images);
        continue;
      }
      const auto start = Clock::now();
      NmsOptions nms;
      nms.confidence = options_.confidence;
      nms.iou = options_.iou;
      nms.max_detections = options_.max_detections;
      nms.multi_label = true;
      nms.agnostic = options_.single_class;
      for (torch::Tensor& found : non_max_suppression(*decoded, nms)) {
        if (options_.single_class) found.select(1, 5).zero_();
        detections.push_back(std::move(found));
      }
      result_.nms_ms += milliseconds_since(start);
      begin = end;
    }
    return detections;
  }

  // Nothing when the memory ran out; the exception is gone by then, and with it what it kept alive.
  std::optional<torch::Tensor> forward_slice(const torch::Tensor& images) {
    try {
      auto start = Clock::now();
      torch::Tensor input = images.to(options_.device).contiguous(at::MemoryFormat::ChannelsLast);
      input = input.to(torch::kFloat32).div_(255.0);
      const double preprocess = milliseconds_since(start);
      start = Clock::now();
      torch::Tensor decoded = forward_(input).to(torch::kCPU, torch::kFloat32);
      result_.preprocess_ms += preprocess;
      result_.inference_ms += milliseconds_since(start);
      return decoded;
    } catch (const std::exception& error) {
      if (!is_out_of_memory(error)) throw;
    }
    return std::nullopt;
  }

  void halve(int64_t tried, const torch::Tensor& images) {
    if (tried == 1) {
      throw Error(ErrorKind::Memory,
                  "validation: one image of " + std::to_string(images.size(3)) + "x" + std::to_string(images.size(2)) +
                      " does not fit into the memory",
                  "", "use a smaller --img or a smaller model");
    }
    at_once_ = (tried + 1) / 2;
    ++result_.batch_halvings;
    log_warn("validation ran out of memory with " + std::to_string(tried) + " images at once, going on with " +
             std::to_string(at_once_));
  }

  void add_image(const Batch& batch, int64_t i, const torch::Tensor& found, const torch::Tensor& targets) {
    const LetterboxInfo& letterbox = batch.letterboxes[static_cast<size_t>(i)];
    torch::Tensor detections = found.clone();
    detections.slice(1, 0, 4).copy_(scale_boxes(found.slice(1, 0, 4), letterbox));
    const torch::Tensor own = targets.index({targets.select(1, 0) == i});
    torch::Tensor labels = torch::empty({own.size(0), 5});
    labels.select(1, 0).copy_(own.select(1, 1));
    if (options_.single_class) labels.select(1, 0).zero_();
    const auto width = static_cast<double>(batch.images.size(3)), height = static_cast<double>(batch.images.size(2));
    labels.slice(1, 1, 5).copy_(scale_boxes(denormalise_boxes(own.slice(1, 2, 6), width, height), letterbox));

    correct_.push_back(match_detections(detections, labels));
    scores_.push_back(detections.slice(1, 4, 6));
    labels_.push_back(labels.slice(1, 0, 1));
    result_.confusion.add(detections, labels);
    ++result_.images;
    result_.labels += labels.size(0);
    count_classes(labels);
    if (options_.coco) add_coco(detections, labels, batch.paths[static_cast<size_t>(i)]);
  }

  void count_classes(const torch::Tensor& labels) {
    std::set<int64_t> seen;
    const auto rows = labels.accessor<float, 2>();
    for (int64_t j = 0; j < rows.size(0); ++j) seen.insert(static_cast<int64_t>(rows[j][0]));
    for (const int64_t c : seen) ++class_images_[c];
  }

  void add_coco(const torch::Tensor& detections, const torch::Tensor& labels, const std::string& path) {
    result_.image_paths.push_back(path);
    const auto image = static_cast<int64_t>(result_.image_paths.size());
    truth_.images.push_back(image);
    const auto box_of = [](const float* r) { return CocoBox{r[0], r[1], double(r[2]) - r[0], double(r[3]) - r[1]}; };
    for (int64_t j = 0; j < labels.size(0); ++j) {
      const float* row = labels.data_ptr<float>() + j * 5;
      const CocoBox box = box_of(row + 1);
      truth_.annotations.push_back({static_cast<int64_t>(truth_.annotations.size()) + 1, image,
                                    static_cast<int64_t>(row[0]), box, box.width * box.height, false});
    }
    for (int64_t j = 0; j < detections.size(0); ++j) {
      const float* row = detections.data_ptr<float>() + j * 6;
      result_.detections.push_back({image, static_cast<int64_t>(row[5]), box_of(row), row[4]});
    }
  }

  const Forward& forward_;
  const int64_t classes_;
  const EvalOptions& options_;
  EvalResult result_;
  CocoTruth truth_;
  std::vector<torch::Tensor> correct_, scores_, labels_;
  std::map<int64_t, int64_t> class_images_;
  int64_t at_once_ = 0;  // images a forward; 0: not known yet
  int64_t index_ = 0;
};

class EvaluationMode {
 public:
  explicit EvaluationMode(DetectionModel& model) : model_(model), training_(model->is_training()) { model_->eval(); }
  ~EvaluationMode() { model_->train(training_); }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  DetectionModel& model_;
  bool training_;
};

// COCO's category of each of its 80 classes in order.
constexpr std::array<int64_t, 80> kCocoCategories = {
    1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 27, 28, 31,
    32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59,
    60, 61, 62, 63, 64, 65, 67, 70, 72, 73, 74, 75, 76, 77, 78, 79, 80, 81, 82, 84, 85, 86, 87, 88, 89, 90};

}  // namespace

std::vector<double> EvalResult::class_maps(int64_t classes) const {
  std::vector<double> maps(static_cast<size_t>(classes), map);
  for (size_t i = 0; i < ap.classes.size(); ++i) {
    if (ap.classes[i] < classes) maps[static_cast<size_t>(ap.classes[i])] = ap.ap5095(i);
  }
  return maps;
}

EvalResult evaluate(const Forward& forward, const NextBatch& next, int64_t classes, const EvalOptions& options) {
  const at::NoGradGuard no_grad;
  Evaluation evaluation(forward, classes, options);
  while (const auto batch = next()) evaluation.add(*batch);
  return evaluation.finish();
}

EvalResult evaluate(DetectionModel& model, Loader& loader, const EvalOptions& options) {
  const EvaluationMode mode(model);
  loader.start(0, 0, {}, /*mosaic=*/false);
  return evaluate([&](const torch::Tensor& images) { return model->forward(images).decoded_main; },
                  [&] { return loader.next(); }, model->classes(), options);
}

void write_predictions(const std::string& path, const EvalResult& result) {
  const bool is_coco = result.names.size() == kCocoCategories.size() && result.names.front() == "person" &&
                       result.names[1] == "bicycle" && result.names.back() == "toothbrush";
  std::vector<std::pair<int64_t, std::string>> texts;
  std::vector<int64_t> ids;
  for (size_t i = 0; i < result.image_paths.size(); ++i) {
    const std::string stem = std::filesystem::path(result.image_paths[i]).stem().string();
    const bool number = !stem.empty() && stem.size() <= 18 && stem.find_first_not_of("0123456789") == std::string::npos;
    // A text stands for itself; its id only has to differ from all numbers.
    ids.push_back(number ? std::stoll(stem) : -static_cast<int64_t>(i) - 1);
    if (!number) texts.emplace_back(ids.back(), stem);
  }
  std::vector<CocoDetection> detections = result.detections;
  for (CocoDetection& d : detections) {
    d.image_id = ids[static_cast<size_t>(d.image_id - 1)];
    if (is_coco) d.category_id = kCocoCategories[static_cast<size_t>(d.category_id)];
  }
  write_coco_detections(path, detections, texts);
}

}  // namespace yolo9
