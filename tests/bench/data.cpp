// How many training samples a second one thread makes, cold (every picture decoded for every sample) and from decoded
// pictures in memory, at 640 px with the recipe of scratch-high: yolo9-bench-data [data.yaml ...] [--epochs N]
// Without a data set: on the shapes that yolo9-data make-shapes writes, at 640 x 480.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include <yolo9/yolo9.h>

#include <yolo9/data/stage_clock.h>

using namespace yolo9;

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

struct Result {
  double samples_a_second = 0;
  StageSeconds stages{};
  double total = 0;
};

void add(Result& result, const Dataset& dataset, int64_t epoch) {
  const StageListener listener(result.stages);
  const auto begin = Clock::now();
  for (const int64_t index : shuffled_order(dataset.size(), dataset.options().seed, epoch)) dataset.get(index, epoch);
  result.total += seconds_since(begin);
  result.samples_a_second += static_cast<double>(dataset.size());  // so far a count
}

// Epochs in the order of training. Cold: each with a data set of its own, so that nothing is left of the epoch before,
// as in a set that is larger than what is kept.
Result measure(const DataConfig& config, const DatasetOptions& options, int64_t epochs, bool cold) {
  Result result;
  auto dataset = std::make_unique<Dataset>(config.split("train"), config.names, options);
  if (!cold) {  // a first epoch decodes what is kept
    Result unused;
    add(unused, *dataset, 1000);
  }
  for (int64_t epoch = 0; epoch < epochs; ++epoch) {
    if (cold) dataset = std::make_unique<Dataset>(config.split("train"), config.names, options);
    add(result, *dataset, epoch);
  }
  result.samples_a_second /= result.total;
  return result;
}

void print(const char* name, const Result& r) {
  std::printf("  %-28s %7.1f img/s ", name, r.samples_a_second);
  double known = 0;
  const char* names[kSampleStages] = {"plan", "decode", "warp", "mix", "finish"};
  for (size_t i = 0; i < kSampleStages; ++i) {
    std::printf(" %s %.0f %%", names[i], 100 * r.stages[i] / r.total);
    known += r.stages[i];
  }
  std::printf(" rest %.0f %%\n", 100 * (r.total - known) / r.total);
}

void run(const std::string& yaml, int64_t epochs) {
  const DataConfig config = load_data_config(yaml);
  DatasetOptions options;
  options.augment = true;
  options.augmentation = augment_options(load_hyp(find_hyp("scratch-high")));
  std::printf("%s, %lld epochs at %lld px, one thread\n", yaml.c_str(), static_cast<long long>(epochs),
              static_cast<long long>(options.image_size));
  print("cold", measure(config, options, epochs, true));
  options.recent_budget_bytes = 0;
  print("cold, each tile by itself", measure(config, options, epochs, true));
  options.keep_pictures = PictureKeeping::Memory;
  print("decoded pictures in memory", measure(config, options, epochs, false));
  options.keep_pictures = PictureKeeping::None;
  options.through_canvas = true;
  print("through a canvas, cold", measure(config, options, std::max<int64_t>(epochs / 3, 1), true));
  options = {};
  print("read and resize, no mosaic", measure(config, options, std::max<int64_t>(epochs / 3, 1), true));
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> sets;
  int64_t epochs = 3;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--epochs" && i + 1 < argc) {
      epochs = std::max<int64_t>(std::atoll(argv[++i]), 1);
    } else {
      sets.emplace_back(argv[i]);
    }
  }
  LogOptions log;
  log.level = LogLevel::Warn;
  configure_log(log);
  try {
    const std::filesystem::path made = std::filesystem::temp_directory_path() / "yolo9-bench-shapes";
    ShapesOptions shapes;
    shapes.train = 128;
    shapes.val = 1;
    shapes.width = 640;
    shapes.height = 480;
    make_shapes(made.string(), shapes);
    run((made / "data.yaml").string(), epochs);
    std::filesystem::remove_all(made);
    for (const std::string& set : sets) run(set, epochs);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
