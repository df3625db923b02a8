#include <yolo9/train/run_options.h>

#include <functional>
#include <sstream>

#include <yolo9/core/error.h>
#include <yolo9/core/yaml.h>
#include <yolo9/memory/host_source.h>
#include <yolo9/nn/graph.h>
#include <yolo9/train/hyp.h>
#include <yolo9/train/run_setup.h>

namespace yolo9 {

namespace {

const char* schedule_name(ScheduleShape shape) {
  switch (shape) {
    case ScheduleShape::Linear: return "linear";
    case ScheduleShape::Cosine: return "cosine";
    case ScheduleShape::FlatCosine: return "flat-cosine";
    case ScheduleShape::Fixed: break;
  }
  return "fixed";
}

// One option: its key, how it is written, how it is read.
struct Field {
  const char* key;
  std::function<std::string(const RunOptions&)> write;
  std::function<void(RunOptions&, const Yaml&)> read;
};

Field text(const char* key, std::string RunOptions::*member) {
  return {key, [=](const RunOptions& o) { return yaml_quote(o.*member); },
          [=](RunOptions& o, const Yaml& value) { o.*member = value.is_null() ? "" : value.as_string(); }};
}
Field whole(const char* key, int64_t RunOptions::*member) {
  return {key, [=](const RunOptions& o) { return std::to_string(o.*member); },
          [=](RunOptions& o, const Yaml& value) { o.*member = value.as_int(); }};
}
Field flag(const char* key, bool RunOptions::*member) {
  return {key, [=](const RunOptions& o) { return std::string(o.*member ? "true" : "false"); },
          [=](RunOptions& o, const Yaml& value) { o.*member = value.as_bool(); }};
}

void read_seed(RunOptions& options, const Yaml& value) {
  if (value.as_int() < 0) value.fail("seed is below zero");
  options.seed = static_cast<uint64_t>(value.as_int());
}

void read_schedule(RunOptions& options, const Yaml& value) {
  for (const auto shape :
       {ScheduleShape::Linear, ScheduleShape::Cosine, ScheduleShape::FlatCosine, ScheduleShape::Fixed}) {
    if (value.as_string() != schedule_name(shape)) continue;
    options.schedule = shape;
    return;
  }
  value.fail("expected linear, cosine, flat-cosine or fixed, found " + value.text());
}

void read_freeze(RunOptions& options, const Yaml& value) {
  options.freeze.clear();
  for (const auto& item : value.items()) options.freeze.push_back(item.as_int());
}

std::string write_freeze(const RunOptions& options) {
  std::string out = "[";
  for (size_t i = 0; i < options.freeze.size(); ++i) out += (i ? ", " : "") + std::to_string(options.freeze[i]);
  return out + "]";
}

const std::vector<Field>& fields() {
  using O = RunOptions;
  static const std::vector<Field> all{
      text("cfg", &O::cfg),
      text("weights", &O::weights),
      text("data", &O::data),
      text("hyp", &O::hyp),
      whole("epochs", &O::epochs),
      whole("batch", &O::batch),
      whole("img", &O::image_size),
      whole("nominal-batch", &O::nominal_batch),
      whole("accumulate", &O::accumulate),
      text("device", &O::device),
      {"seed", [](const O& o) { return std::to_string(o.seed); }, read_seed},
      flag("deterministic", &O::deterministic),
      flag("rect", &O::rect),
      flag("single-cls", &O::single_class),
      flag("image-weights", &O::image_weights),
      flag("multi-scale", &O::multi_scale),
      flag("light", &O::light),
      flag("quad", &O::quad),
      text("cache", &O::cache),
      whole("workers", &O::workers),
      flag("strict", &O::strict),
      whole("min-items", &O::min_items),
      whole("close-mosaic", &O::close_mosaic),
      text("optimizer", &O::optimizer),
      {"schedule", [](const O& o) { return std::string(schedule_name(o.schedule)); }, read_schedule},
      flag("modern-schedule", &O::modern_schedule),
      {"label-smoothing", [](const O& o) { return std::to_string(o.label_smoothing); },
       [](O& o, const Yaml& value) { o.label_smoothing = value.as_double(); }},
      whole("patience", &O::patience),
      {"freeze", write_freeze, read_freeze},
      text("memory", &O::memory),
      text("governor", &O::governor),
      text("split", &O::split),
      text("headroom", &O::headroom),
      text("allow", &O::allow),
      text("amp", &O::amp),
      text("checkpointing", &O::checkpointing),
      text("project", &O::project),
      text("name", &O::name),
      flag("exist-ok", &O::exist_ok),
      flag("nosave", &O::no_save),
      flag("noval", &O::no_val),
      flag("noplots", &O::no_plots),
      whole("save-period", &O::save_period)};
  return all;
}

void require(bool condition, const std::string& what, const std::string& remedy) {
  if (!condition) throw Error(ErrorKind::Usage, what, "", remedy);
}

}  // namespace

std::pair<int, int> parse_checkpointing(const std::string& text) {
  if (text == "auto") return {0, kMaxCheckpointing};
  if (text.size() == 1 && text[0] >= '0' && text[0] <= '0' + kMaxCheckpointing) return {text[0] - '0', text[0] - '0'};
  throw Error(ErrorKind::Usage, "unknown checkpointing level \"" + text + "\"", "", "use 0, 1, 2, 3 or auto");
}

Allowances parse_allow(const std::string& text) {
  Allowances out;
  std::stringstream list(text);
  for (std::string word; std::getline(list, word, ',');) {
    if (word == "lighter-augment")
      out.lighter_augment = true;
    else if (word == "smaller-image")
      out.smaller_image = true;
    else
      throw Error(ErrorKind::Usage, "--allow does not know \"" + word + "\"", "",
                  "use lighter-augment, smaller-image or both, separated by a comma");
  }
  return out;
}

void check_options(const RunOptions& options) {
  require(!options.data.empty(), "no data set was given", "add --data data.yaml");
  require(!options.cfg.empty() || !options.weights.empty(), "no model was given",
          "add --cfg yolov9-t or --weights file.pt");
  require(options.epochs >= 1, "--epochs is " + std::to_string(options.epochs), "give 1 or more");
  require(options.batch >= 1 || options.batch == -1, "--batch is " + std::to_string(options.batch),
          "give 1 or more images, or -1 for as many as fit");
  require(options.batch >= 1 || parse_governor_mode(options.governor) == GovernorMode::On,
          "--batch -1 needs the memory governor, which is " + options.governor, "use --governor on, or give a batch");
  require(options.image_size >= 32 && options.image_size <= 16384, "--img is " + std::to_string(options.image_size),
          "give 32 to 16384 pixels");
  require(options.nominal_batch >= 1, "--nominal-batch is " + std::to_string(options.nominal_batch),
          "give 1 or more images");
  require(options.accumulate >= 0, "--accumulate is " + std::to_string(options.accumulate),
          "give 0 (from the nominal batch) or more");
  require(options.workers >= -1, "--workers is " + std::to_string(options.workers),
          "give 0 or more, or -1 for as many as the cores suggest");
  require(options.patience >= 0, "--patience is " + std::to_string(options.patience),
          "give 0 (never stop early) or more");
  require(options.min_items >= 0, "--min-items is " + std::to_string(options.min_items), "give 0 or more");
  require(options.close_mosaic >= 0, "--close-mosaic is " + std::to_string(options.close_mosaic),
          "give 0 (never) or more epochs");
  require(options.label_smoothing < 1.0, "--label-smoothing is 1 or more", "give 0 to 0.999");
  require(options.cache.empty() || options.cache == "ram" || options.cache == "disk",
          "--cache " + options.cache + " is not known", "use --cache ram or --cache disk, or leave it out");
  require(!options.quad || !options.rect, "--quad and --rect exclude each other", "leave one out");
  require(!options.quad || options.batch == -1 || options.batch % 4 == 0,
          "--quad puts groups of four pictures together, and --batch is " + std::to_string(options.batch),
          "give a multiple of 4");
  require(!(options.rect && options.image_weights),
          "--rect and --image-weights exclude each other: rectangular batches have a fixed order", "leave one out");
  // Names are looked up now, so that a slip shows before the data set is read.
  if (!options.cfg.empty()) find_config(options.cfg);
  find_hyp(options.hyp);
  parse_optimizer(options.optimizer);
  parse_governor_mode(options.governor);
  parse_split_mode(options.split);
  if (!options.memory.empty()) parse_bytes(options.memory, host_total_bytes());
  parse_headroom(options.headroom);
  parse_allow(options.allow);
  parse_checkpointing(options.checkpointing);
  amp_type(parse_amp(options.amp), parse_device(options.device));
}

std::string options_to_yaml(const RunOptions& options) {
  std::string out;
  for (const Field& field : fields()) out += std::string(field.key) + ": " + field.write(options) + "\n";
  return out;
}

RunOptions options_from_yaml(const std::string& text, const std::string& name, RunOptions base) {
  const Yaml yaml = Yaml::parse(text, name);
  if (!yaml.is_map()) yaml.fail("expected a map of options");
  std::vector<std::string> known;
  for (const Field& field : fields()) {
    known.emplace_back(field.key);
    if (yaml.has(field.key)) field.read(base, yaml.at(field.key));
  }
  yaml.refuse_unread(known);
  return base;
}

}  // namespace yolo9
