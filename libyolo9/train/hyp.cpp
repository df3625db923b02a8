#include <yolo9/train/hyp.h>

#include <array>
#include <cstdio>
#include <filesystem>

#include <yolo9/core/error.h>
#include <yolo9/core/log.h>
#include <yolo9/core/resources.h>
#include <yolo9/core/yaml.h>

namespace yolo9 {

namespace {

struct Key {
  const char* name;
  double Hyp::*field;
  double low, high;
};

constexpr double kAny = 1e9;
constexpr std::array<Key, 28> kKeys{{
    {"lr0", &Hyp::lr0, 0, 10},
    {"lrf", &Hyp::lrf, 0, 10},
    {"momentum", &Hyp::momentum, 0, 1},
    {"weight_decay", &Hyp::weight_decay, 0, 1},
    {"warmup_epochs", &Hyp::warmup_epochs, 0, kAny},
    {"warmup_momentum", &Hyp::warmup_momentum, 0, 1},
    {"warmup_bias_lr", &Hyp::warmup_bias_lr, 0, 10},
    {"box", &Hyp::box, 0, kAny},
    {"cls", &Hyp::cls, 0, kAny},
    {"dfl", &Hyp::dfl, 0, kAny},
    {"cls_pw", &Hyp::cls_pw, 0, kAny},
    {"fl_gamma", &Hyp::fl_gamma, 0, 10},
    {"label_smoothing", &Hyp::label_smoothing, 0, 0.999},
    {"hsv_h", &Hyp::hsv_h, 0, 1},
    {"hsv_s", &Hyp::hsv_s, 0, 1},
    {"hsv_v", &Hyp::hsv_v, 0, 1},
    {"degrees", &Hyp::degrees, 0, 180},
    {"translate", &Hyp::translate, 0, 1},
    {"scale", &Hyp::scale, 0, 0.99},
    {"shear", &Hyp::shear, 0, 89},
    {"perspective", &Hyp::perspective, 0, 0.001},
    {"flipud", &Hyp::flipud, 0, 1},
    {"fliplr", &Hyp::fliplr, 0, 1},
    {"mosaic", &Hyp::mosaic, 0, 1},
    {"mixup", &Hyp::mixup, 0, 1},
    {"copy_paste", &Hyp::copy_paste, 0, 1},
    {"mosaic9", &Hyp::mosaic9, 0, 1},
    {"filters", &Hyp::filters, 0, 1},
}};
constexpr std::array<const char*, 4> kIgnored{"obj", "obj_pw", "iou_t", "anchor_t"};

bool is_own(std::string_view key) { return key == "mosaic9" || key == "filters"; }

std::string format(double value) {
  char out[32];
  std::snprintf(out, sizeof out, "%.17g", value);
  // The shortest text that reads back to the same double.
  for (int digits = 1; digits < 17; ++digits) {
    char shorter[32];
    std::snprintf(shorter, sizeof shorter, "%.*g", digits, value);
    if (std::strtod(shorter, nullptr) == value) return shorter;
  }
  return out;
}

}  // namespace

Hyp load_hyp(const std::string& path) {
  const Yaml yaml = Yaml::load(path);
  if (!yaml.is_map()) yaml.fail("expected a map of hyper-parameters");
  Hyp hyp;
  std::string missing;
  std::vector<std::string> known(kIgnored.begin(), kIgnored.end());
  for (const Key& key : kKeys) {
    known.emplace_back(key.name);
    if (!yaml.has(key.name)) {
      if (is_own(key.name)) continue;  // official files do not have it, and that is nothing to speak of
      missing += (missing.empty() ? "" : ", ") + std::string(key.name) + "=" + format(hyp.*key.field);
      continue;
    }
    const Yaml value = yaml.at(key.name);
    const double number = value.as_double();
    if (number < key.low || number > key.high)
      value.fail(std::string(key.name) + " is " + value.text() + ", outside " + format(key.low) + ".." +
                 format(key.high));
    hyp.*key.field = number;
  }
  for (const char* name : kIgnored)
    if (yaml.has(name)) {
      yaml.at(name);
      log_info(path + ": " + name + " does nothing here (the model is anchor-free)");
    }
  yaml.refuse_unread(known);
  if (!missing.empty()) log_info(path + ": not given, defaults taken: " + missing);
  return hyp;
}

std::string find_hyp(const std::string& name_or_path) {
  namespace fs = std::filesystem;
  std::vector<std::string> tried{name_or_path, name_or_path + ".yaml"};
  if (name_or_path.find('/') == std::string::npos) {
    for (const auto& folder : resource_folders("hyp")) {
      tried.push_back(folder + "/" + name_or_path);
      tried.push_back(folder + "/" + name_or_path + ".yaml");
    }
  }
  for (const auto& candidate : tried)
    if (fs::is_regular_file(candidate)) return candidate;
  throw Error(ErrorKind::Usage, "no such hyper-parameter file", name_or_path,
              "give a yaml file, or a name such as scratch-high");
}

std::string hyp_to_yaml(const Hyp& hyp) {
  std::string text;
  for (const Key& key : kKeys) text += std::string(key.name) + ": " + format(hyp.*key.field) + "\n";
  return text;
}

}  // namespace yolo9
