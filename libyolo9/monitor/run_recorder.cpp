#include <yolo9/monitor/run_recorder.h>

#include <filesystem>
#include <iostream>
#include <optional>

#include <yolo9/core/log.h>
#include <yolo9/monitor/memory_log.h>
#include <yolo9/monitor/pictures.h>
#include <yolo9/monitor/plots.h>
#include <yolo9/monitor/progress.h>
#include <yolo9/monitor/results.h>

namespace yolo9 {

namespace {

// The first batches of a run are kept as pictures: what the network really sees.
constexpr int64_t kPictureBatches = 3;

std::vector<std::string> file_names(const std::vector<std::string>& paths) {
  std::vector<std::string> names;
  for (const auto& path : paths) names.push_back(std::filesystem::path(path).filename().string());
  return names;
}

std::vector<DrawnBox> boxes_of_targets(const Batch& batch) {
  std::vector<DrawnBox> boxes;
  const auto rows = batch.targets.cpu().contiguous();
  const float* row = rows.data_ptr<float>();
  const auto height = static_cast<double>(batch.images.size(2)), width = static_cast<double>(batch.images.size(3));
  for (int64_t i = 0; i < rows.size(0); ++i, row += 6) {
    DrawnBox box;
    box.image = static_cast<int64_t>(row[0]);
    box.class_index = static_cast<int64_t>(row[1]);
    box.x1 = (row[2] - row[4] / 2) * width;
    box.y1 = (row[3] - row[5] / 2) * height;
    box.x2 = (row[2] + row[4] / 2) * width;
    box.y2 = (row[3] + row[5] / 2) * height;
    boxes.push_back(box);
  }
  return boxes;
}

std::vector<DrawnBox> boxes_of_detections(const std::vector<torch::Tensor>& detections) {
  constexpr float kShownScore = 0.25f;
  std::vector<DrawnBox> boxes;
  for (size_t image = 0; image < detections.size(); ++image) {
    const auto rows = detections[image].cpu().contiguous();
    const float* row = rows.data_ptr<float>();
    for (int64_t i = 0; i < rows.size(0); ++i, row += 6)
      if (row[4] > kShownScore)
        boxes.push_back(
            {static_cast<int64_t>(image), row[0], row[1], row[2], row[3], static_cast<int64_t>(row[5]), row[4]});
  }
  return boxes;
}

class ProgressCallback final : public Callback {
 public:
  ProgressCallback() : progress_(std::cerr, is_terminal(2)), scan_(std::cerr, is_terminal(2)) {}

  void on_scan(int64_t done, int64_t total) override { scan_.update(done, total); }

  void on_start(const RunStart& start) override {
    batches_ = start.batches_per_epoch;
    epochs_ = start.epochs;
  }

  void on_step(const StepEvent& step) override {
    if (step.epoch != epoch_) begin(step.epoch);
    for (const auto& draw : step.report->draws) {
      for (size_t k = 0; k < 3; ++k) sums_[k] += draw.items[k];
      state_.instances += draw.boxes;
      ++state_.batch;
    }
    images_ += step.report->images;
    state_.losses.assign(3, 0.0);
    for (size_t k = 0; k < 3; ++k) state_.losses[k] = sums_[k] / static_cast<double>(state_.batch);
    state_.memory_bytes = std::max(state_.memory_bytes, step.report->memory.peak_bytes);
    state_.budget_bytes = step.report->memory.budget_bytes;
    state_.image_size = std::max(step.height, step.width);
    state_.micro_batch = step.report->memory.micro_batch;
    state_.accumulation = step.accumulation;
    const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    state_.images_per_second = elapsed > 0 ? static_cast<double>(images_) / elapsed : 0;
    progress_.update(state_);
  }

  void on_epoch(const EpochEvent& epoch) override {
    if (epoch.epoch != epoch_) begin(epoch.epoch);
    ProgressState state = state_;
    state.losses.assign(epoch.losses.begin(), epoch.losses.end());
    state.batch = batches_;
    state.instances = epoch.instances;
    state.memory_bytes = epoch.memory_bytes;
    state.budget_bytes = epoch.budget_bytes;
    state.image_size = epoch.image_size;
    state.images_per_second = epoch.train_seconds > 0 ? static_cast<double>(epoch.images) / epoch.train_seconds : 0;
    state.seconds_left = epoch.remaining_seconds;
    progress_.end_epoch(state);
    if (!epoch.validation) return;
    char line[160];
    std::snprintf(line, sizeof line, "%22s P %.3f  R %.3f  mAP50 %.4f  mAP50-95 %.4f%s",
                  "validation:", epoch.validation->precision, epoch.validation->recall, epoch.validation->map50,
                  epoch.validation->map, epoch.best ? "  (best so far)" : "");
    log_info(line);
  }

 private:
  void begin(int64_t epoch) {
    epoch_ = epoch;
    state_ = {};
    state_.epoch = epoch;
    state_.epochs = epochs_;
    state_.batches = batches_;
    state_.seconds_left = -1;
    sums_ = {};
    images_ = 0;
    start_ = std::chrono::steady_clock::now();
    progress_.begin_epoch();
  }

