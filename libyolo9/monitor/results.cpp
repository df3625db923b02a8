#include <yolo9/monitor/results.h>

#include <cstdio>
#include <cstdlib>

namespace yolo9 {

namespace {

constexpr int kColumns = 14;
constexpr std::array<const char*, kColumns> kNames = {
    "epoch",        "train/box_loss",  "train/cls_loss",       "train/dfl_loss", "metrics/precision",
    "metrics/recall", "metrics/mAP_0.5", "metrics/mAP_0.5:0.95", "val/box_loss",   "val/cls_loss",
    "val/dfl_loss", "x/lr0",           "x/lr1",                "x/lr2"};

std::string header() {
  std::string line;
  char cell[64];
  for (const char* name : kNames) {
    std::snprintf(cell, sizeof cell, "%20s", name);
    line += (line.empty() ? "" : ",") + std::string(cell);
  }
  return line;
}

// The row's doubles in column order, without the epoch.
std::array<double*, kColumns - 1> fields(ResultsRow& row) {
  return {&row.train_loss[0], &row.train_loss[1], &row.train_loss[2], &row.precision,        &row.recall,
          &row.map50,         &row.map5095,       &row.val_loss[0],   &row.val_loss[1],      &row.val_loss[2],
          &row.learning_rate[0], &row.learning_rate[1], &row.learning_rate[2]};
}

}  // namespace

ResultsCsv::ResultsCsv(const std::string& path, int64_t next_epoch)
    : file_(path, header(), [next_epoch](const std::vector<std::string>& cells) {
        return std::atoll(cells[0].c_str()) < next_epoch;
      }) {}

void ResultsCsv::append(const ResultsRow& row) {
  ResultsRow copy = row;
  char cell[64];
  std::snprintf(cell, sizeof cell, "%20lld", static_cast<long long>(row.epoch));
  std::string line = cell;
  for (const double* value : fields(copy)) {
    std::snprintf(cell, sizeof cell, ",%20.5g", *value);
    line += cell;
  }
  file_.append(line);
}

std::vector<ResultsRow> read_results(const std::string& path) {
  std::vector<ResultsRow> rows;
  const auto table = read_csv(path);
  for (size_t i = 1; i < table.size(); ++i) {
    if (table[i].size() != kColumns) continue;
    ResultsRow row;
    row.epoch = std::atoll(table[i][0].c_str());
    size_t column = 1;
    for (double* value : fields(row)) *value = std::strtod(table[i][column++].c_str(), nullptr);
    rows.push_back(row);
  }
  return rows;
}

}  // namespace yolo9
