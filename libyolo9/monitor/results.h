// results.csv: one row an epoch, under the official trainer's column names.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <yolo9/monitor/csv_file.h>

namespace yolo9 {

struct ResultsRow {
  int64_t epoch = 0;                      // from 0
  std::array<double, 3> train_loss{};     // box, cls, dfl
  double precision = 0, recall = 0, map50 = 0, map5095 = 0;
  std::array<double, 3> val_loss{};
  std::array<double, 3> learning_rate{};  // of the three parameter groups
};

class ResultsCsv {
 public:
  // Rows of epoch `next_epoch` and later are dropped: 0 starts anew, a resumed run passes the epoch it goes on with.
  explicit ResultsCsv(const std::string& path, int64_t next_epoch = 0);
  void append(const ResultsRow& row);

 private:
  CsvFile file_;
};

// The rows of a results.csv; empty if there is no such file.
std::vector<ResultsRow> read_results(const std::string& path);

}  // namespace yolo9
