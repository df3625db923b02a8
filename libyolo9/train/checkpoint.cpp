#include <yolo9/train/checkpoint.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <unistd.h>

#include <ATen/core/Dict.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <yolo9/core/error.h>
#include <yolo9/core/safetensors.h>

namespace yolo9 {

namespace {

constexpr const char* kFormat = "yolo9-checkpoint";
constexpr int64_t kVersion = 1;

c10::IValue pack(const NamedTensors& tensors) {
  c10::Dict<std::string, torch::Tensor> out;
  // contiguous(): flat-buffer views would drag their whole buffer into the file.
  for (const auto& [name, tensor] : tensors) out.insert(name, tensor.detach().cpu().contiguous().clone());
  return out;
}

NamedTensors unpack(const c10::IValue& value) {
  NamedTensors out;
  for (const auto& item : value.toGenericDict()) out.emplace_back(item.key().toStringRef(), item.value().toTensor());
  return out;
}

c10::IValue pack(const std::vector<std::string>& texts) {
  c10::List<std::string> out;
  for (const auto& text : texts) out.push_back(text);
  return out;
}

c10::IValue pack(const std::vector<double>& values) {
  c10::List<double> out;
  for (const double value : values) out.push_back(value);
  return out;
}

[[noreturn]] void refuse(const std::string& path, const std::string& what, const std::string& remedy) {
  throw Error(ErrorKind::Weights, what, path, remedy);
}

void sync_path(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

void write_atomically(const std::string& path, const std::vector<char>& bytes) {
  const std::string temporary = path + ".tmp";
  {
    std::ofstream file(temporary, std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.flush();
    if (!file) {
      std::error_code ignored;
      std::filesystem::remove(temporary, ignored);
      refuse(path, "the checkpoint cannot be written", "check free space and permissions; the previous one is intact");
    }
  }
  sync_path(temporary);
  std::filesystem::rename(temporary, path);
  sync_path(std::filesystem::path(path).parent_path().string());
}

std::vector<char> read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file || !std::filesystem::is_regular_file(path))
    refuse(path, "the weights file cannot be opened", "check the path");
  std::vector<char> bytes(static_cast<size_t>(file.tellg()));
  file.seekg(0);
  if (!file.read(bytes.data(), static_cast<std::streamsize>(bytes.size())))
    refuse(path, "the weights file cannot be read", "check the disk");
  return bytes;
}

Checkpoint unpack_checkpoint(const std::string& path, const c10::impl::GenericDict& dict) {
  const auto get = [&](const char* key) { return dict.at(c10::IValue(std::string(key))); };
  const auto format = c10::IValue(std::string("format"));
  if (!dict.contains(format) || !dict.at(format).isString() || dict.at(format).toStringRef() != kFormat)
    refuse(path, "not a checkpoint of this program", "give one that yolo9-train wrote, or a safetensors file");
  if (get("version").toInt() > kVersion) refuse(path, "written by a newer version of this program", "update it");
  Checkpoint out;
  out.config_text = get("config").toStringRef();
  for (const auto& name : get("names").toListRef()) out.names.push_back(name.toStringRef());
  out.model = unpack(get("model"));
  out.ema = unpack(get("ema"));
  out.epoch = get("epoch").toInt();
  out.iteration = get("iteration").toInt();
  out.last_step_iteration = get("last_step_iteration").toInt();
  out.steps = get("steps").toInt();
  out.ema_updates = get("ema_updates").toInt();
  out.best_fitness = get("best_fitness").toDouble();
  out.best_epoch = get("best_epoch").toInt();
  out.optimizer = unpack(get("optimizer"));
  out.schedule = unpack(get("schedule"));
  for (const double value : get("class_maps").toDoubleVector()) out.class_maps.push_back(value);
  if (const auto scaler = c10::IValue(std::string("scaler")); dict.contains(scaler))
    for (const double value : dict.at(scaler).toDoubleVector()) out.scaler.push_back(value);
  out.options_text = get("options").toStringRef();
  out.hyp_text = get("hyp").toStringRef();
  out.data_fingerprint = get("data_fingerprint").toStringRef();
  return out;
}

bool ends_with(const std::string& text, const std::string& suffix) {
  return text.size() >= suffix.size() && text.compare(text.size() - suffix.size(), suffix.size(), suffix) == 0;
}

}  // namespace

void save_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  c10::impl::GenericDict dict(c10::StringType::get(), c10::AnyType::get());
  dict.insert("format", std::string(kFormat));
  dict.insert("version", kVersion);
  dict.insert("config", checkpoint.config_text);
  dict.insert("names", pack(checkpoint.names));
  dict.insert("model", pack(checkpoint.model));
  dict.insert("ema", pack(checkpoint.ema));
  dict.insert("epoch", checkpoint.epoch);
  dict.insert("iteration", checkpoint.iteration);
  dict.insert("last_step_iteration", checkpoint.last_step_iteration);
  dict.insert("steps", checkpoint.steps);
  dict.insert("ema_updates", checkpoint.ema_updates);
  dict.insert("best_fitness", checkpoint.best_fitness);
  dict.insert("best_epoch", checkpoint.best_epoch);
  dict.insert("optimizer", pack(checkpoint.optimizer));
  dict.insert("schedule", pack(checkpoint.schedule));
  dict.insert("class_maps", pack(checkpoint.class_maps));
  dict.insert("scaler", pack(checkpoint.scaler));
  dict.insert("options", checkpoint.options_text);
  dict.insert("hyp", checkpoint.hyp_text);
  dict.insert("data_fingerprint", checkpoint.data_fingerprint);
  write_atomically(path, torch::jit::pickle_save(dict));
}

