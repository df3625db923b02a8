// A table that grows by whole rows, so that a run that was killed leaves a file that can be read and continued.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace yolo9 {

class CsvFile {
 public:
  // A missing or empty file gets the header. In an existing one the rows for which `keep` says yes stay; other rows,
  // and a last line without its end, are removed. Throws Error(Usage) if the file cannot be written, or holds
  // another table.
  CsvFile(std::string path, std::string header, const std::function<bool(const std::vector<std::string>&)>& keep);

  // One write call a row.
  void append(const std::string& row);
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Cells without the blanks around them, header first. A last line without its end is left out.
// Empty if the file does not exist.
std::vector<std::vector<std::string>> read_csv(const std::string& path);

}  // namespace yolo9
