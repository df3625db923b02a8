#include <yolo9/nn/arguments.h>

namespace yolo9 {

Arguments::Arguments(Yaml args, std::string type, std::string signature, size_t at_least, size_t at_most)
    : args_(std::move(args)), type_(std::move(type)) {
  if (!args_.is_list()) args_.fail("the arguments of " + type_ + " must be a list, found " + args_.text());
  items_ = args_.items();
  if (items_.size() >= at_least && items_.size() <= at_most) return;
  const std::string count = at_least == at_most ? std::to_string(at_least)
                                                : std::to_string(at_least) + " to " + std::to_string(at_most);
  args_.fail(type_ + " takes " + count + (at_most == 1 ? " argument" : " arguments") +
             (signature.empty() ? "" : " (" + signature + ")") + ", found " + std::to_string(items_.size()));
}

bool Arguments::has(size_t position) const {
  return position < items_.size() && !items_[position].is_null() &&
         !(items_[position].is_scalar() && items_[position].text() == "None");
}

void Arguments::refuse(size_t position, const std::string& what, const std::string& expected) const {
  const std::string found = position < items_.size() ? items_[position].text() : "nothing";
  items_.at(position).fail("argument " + std::to_string(position + 1) + " of " + type_ + " (" + what + ") must be " +
                           expected + ", found " + found);
}

int64_t Arguments::integer(size_t position, const std::string& what, int64_t low, int64_t high) const {
  const std::string expected = "a whole number from " + std::to_string(low) + " to " + std::to_string(high);
  if (!items_.at(position).is_int()) refuse(position, what, expected);
  const int64_t value = items_[position].as_int();
  if (value < low || value > high) refuse(position, what, expected);
  return value;
}

int64_t Arguments::integer_or(size_t position, const std::string& what, int64_t low, int64_t high,
                              int64_t absent) const {
  return has(position) ? integer(position, what, low, high) : absent;
}

double Arguments::number_or(size_t position, const std::string& what, double low, double high, double absent) const {
  if (!has(position)) return absent;
  const bool fits = items_[position].is_number() && items_[position].as_double() >= low &&
                    items_[position].as_double() <= high;
  if (!fits) refuse(position, what, "a number from " + std::to_string(low) + " to " + std::to_string(high));
  return items_[position].as_double();
}

bool Arguments::boolean_or(size_t position, const std::string& what, bool absent) const {
  if (!has(position)) return absent;
  const std::string text = items_[position].is_scalar() ? items_[position].text() : "";
  if (text != "True" && text != "true" && text != "False" && text != "false") refuse(position, what, "True or False");
  return items_[position].as_bool();
}

std::vector<int64_t> Arguments::integers(size_t position, const std::string& what, int64_t low, int64_t high) const {
  const std::string expected =
      "a list of whole numbers from " + std::to_string(low) + " to " + std::to_string(high);
  if (!items_.at(position).is_list() || items_[position].size() == 0) refuse(position, what, expected);
  std::vector<int64_t> values;
  for (const auto& value : items_[position].items()) {
    if (!value.is_int() || value.as_int() < low || value.as_int() > high) refuse(position, what, expected);
    values.push_back(value.as_int());
  }
  return values;
}

std::string json_text(const Yaml& value) {
  if (value.is_list()) {
    std::string text;
    for (const auto& item : value.items()) text += (text.empty() ? "" : ", ") + json_text(item);
    return "[" + text + "]";
  }
  if (value.is_null()) return "null";
  if (value.is_number()) return value.text();
  if (value.text() == "True" || value.text() == "true") return "true";
  if (value.text() == "False" || value.text() == "false") return "false";
  return yaml_quote(value.text());
}

std::string json_text(const std::vector<int64_t>& values) {
  std::string text;
  for (const int64_t value : values) text += (text.empty() ? "" : ", ") + std::to_string(value);
  return "[" + text + "]";
}

}  // namespace yolo9
