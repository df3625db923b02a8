// The one exception type for mistakes that a user can mend. A broken invariant of the code itself is a
// TORCH_CHECK instead.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace yolo9 {

// The value is the program's exit status.
enum class ErrorKind {
  Usage = 2,    // command line or configuration
  Data = 3,     // data set, images, labels
  Memory = 4,   // cannot fit; the message says how much would be needed
  Weights = 5,  // checkpoint or weights
  Device = 6,   // device or distributed set-up
};

class Error : public std::runtime_error {
 public:
  // what:   what is wrong, one line without a full stop: "class index 7 is out of range 0..2"
  // place:  where, "file:line" or a path; may be empty
  // remedy: what to do about it; may be empty
  // what() reads "place: what; remedy".
  Error(ErrorKind kind, const std::string& what, const std::string& place = "", const std::string& remedy = "");

  ErrorKind kind() const noexcept { return kind_; }
  int exit_status() const noexcept { return static_cast<int>(kind_); }

 private:
  ErrorKind kind_;
};

// The nearest of `known` to `word` by edit distance, or "" when none is close enough to be a likely slip.
// For messages such as: unknown key "lr_0", did you mean "lr0"?
std::string nearest_word(const std::string& word, const std::vector<std::string>& known);

}  // namespace yolo9