  Progress progress_;
  ScanBar scan_;
  ProgressState state_;
  std::array<double, 3> sums_{};
  int64_t epoch_ = -1, batches_ = 0, epochs_ = 0, images_ = 0;
  std::chrono::steady_clock::time_point start_;
};

class TableCallback final : public Callback {
 public:
  void on_start(const RunStart& start) override {
    results_.emplace(start.run_dir + "/results.csv", start.first_epoch);
    memory_.emplace(start.run_dir + "/memory.csv", start.steps_done + 1);
  }

  void on_step(const StepEvent& step) override {
    const StepMemory& memory = step.report->memory;
    MemoryRow row;
    row.step = step.step;
    row.epoch = step.epoch;
    row.image_size = std::max(step.height, step.width);
    for (const auto& draw : step.report->draws) row.boxes += draw.boxes;
    row.micro_batch = memory.micro_batch;
    row.accumulation = step.accumulation;
    row.rung = static_cast<int64_t>(memory.rung);
    row.allocated_bytes = memory.allocated_bytes;
    row.reserved_bytes = memory.reserved_bytes;
    row.peak_bytes = memory.peak_bytes;
    row.predicted_bytes = memory.predicted_bytes;
    row.budget_bytes = memory.budget_bytes;
    row.retries = memory.retries;
    row.ooms = memory.ooms;
    row.decision = memory.decision;
    memory_->append(row);
  }

  void on_epoch(const EpochEvent& epoch) override {
    ResultsRow row;
    row.epoch = epoch.epoch;
    row.train_loss = epoch.losses;
    row.learning_rate = epoch.learning_rates;
    if (epoch.validation) {
      row.precision = epoch.validation->precision;
      row.recall = epoch.validation->recall;
      row.map50 = epoch.validation->map50;
      row.map5095 = epoch.validation->map;
    }
    results_->append(row);
  }

 private:
  std::optional<ResultsCsv> results_;
  std::optional<MemoryLog> memory_;
};

class PictureCallback final : public Callback {
 public:
  explicit PictureCallback(std::string run_dir) : run_dir_(std::move(run_dir)) {}

  void on_start(const RunStart& start) override {
    names_ = start.names;
    first_epoch_ = start.first_epoch;
    last_epoch_ = start.epochs;
    std::vector<LabelBox> boxes;
    const auto rows = start.labels.contiguous();
    const float* row = rows.data_ptr<float>();
    for (int64_t i = 0; i < rows.size(0); ++i, row += 5)
      boxes.push_back({static_cast<int64_t>(row[0]), row[1], row[2], row[3], row[4]});
    plot_labels(boxes, names_, run_dir_ + "/labels.jpg");
  }

  void on_step(const StepEvent& step) override {
    for (const Draw& draw : *step.draws) {
      if (first_epoch_ > 0 || train_batches_ >= kPictureBatches) return;
      save_mosaic(draw.batch.images, boxes_of_targets(draw.batch), file_names(draw.batch.paths), names_,
                  run_dir_ + "/train_batch" + std::to_string(train_batches_++) + ".jpg");
    }
  }

  // The run's last evaluation, of the best weights, is the one that is drawn.
  void on_validation_batch(int64_t epoch, int64_t index, const Batch& batch,
                           const std::vector<torch::Tensor>& detections) override {
    if (epoch == last_epoch_) save_validation_pictures(run_dir_, index, batch, detections, names_);
  }

  void on_end(const RunEnd& end) override {
    plot_results(read_results(run_dir_ + "/results.csv"), run_dir_ + "/results.png");
    plot_memory(read_memory_log(run_dir_ + "/memory.csv"), run_dir_ + "/memory.png");
    if (end.validation) plot_evaluation(*end.validation, names_, run_dir_);
  }

 private:
  std::string run_dir_;
  std::vector<std::string> names_;
  int64_t first_epoch_ = 0, last_epoch_ = 0, train_batches_ = 0;
};

}  // namespace

void save_validation_pictures(const std::string& folder, int64_t index, const Batch& batch,
                              const std::vector<torch::Tensor>& detections, const std::vector<std::string>& names) {
  if (index >= kPictureBatches) return;
  const std::string stem = folder + "/val_batch" + std::to_string(index);
  save_mosaic(batch.images, boxes_of_targets(batch), file_names(batch.paths), names, stem + "_labels.jpg");
  save_mosaic(batch.images, boxes_of_detections(detections), file_names(batch.paths), names, stem + "_pred.jpg");
}

void plot_evaluation(const EvalResult& result, const std::vector<std::string>& names, const std::string& folder) {
  EvaluationCurves curves;
  for (size_t i = 0; i < result.ap.classes.size(); ++i) {
    curves.names.push_back(names.at(static_cast<size_t>(result.ap.classes[i])));
    curves.ap50.push_back(result.ap.ap50(i));
  }
  curves.precision = result.ap.precision_curve;
  curves.recall = result.ap.recall_curve;
  curves.f1 = result.ap.f1_curve;
  curves.pr = result.ap.pr_curve;
  plot_evaluation_curves(curves, folder);
  plot_confusion_matrix(result.confusion.rows(), names, folder + "/confusion_matrix.png");
}

std::vector<std::shared_ptr<Callback>> default_callbacks(const std::string& run_dir, const RunOptions& options) {
  std::vector<std::shared_ptr<Callback>> callbacks{std::make_shared<TableCallback>(),
                                                   std::make_shared<ProgressCallback>()};
  if (!options.no_plots) callbacks.push_back(std::make_shared<PictureCallback>(run_dir));
  return callbacks;
}

}  // namespace yolo9
