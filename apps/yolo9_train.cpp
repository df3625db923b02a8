// yolo9-train: trains a detector from yaml configurations.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <yolo9/yolo9.h>

#include "program.h"

namespace fs = std::filesystem;
using namespace yolo9;

namespace {

struct Flags {
  RunOptions options;
  std::string config;
  std::string resume;  // "" when the flag stands alone
  bool cosine = false, flat_cosine = false, fixed = false, dry_run = false;
  std::vector<std::string> ignored;
};

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw Error(ErrorKind::Usage, "the file cannot be opened", path, "check the path");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The plan stands in the yaml output as a comment, so that the whole can be read back with --config.
std::string comment_out(const std::string& lines) {
  std::stringstream text(lines);
  std::string out;
  for (std::string line; std::getline(text, line);) out += "# " + line + "\n";
  return out;
}

void add_flags(CLI::App& app, Flags& flags) {
  RunOptions& o = flags.options;
  app.add_option("--cfg", o.cfg, "model: a yaml file or a bundled name (yolov9-t, gelan-c, ...)");
  app.add_option("--weights", o.weights, "start from these weights (checkpoint or safetensors)");
  app.add_option("--data", o.data, "data set: data.yaml");
  app.add_option("--hyp", o.hyp, "hyper-parameters: a yaml file or a bundled name")->capture_default_str();
  app.add_option("--epochs", o.epochs, "epochs to train")->capture_default_str();
  app.add_option("--batch,--batch-size", o.batch, "images of one batch (-1: as many as fit)")->capture_default_str();
  app.add_option("--img,--imgsz,--img-size", o.image_size, "picture size in pixels, rounded up to a multiple of 32")
      ->capture_default_str();
  app.add_option("--nominal-batch", o.nominal_batch, "effective batch that accumulation aims at")
      ->capture_default_str();
  app.add_option("--accumulate", o.accumulate, "batches per optimizer step (0: from the nominal batch)")
      ->capture_default_str();
  app.add_option("--device", o.device, "cpu, or a CUDA device number")->capture_default_str();
  app.add_option("--seed", o.seed, "seed of everything that is drawn")->capture_default_str();
  app.add_flag("--deterministic", o.deterministic, "refuse operations whose result may vary from run to run");
  app.add_flag("--rect", o.rect, "rectangular batches of pictures of like shape, not shuffled");
  app.add_flag("--single-cls", o.single_class, "treat all classes as one");
  app.add_flag("--image-weights", o.image_weights, "draw pictures of the worse classes more often");
  app.add_flag("--multi-scale", o.multi_scale, "vary the picture size by +-50 %");
  app.add_flag("--light", o.light, "no mosaic, copy-paste, mixup, rotation, translation");
  app.add_flag("--quad", o.quad, "one picture of twice the size, or one of four samples side by side, for every four");
  app.add_option("--cache", o.cache, "keep decoded pictures: ram, or disk (below the user's cache folder)")
      ->expected(0, 1)
      ->default_str("ram");
  app.add_option("--workers", o.workers, "loader threads (-1: as the cores suggest)")->capture_default_str();
  app.add_flag("--strict", o.strict, "end with an error at label rows and pictures that cannot be used");
  app.add_option("--min-items", o.min_items, "leave out training pictures with fewer labels")->capture_default_str();
  app.add_option("--close-mosaic", o.close_mosaic, "no mosaic in the last N epochs")->capture_default_str();
  app.add_option("--optimizer", o.optimizer, "SGD, Adam, AdamW or LION")->capture_default_str();
  auto* cosine = app.add_flag("--cos-lr", flags.cosine, "cosine learning rate");
  auto* flat = app.add_flag("--flat-cos-lr", flags.flat_cosine, "flat, then cosine learning rate")->excludes(cosine);
  app.add_flag("--fixed-lr", flags.fixed, "constant learning rate")->excludes(cosine)->excludes(flat);
  app.add_flag("--modern-schedule", o.modern_schedule,
               "learning rate of an epoch from that epoch, not from the one before");
  app.add_option("--label-smoothing", o.label_smoothing,
                 "smoothing of the class targets (overrides the hyper-parameters)");
  app.add_option("--patience", o.patience, "stop after this many epochs without improvement (0: never)")
      ->capture_default_str();
  app.add_option("--freeze", o.freeze, "layers to freeze: N freezes 0..N-1, several numbers freeze those layers");
  app.add_option("--memory", o.memory, "memory budget: 8GiB, 85% or bytes (default: what is free, less a tenth)");
  app.add_option("--headroom", o.headroom, "share of the budget that plans leave free")->capture_default_str();
  app.add_option("--governor", o.governor, "on; watch: measure only, an out-of-memory ends the run; off")
      ->capture_default_str();
  app.add_option("--allow", o.allow, "what the governor may change as a last resort: lighter-augment,smaller-image");
  app.add_option("--checkpointing", o.checkpointing,
                 "recompute instead of keep: level 0 to 3, or auto (as deep as the memory asks for)")
      ->capture_default_str();
  app.add_option("--amp", o.amp, "mixed precision: off, fp16 (CUDA), bf16, or auto (when nothing else helps)")
      ->capture_default_str();
  app.add_option("--split", o.split, "exact: slices of a batch add up to the whole; official: each has its own sums")
      ->capture_default_str();
  app.add_option("--project", o.project, "folder of runs")->capture_default_str();
  app.add_option("--name", o.name, "this run's folder in it; a number is added if it exists")->capture_default_str();
  app.add_flag("--exist-ok", o.exist_ok, "write into an existing run folder");
  app.add_flag("--nosave", o.no_save, "keep only the last checkpoint");
  app.add_flag("--noval", o.no_val, "validate only after the last epoch");
  app.add_flag("--noplots", o.no_plots, "draw no pictures");
  app.add_option("--save-period", o.save_period, "also keep a checkpoint every N epochs (below 1: no)")
      ->capture_default_str();
  app.add_option("--resume", flags.resume, "go on with the newest run, or with this checkpoint")->expected(0, 1);
  app.add_option("--config", flags.config, "yaml with any of these flags as keys; flags win");
  app.add_flag("--dry-run", flags.dry_run, "print the resolved run and the memory plan, and stop");
  // Flags of the official trainer that have nothing to do here.
  app.add_flag_callback(
      "--noautoanchor", [&] { flags.ignored.push_back("--noautoanchor: the model has no anchors"); },
      "accepted, does nothing (the model has no anchors)");
  for (const auto& [flag, why] : std::vector<std::pair<std::string, std::string>>{
           {"--evolve", "hyper-parameter evolution is not part of this program"},
           {"--bucket", "there is no cloud storage here"},
           {"--entity", "there is no Weights & Biases logging here"},
           {"--upload_dataset", "there is no Weights & Biases logging here"},
           {"--bbox_interval", "there is no Weights & Biases logging here"},
           {"--artifact_alias", "there is no Weights & Biases logging here"}}) {
    app.add_option_function<std::string>(
           flag,
           [flag = flag, why = why](const std::string&) {
             throw Error(ErrorKind::Usage, flag + " is not available", "", why + "; leave it out");
           },
           "refused: " + why)
        ->expected(0, 1)
        ->group("");
  }
}

// The newest last.pt below the project folder.
std::string newest_checkpoint(const std::string& project) {
  fs::path best;
  if (fs::is_directory(project)) {
    for (const auto& entry : fs::recursive_directory_iterator(project)) {
      if (entry.path().filename() != "last.pt") continue;
      if (best.empty() || entry.last_write_time() > fs::last_write_time(best)) best = entry.path();
    }
  }
  if (best.empty())
    throw Error(ErrorKind::Weights, "there is no run to resume", project,
                "give --resume a checkpoint, or start a new run");
  return best.string();
}

RunOptions resumed_options(const std::string& checkpoint_path) {
  const Checkpoint checkpoint = load_checkpoint(checkpoint_path);
  if (checkpoint.epoch < 0)
    throw Error(ErrorKind::Weights, "this run is finished, there is nothing to resume", checkpoint_path,
                "start a new run from it with --weights");
  RunOptions options = options_from_yaml(checkpoint.options_text, checkpoint_path);
  options.resume = checkpoint_path;
  return options;
}

ScheduleShape chosen_shape(const Flags& flags) {
  if (flags.cosine) return ScheduleShape::Cosine;
  if (flags.flat_cosine) return ScheduleShape::FlatCosine;
  return flags.fixed ? ScheduleShape::Fixed : flags.options.schedule;
}

int train(const CLI::App& app, Flags& flags) {
  for (const auto& line : flags.ignored) log_info(line);
  RunOptions options = flags.options;
  options.schedule = chosen_shape(flags);
  if (app.count("--cache") && options.cache.empty()) options.cache = "ram";
  Hyp hyp;
  std::string run_dir;
  if (app.count("--resume")) {
    options = resumed_options(flags.resume.empty() ? newest_checkpoint(options.project) : flags.resume);
    run_dir = fs::path(options.resume).parent_path().parent_path().string();
    hyp = load_hyp(run_dir + "/hyp.yaml");
    log_info("resuming " + options.resume);
  } else {
    check_options(options);
    hyp = load_hyp(find_hyp(options.hyp));
  }
  if (flags.dry_run) {
    const RunParts parts = set_up_run(options, hyp, nullptr,
                                      [bar = std::make_shared<ScanBar>(std::cerr, is_terminal(2))](
                                          int64_t done, int64_t total) { bar->update(done, total); });
    options.batch = parts.batch;
    std::cout << options_to_yaml(options) << "# hyper-parameters\n" << hyp_to_yaml(hyp);
    if (parts.governor->options().mode != GovernorMode::Off)
      std::cout << "# memory\n" << comment_out(describe(parts.memory_plan));
    return kExitDone;
  }
  if (run_dir.empty()) {
    // Data and model are looked at first: a mistake in them leaves no empty run folder behind.
    load_data_config(options.data);
    run_dir = make_run_folder(options.project, options.name, options.exist_ok);
    std::ofstream(run_dir + "/opt.yaml") << options_to_yaml(options);
    std::ofstream(run_dir + "/hyp.yaml") << hyp_to_yaml(hyp);
  }
  at::globalContext().setDeterministicAlgorithms(options.deterministic, /*warn_only=*/false);
  Trainer trainer(options, hyp, run_dir, default_callbacks(run_dir, options));
  // The first signal ends the run after its step; the handler is then gone, and a second one ends it at once.
  for (const int signal : {SIGINT, SIGTERM}) {
    struct sigaction action {};
    action.sa_handler = [](int) { Trainer::request_stop(); };
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(signal, &action, nullptr);
  }
  const TrainResult result = trainer.run();
  if (result.interrupted) {
    const bool kept = fs::exists(result.last_path);
    log_info(kept ? "stopped; go on with --resume " + result.last_path
                  : "stopped before the first epoch ended: nothing was saved");
    return kExitStopped;
  }
  std::cout << "best mAP50-95 " << result.validation.map << ", mAP50 " << result.validation.map50 << " at epoch "
            << result.best_epoch + 1 << "; results in " << result.run_dir << std::endl;
  return kExitDone;
}

}  // namespace

int main(int argc, char** argv) {
  install_host_meter();
  CLI::App app{"Trains a YOLOv9 detector."};
  Flags flags;
  add_flags(app, flags);
  // Values of a --config file become the defaults that flags then override.
  for (int i = 1; i + 1 < argc; ++i)
    if (std::string(argv[i]) == "--config") flags.config = argv[i + 1];
  return run_guarded([&] {
    if (!flags.config.empty()) flags.options = options_from_yaml(read_text(flags.config), flags.config);
    return run_program(app, argc, argv, [&] { return train(app, flags); });
  });
}
