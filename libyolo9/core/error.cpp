#include <yolo9/core/error.h>

#include <algorithm>
#include <cctype>
#include <numeric>

namespace yolo9 {

namespace {

std::string compose(const std::string& what, const std::string& place, const std::string& remedy) {
  std::string line = place.empty() ? what : place + ": " + what;
  if (!remedy.empty()) line += "; " + remedy;
  return line;
}

size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      const size_t replaced = diagonal + (std::tolower(a[i - 1]) == std::tolower(b[j - 1]) ? 0 : 1);
      row[j] = std::min({above + 1, row[j - 1] + 1, replaced});
      diagonal = above;
    }
  }
  return row[b.size()];
}

}  // namespace

Error::Error(ErrorKind kind, const std::string& what, const std::string& place, const std::string& remedy)
    : std::runtime_error(compose(what, place, remedy)), kind_(kind) {}

std::string nearest_word(const std::string& word, const std::vector<std::string>& known) {
  std::string best;
  size_t best_distance = std::max<size_t>(2, word.size() / 3) + 1;
  for (const auto& candidate : known) {
    const size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace yolo9
