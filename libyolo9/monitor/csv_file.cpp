#include <yolo9/monitor/csv_file.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <unistd.h>

#include <yolo9/core/error.h>

namespace yolo9 {

namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& reason) {
  throw Error(ErrorKind::Usage, "cannot write the table: " + reason, path, "check space and permissions");
}

std::vector<std::string> complete_lines(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  std::vector<std::string> lines;
  std::string line;
  while (std::getline(text, line)) {
    if (text.eof()) break;  // no end of line: the writer was killed in it
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> cells;
  std::stringstream stream(line);
  std::string cell;
  while (std::getline(stream, cell, ',')) {
    const size_t first = cell.find_first_not_of(" \t\r"), last = cell.find_last_not_of(" \t\r");
    cells.push_back(first == std::string::npos ? "" : cell.substr(first, last - first + 1));
  }
  return cells;
}

}  // namespace

CsvFile::CsvFile(std::string path, std::string header,
                 const std::function<bool(const std::vector<std::string>&)>& keep)
    : path_(std::move(path)) {
  const auto lines = complete_lines(path_);
  if (!lines.empty() && split(lines[0]) != split(header)) refuse(path_, "it already holds another table");
  const std::string temporary = path_ + ".part";
  {
    std::ofstream file(temporary);
    file << header << "\n";
    for (size_t i = 1; i < lines.size(); ++i) {
      const auto cells = split(lines[i]);
      if (cells.size() == split(header).size() && keep(cells)) file << lines[i] << "\n";
    }
    file.close();
    if (!file) refuse(path_, std::strerror(errno));
  }
  std::error_code code;
  std::filesystem::rename(temporary, path_, code);
  if (code) refuse(path_, code.message());
}

void CsvFile::append(const std::string& row) {
  const int file = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) refuse(path_, std::strerror(errno));
  const std::string line = row + "\n";
  const ssize_t written = ::write(file, line.data(), line.size());
  const int problem = errno;
  ::close(file);
  if (written != static_cast<ssize_t>(line.size())) refuse(path_, written < 0 ? std::strerror(problem) : "disk full");
}

std::vector<std::vector<std::string>> read_csv(const std::string& path) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& line : complete_lines(path)) rows.push_back(split(line));
  return rows;
}

}  // namespace yolo9
