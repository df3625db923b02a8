// memory.csv: one row an optimizer step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <yolo9/monitor/csv_file.h>

namespace yolo9 {

struct MemoryRow {
  int64_t step = 0, epoch = 0, image_size = 0, boxes = 0, micro_batch = 0, accumulation = 0, rung = 0;
  int64_t allocated_bytes = 0, reserved_bytes = 0, peak_bytes = 0, predicted_bytes = 0, budget_bytes = 0;
  int64_t retries = 0, ooms = 0;
  std::string decision;  // one word or a short phrase; commas and line ends become blanks
};

class MemoryLog {
 public:
  // Rows of step `next_step` and later are dropped, as in ResultsCsv.
  explicit MemoryLog(const std::string& path, int64_t next_step = 0);
  void append(const MemoryRow& row);

 private:
  CsvFile file_;
};

std::vector<MemoryRow> read_memory_log(const std::string& path);

}  // namespace yolo9