Checkpoint load_checkpoint(const std::string& path) {
  const std::vector<char> bytes = read_all(path);
  if (bytes.empty()) refuse(path, "the weights file is empty", "get or write it again");
  try {
    const c10::IValue value = torch::jit::pickle_load(bytes);
    if (!value.isGenericDict())
      refuse(path, "not a checkpoint of this program", "give one that yolo9-train wrote, or a safetensors file");
    return unpack_checkpoint(path, value.toGenericDict());
  } catch (const c10::Error&) {
    refuse(path, "the weights file is damaged or of another program",
           "give a checkpoint that yolo9-train wrote, or a safetensors file");
  } catch (const std::out_of_range&) {
    refuse(path, "the checkpoint lacks an entry", "get or write it again");
  }
}

void strip_checkpoint(Checkpoint& checkpoint) {
  if (checkpoint.ema.empty()) checkpoint.ema = checkpoint.model;
  checkpoint.model.clear();
  checkpoint.optimizer.clear();
  checkpoint.schedule.clear();
  checkpoint.epoch = -1;
}

LoadedModel load_model(const std::string& path, torch::Device device, bool fuse) {
  if (ends_with(path, ".safetensors"))
    refuse(path, "a safetensors file does not say which model it belongs to",
           "give a checkpoint that yolo9-train wrote");
  const Checkpoint checkpoint = load_checkpoint(path);
  ModelOptions options;
  options.classes = static_cast<int64_t>(checkpoint.names.size());
  LoadedModel out{make_model(checkpoint.config_text, path, options), checkpoint.names};
  const LoadReport report = load_state_dict(*out.model, checkpoint.ema.empty() ? checkpoint.model : checkpoint.ema);
  if (!report.complete())
    refuse(path, "the weights do not match the model in the file: " + report.summary(), "get or write it again");
  out.model->to(device);
  out.model->eval();
  if (fuse) out.model->fuse();
  return out;
}

NamedTensors load_weights(const std::string& path) {
  NamedTensors tensors;
  if (ends_with(path, ".safetensors")) {
    tensors = read_safetensors(path);
  } else {
    Checkpoint checkpoint = load_checkpoint(path);
    tensors = checkpoint.ema.empty() ? std::move(checkpoint.model) : std::move(checkpoint.ema);
  }
  for (auto& [name, tensor] : tensors)
    if (tensor.is_floating_point()) tensor = tensor.to(torch::kFloat32);
  return tensors;
}

}  // namespace yolo9
