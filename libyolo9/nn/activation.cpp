#include <yolo9/nn/activation.h>

#include <cctype>
#include <cstdlib>
#include <stdexcept>

#include <yolo9/core/error.h>

namespace yolo9 {

namespace {

using Kind = Activation::Kind;

const std::vector<std::pair<std::string, Kind>> kKinds = {
    {"Identity", Kind::Identity}, {"SiLU", Kind::SiLU}, {"ReLU", Kind::ReLU},          {"LeakyReLU", Kind::LeakyReLU},
    {"GELU", Kind::GELU},         {"Mish", Kind::Mish}, {"Hardswish", Kind::Hardswish}};

[[noreturn]] void refuse(const std::string& text) {
  std::vector<std::string> names;
  std::string list;
  for (const auto& [name, kind] : kKinds) {
    names.push_back(name);
    list += (list.empty() ? "" : ", ") + name;
  }
  const std::string near = nearest_word(text, names);
  throw std::invalid_argument("unknown activation \"" + text + "\"; " +
                              (near.empty() ? "known are " + list : "did you mean \"" + near + "\"?"));
}

}  // namespace

Activation parse_activation(const std::string& text) {
  std::string name;
  for (const char c : text)
    if (!std::isspace(static_cast<unsigned char>(c))) name += c;
  for (const std::string prefix : {"torch.nn.", "nn."})
    if (name.rfind(prefix, 0) == 0) name = name.substr(prefix.size());
  std::string argument;
  const size_t open = name.find('(');
  if (open != std::string::npos) {
    if (name.back() != ')') refuse(text);
    argument = name.substr(open + 1, name.size() - open - 2);
    name = name.substr(0, open);
  }
  for (const auto& [known, kind] : kKinds) {
    if (known != name) continue;
    Activation activation{kind};
    if (argument == "inplace=True" || argument == "inplace=False") argument.clear();
    if (argument.empty()) return activation;
    if (argument.rfind("negative_slope=", 0) == 0) argument = argument.substr(15);
    char* end = nullptr;
    activation.slope = std::strtod(argument.c_str(), &end);
    const bool finite = activation.slope - activation.slope == 0.0;
    if (kind != Kind::LeakyReLU || *end != '\0' || !finite)
      throw std::invalid_argument("the activation \"" + text + "\" has an argument that " + known + " does not take");
    return activation;
  }
  refuse(text);
}

torch::Tensor activate(const Activation& activation, const torch::Tensor& x) {
  const bool in_place = !at::GradMode::is_enabled();
  torch::Tensor self = x;
  switch (activation.kind) {
    case Kind::Identity: return x;
    case Kind::SiLU: return in_place ? at::silu_(self) : at::silu(x);
    case Kind::ReLU: return in_place ? at::relu_(self) : at::relu(x);
    case Kind::LeakyReLU:
      return in_place ? at::leaky_relu_(self, activation.slope) : at::leaky_relu(x, activation.slope);
    case Kind::GELU: return at::gelu(x);
    case Kind::Hardswish: return in_place ? at::hardswish_(self) : at::hardswish(x);
    case Kind::Mish: return in_place ? at::mish_(self) : at::mish(x);
  }
  TORCH_CHECK(false, "[activate] unknown kind");
}

bool keeps_output_for_backward(const Activation& activation) { return activation.kind == Kind::ReLU; }

}  // namespace yolo9
