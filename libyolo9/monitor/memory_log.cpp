#include <yolo9/monitor/memory_log.h>

#include <array>
#include <cstdlib>

namespace yolo9 {

namespace {

constexpr size_t kNumbers = 14;
constexpr const char* kHeader =
    "step,epoch,image_size,boxes,micro_batch,accumulation,rung,allocated_bytes,reserved_bytes,peak_bytes,"
    "predicted_bytes,budget_bytes,retries,ooms,decision";

std::array<int64_t*, kNumbers> fields(MemoryRow& row) {
  return {&row.step,           &row.epoch,          &row.image_size, &row.boxes,           &row.micro_batch,
          &row.accumulation,   &row.rung,           &row.allocated_bytes, &row.reserved_bytes, &row.peak_bytes,
          &row.predicted_bytes, &row.budget_bytes,  &row.retries,    &row.ooms};
}

}  // namespace

MemoryLog::MemoryLog(const std::string& path, int64_t next_step)
    : file_(path, kHeader, [next_step](const std::vector<std::string>& cells) {
        return std::atoll(cells[0].c_str()) < next_step;
      }) {}

void MemoryLog::append(const MemoryRow& row) {
  MemoryRow copy = row;
  std::string line;
  for (const int64_t* value : fields(copy)) line += std::to_string(*value) + ",";
  for (char& c : copy.decision) c = c == ',' || c == '\n' || c == '\r' ? ' ' : c;
  // An empty last cell would make the row look one column short.
  file_.append(line + (copy.decision.empty() ? "-" : copy.decision));
}

std::vector<MemoryRow> read_memory_log(const std::string& path) {
  std::vector<MemoryRow> rows;
  const auto table = read_csv(path);
  for (size_t i = 1; i < table.size(); ++i) {
    if (table[i].size() != kNumbers + 1) continue;
    MemoryRow row;
    size_t column = 0;
    for (int64_t* value : fields(row)) *value = std::atoll(table[i][column++].c_str());
    row.decision = table[i].back();
    rows.push_back(row);
  }
  return rows;
}

}  // namespace yolo9
