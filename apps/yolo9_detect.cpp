// yolo9-detect: finds objects in pictures and videos.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>

#include <yolo9/yolo9.h>

#include "program.h"

namespace fs = std::filesystem;
using namespace yolo9;

namespace {

struct Flags {
  std::string memory, weights, source, project = "runs/detect", name = "exp", device = "cpu";
  int64_t image_size = 640, max_detections = 1000;
  double confidence = 0.25, iou = 0.45;
  std::vector<int64_t> classes;
  int line_thickness = 0;
  bool agnostic = false, save_text = false, save_confidence = false, save_crops = false, no_save = false,
       hide_labels = false, hide_scores = false, exist_ok = false;
};

void add_flags(CLI::App& app, Flags& f) {
  app.add_option("--weights", f.weights, "weights to detect with")->required();
  app.add_option("--source", f.source, "picture, video, folder, pattern in quotes, or .txt list")->required();
  app.add_option("--img,--imgsz,--img-size", f.image_size, "longest side in pixels, rounded up to a multiple of 32")
      ->check(CLI::Range(32, 8192))
      ->capture_default_str();
  app.add_option("--memory", f.memory, "memory budget: 2GiB, 50% or bytes (default: no limit)");
  app.add_option("--conf,--conf-thres", f.confidence, "score that a detection must exceed")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--iou,--iou-thres", f.iou, "overlap above which the weaker box is dropped")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--classes", f.classes, "only these class numbers");
  app.add_flag("--agnostic-nms", f.agnostic, "drop overlapping boxes of other classes too");
  app.add_option("--max-det", f.max_detections, "most detections a picture")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_flag("--save-txt", f.save_text, "write labels/*.txt: class, centre x, centre y, width, height, normalised");
  app.add_flag("--save-conf", f.save_confidence, "with the score as a sixth number, with --save-txt");
  app.add_flag("--save-crop", f.save_crops, "write each found object as crops/CLASS/*.jpg");
  app.add_flag("--nosave", f.no_save, "write no pictures or videos");
  app.add_option("--line-thickness", f.line_thickness, "of boxes, in pixels (0: by the picture's size)")
      ->check(CLI::Range(0, 100));
  app.add_flag("--hide-labels", f.hide_labels, "draw no class names");
  app.add_flag("--hide-conf", f.hide_scores, "draw no scores");
  app.add_option("--project", f.project, "folder of runs")->capture_default_str();
  app.add_option("--name", f.name, "this run's folder in it; a number is added if it exists")->capture_default_str();
  app.add_flag("--exist-ok", f.exist_ok, "write into an existing run folder");
  app.add_option("--device", f.device, "cpu, or a CUDA device number")->capture_default_str();
}

// Where each frame's results go.
class Output {
 public:
  Output(const Flags& flags, std::vector<std::string> names, std::string folder)
      : flags_(flags), names_(std::move(names)), folder_(std::move(folder)) {}

  void add(const Frame& frame, const torch::Tensor& detections) {
    const auto boxes = boxes_of(detections);
    if (!frame.video || frame.number == 0) stem_ = free_stem(frame.path);
    const std::string stem = frame.video ? stem_ + "_" + std::to_string(frame.number + 1) : stem_;
    if (flags_.save_text) write_text(stem, frame, boxes);
    if (flags_.save_crops) write_crops(stem, frame, boxes);
    if (!flags_.no_save) write_picture(frame, boxes);
    ++frames_;
    found_ += static_cast<int64_t>(boxes.size());
  }

  std::string summary(const torch::Tensor& detections) const {
    std::map<int64_t, int64_t> counts;
    for (int64_t i = 0; i < detections.size(0); ++i) ++counts[detections[i][5].item<int64_t>()];
    std::string text;
    for (const auto& [c, count] : counts) text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + name_of(c);
    return text.empty() ? "nothing" : text;
  }

  int64_t frames() const { return frames_; }
  int64_t found() const { return found_; }

 private:
  std::string name_of(int64_t c) const {
    return static_cast<size_t>(c) < names_.size() ? names_[static_cast<size_t>(c)] : std::to_string(c);
  }

  // Two pictures of one name in different folders do not overwrite each other.
  std::string free_stem(const std::string& path) {
    const std::string stem = fs::path(path).stem().string();
    const int64_t times = ++stems_[stem];
    return times == 1 ? stem : stem + "-" + std::to_string(times);
  }

  static std::vector<DrawnBox> boxes_of(const torch::Tensor& detections) {
    std::vector<DrawnBox> boxes;
    const auto rows = detections.accessor<float, 2>();
    for (int64_t i = rows.size(0); i-- > 0;) {  // the best last: drawn on top
      const auto row = rows[i];
      boxes.push_back({0, row[0], row[1], row[2], row[3], static_cast<int64_t>(row[5]), row[4]});
    }
    return boxes;
  }

  void write_text(const std::string& stem, const Frame& frame, const std::vector<DrawnBox>& boxes) const {
    fs::create_directories(folder_ + "/labels");
    const auto height = static_cast<double>(frame.image.size(1)), width = static_cast<double>(frame.image.size(2));
    const std::string path = folder_ + "/labels/" + stem + ".txt";
    std::ofstream file(path);
    for (auto box = boxes.rbegin(); box != boxes.rend(); ++box) {
      file << box->class_index << " " << (box->x1 + box->x2) / 2 / width << " " << (box->y1 + box->y2) / 2 / height
           << " " << (box->x2 - box->x1) / width << " " << (box->y2 - box->y1) / height;
      if (flags_.save_confidence) file << " " << box->score;
      file << "\n";
    }
    file.close();
    if (!file) throw Error(ErrorKind::Usage, "cannot write the detections", path, "check space and permissions");
  }

  void write_crops(const std::string& stem, const Frame& frame, const std::vector<DrawnBox>& boxes) const {
    int64_t number = 0;
    for (auto box = boxes.rbegin(); box != boxes.rend(); ++box) {
      const auto edge = [](double v, int64_t most) { return std::clamp<int64_t>(std::llround(v), 0, most); };
      const int64_t x1 = edge(box->x1, frame.image.size(2)), x2 = edge(box->x2, frame.image.size(2));
      const int64_t y1 = edge(box->y1, frame.image.size(1)), y2 = edge(box->y2, frame.image.size(1));
      if (x2 <= x1 || y2 <= y1) continue;
      std::string name = name_of(box->class_index);
      std::replace(name.begin(), name.end(), '/', '_');
      const std::string folder = folder_ + "/crops/" + name;
      fs::create_directories(folder);
      const std::string path = folder + "/" + stem + (++number > 1 ? "_" + std::to_string(number) : "") + ".jpg";
      save_image(frame.image.slice(1, y1, y2).slice(2, x1, x2).contiguous(), path);
    }
  }

  void write_picture(const Frame& frame, const std::vector<DrawnBox>& boxes) {
    DrawStyle style;
    style.line_thickness = flags_.line_thickness;
    style.labels = !flags_.hide_labels;
    style.scores = !flags_.hide_scores;
    const torch::Tensor drawn = draw_boxes(frame.image, boxes, names_, style);
    if (!frame.video) {
      save_image(drawn, folder_ + "/" + stem_ + fs::path(frame.path).extension().string());
      return;
    }
    if (frame.number == 0) {
      sink_ = std::make_unique<VideoSink>(folder_ + "/" + stem_ + ".mp4", frame.frames_per_second, frame.image.size(1),
                                          frame.image.size(2));
    }
    sink_->write(drawn);
  }

  const Flags& flags_;
  std::vector<std::string> names_;
  std::string folder_, stem_;
  std::map<std::string, int64_t> stems_;
  std::unique_ptr<VideoSink> sink_;
  int64_t frames_ = 0, found_ = 0;
};

int detect(const Flags& flags) {
  using Clock = std::chrono::steady_clock;
  const torch::Device device = parse_device(flags.device);
  limit_memory(flags.memory, device);
  FrameSource source(expand_source(flags.source));
  LoadedModel loaded = load_model(flags.weights, device);
  for (const int64_t c : flags.classes) {
    if (c < 0 || c >= loaded.model->classes()) {
      throw Error(ErrorKind::Usage,
                  "--classes names class " + std::to_string(c) + ", the weights have 0.." +
                      std::to_string(loaded.model->classes() - 1),
                  "", "give numbers of classes");
    }
  }
  const std::string folder = make_run_folder(flags.project, flags.name, flags.exist_ok);
  NmsOptions nms;
  nms.confidence = flags.confidence;
  nms.iou = flags.iou;
  nms.classes = flags.classes;
  nms.agnostic = flags.agnostic;
  nms.max_detections = flags.max_detections;
  Detector detector(loaded.model, nms, device);
  const int64_t size = round_up(static_cast<double>(flags.image_size), detector.stride());
  Output output(flags, loaded.names, folder);
  double seconds = 0;
  while (const auto frame = source.next()) {
    const auto start = Clock::now();
    LetterboxInfo info;
    torch::Tensor input;
    try {
      input = letterbox_picture(frame->image, size, detector.stride(), info);
    } catch (const Error& error) {  // thinner than a pixel at this size: the others go on
      log_warn(frame->path + ": " + error.what() + "; passed over");
      continue;
    }
    const torch::Tensor found = [&] {
      const HostBudgetScope budgeted;
      return detector.detect(input, info);
    }();
    const double taken = std::chrono::duration<double>(Clock::now() - start).count();
    seconds += taken;
    output.add(*frame, found);
    const std::string number = frame->video ? " frame " + std::to_string(frame->number + 1) : "";
    std::printf("%s%s: %s, %.1f ms\n", frame->path.c_str(), number.c_str(), output.summary(found).c_str(),
                taken * 1000);
  }
  std::printf("%lld objects in %lld pictures, %.1f ms a picture; results in %s\n",
              static_cast<long long>(output.found()), static_cast<long long>(output.frames()),
              seconds * 1000 / static_cast<double>(std::max<int64_t>(1, output.frames())), folder.c_str());
  return kExitDone;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Finds objects in pictures and videos.", "yolo9-detect"};
  Flags flags;
  add_flags(app, flags);
  return run_program(app, argc, argv, [&] { return detect(flags); });
}
