#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "support/fixture.h"
#include <yolo9/core/error.h>
#include <yolo9/monitor/memory_log.h>
#include <yolo9/monitor/progress.h>
#include <yolo9/monitor/results.h>
#include <yolo9/monitor/run_folder.h>

namespace fs = std::filesystem;
using Catch::Contains;

namespace {

std::string read_text(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

yolo9::ResultsRow row_of(int64_t epoch) {
  yolo9::ResultsRow row;
  const auto e = static_cast<double>(epoch);
  row.epoch = epoch;
  row.train_loss = {3 - e, 2 - e, 1.5};
  row.precision = 0.5 + e / 100;
  row.recall = 0.25;
  row.map50 = 0.125;
  row.map5095 = 1.0 / 3;
  row.val_loss = {0, std::nan(""), 7};
  row.learning_rate = {0.01, 0.02, 1e-6};
  return row;
}

}  // namespace

TEST_CASE("run folders are numbered and never shared", "[monitor]") {
  const std::string project = fixture::temporary_dir("runs") + "/deep/er";
  CHECK(yolo9::make_run_folder(project, "exp") == project + "/exp");
  CHECK(yolo9::make_run_folder(project, "exp") == project + "/exp2");
  CHECK(yolo9::make_run_folder(project, "exp", true) == project + "/exp");
  CHECK(yolo9::make_run_folder(project, "other", true) == project + "/other");
  std::vector<std::string> made(16);
  std::vector<std::thread> threads;
  for (auto& slot : made) threads.emplace_back([&] { slot = yolo9::make_run_folder(project, "exp"); });
  for (auto& thread : threads) thread.join();
  CHECK(std::set<std::string>(made.begin(), made.end()).size() == made.size());
  for (const auto& path : made) CHECK(fs::is_directory(path));
}

TEST_CASE("a run folder that cannot be made is a usage error of one line", "[monitor]") {
  const std::string file = fixture::temporary_dir("runs") + "/file";
  std::ofstream(file) << "x";
  for (const std::string& project : {file, std::string("/proc/nowhere")}) {
    CAPTURE(project);
    try {
      yolo9::make_run_folder(project, "exp");
      FAIL("accepted");
    } catch (const yolo9::Error& error) {
      CHECK(error.kind() == yolo9::ErrorKind::Usage);
      CHECK_THAT(error.what(), Contains("run folder") && Contains(project) && !Contains("\n"));
    }
  }
  CHECK_THROWS_AS(yolo9::make_run_folder(file, "exp", true), yolo9::Error);
  CHECK_THROWS_AS(yolo9::make_run_folder(fixture::temporary_dir("runs"), ""), yolo9::Error);
}

TEST_CASE("results.csv has the official header and survives kills and resumes", "[monitor]") {
  const std::string path = fixture::temporary_dir("results") + "/results.csv";
  {
    yolo9::ResultsCsv csv(path);
    for (int64_t epoch = 0; epoch < 4; ++epoch) csv.append(row_of(epoch));
  }
  const std::string text = read_text(path);
  const std::string header = text.substr(0, text.find('\n'));
  CHECK(header ==
        "               epoch,      train/box_loss,      train/cls_loss,      train/dfl_loss,   metrics/precision,"
        "      metrics/recall,     metrics/mAP_0.5,metrics/mAP_0.5:0.95,        val/box_loss,        val/cls_loss,"
        "        val/dfl_loss,               x/lr0,               x/lr1,               x/lr2");
  CHECK_THAT(text, Contains("\n                   2,                   1,                   0,                 1.5,"
                            "                0.52,                0.25,               0.125,             0.33333,"));
  auto rows = yolo9::read_results(path);
  REQUIRE(rows.size() == 4);
  CHECK(rows[3].epoch == 3);
  CHECK(rows[3].precision == Approx(0.53));
  CHECK(std::isnan(rows[3].val_loss[1]));
  CHECK(rows[3].learning_rate[2] == Approx(1e-6));

  // Killed while writing: the half row is not seen, and gone when the run goes on with epoch 2.
  std::ofstream(path, std::ios::app) << "                   4,       1.5";
  CHECK(yolo9::read_results(path).size() == 4);
  yolo9::ResultsCsv resumed(path, 2);
  rows = yolo9::read_results(path);
  REQUIRE(rows.size() == 2);
  resumed.append(row_of(2));
  rows = yolo9::read_results(path);
  REQUIRE(rows.size() == 3);
  CHECK(rows[2].epoch == 2);
  // A new run starts an empty table.
  yolo9::ResultsCsv again(path);
  CHECK(yolo9::read_results(path).empty());
  CHECK(read_text(path) == header + "\n");
}

TEST_CASE("a file that holds something else is not overwritten", "[monitor]") {
  const std::string path = fixture::temporary_dir("results") + "/mine.csv";
  std::ofstream(path) << "a,b\n1,2\n";
  CHECK_THROWS_WITH(yolo9::ResultsCsv(path), Contains("another table"));
  CHECK(read_text(path) == "a,b\n1,2\n");
  CHECK_THROWS_AS(yolo9::ResultsCsv("/nonexistent/results.csv"), yolo9::Error);
}

TEST_CASE("memory.csv keeps its columns and one row a step", "[monitor]") {
  const std::string path = fixture::temporary_dir("memory") + "/memory.csv";
  yolo9::MemoryRow row;
  {
    yolo9::MemoryLog log(path);
    for (row.step = 1; row.step <= 3; ++row.step) {
      row.peak_bytes = 5'000'000'000 + row.step;
      row.micro_batch = 4;
      row.decision = row.step == 2 ? "halved, retried\n" : "";
      log.append(row);
    }
  }
  CHECK_THAT(read_text(path),
             Catch::StartsWith("step,epoch,image_size,boxes,micro_batch,accumulation,rung,allocated_bytes,"
                               "reserved_bytes,peak_bytes,predicted_bytes,budget_bytes,retries,ooms,decision\n"));
  auto rows = yolo9::read_memory_log(path);
  REQUIRE(rows.size() == 3);
  CHECK(rows[1].peak_bytes == 5'000'000'002);
  CHECK(rows[1].micro_batch == 4);
  CHECK(rows[1].decision == "halved  retried");
  yolo9::MemoryLog resumed(path, 3);
  rows = yolo9::read_memory_log(path);
  REQUIRE(rows.size() == 2);
  CHECK(rows.back().step == 2);
}

TEST_CASE("the progress line says what it should", "[monitor]") {
  yolo9::ProgressState s;
  s.epoch = 4, s.epochs = 40, s.batch = 3, s.batches = 10;
  s.memory_bytes = 1'610'612'736, s.budget_bytes = 2'147'483'648;
  s.losses = {1.2345, 0.5, 2};
  s.instances = 1234, s.image_size = 640, s.images_per_second = 33.33;
  s.micro_batch = 8, s.accumulation = 2, s.seconds_left = 3725;
  const std::string line = yolo9::Progress::state_line(s);
  for (const char* part : {"5/40", "1.5G/2G", "1.234", "0.5", "1234", "640", "33.3", "8 x 2", "1:02:05"}) {
    CHECK_THAT(line, Contains(part));
  }
  CHECK(line.size() == yolo9::Progress::title_line().size());

  std::stringstream plain;
  {
    yolo9::Progress progress(plain, false);
    for (int epoch = 0; epoch < 2; ++epoch) {
      progress.begin_epoch();
      for (int i = 0; i < 50; ++i) progress.update(s);
      progress.end_epoch(s);
    }
  }
  CHECK(plain.str() == yolo9::Progress::title_line() + "\n" + line + "\n" + line + "\n");
  std::stringstream terminal;
  {
    yolo9::Progress progress(terminal, true);
    progress.begin_epoch();
    progress.end_epoch(s);
  }
  CHECK(terminal.str() == yolo9::Progress::title_line() + "\n\r" + line + "\n");
}

TEST_CASE("short forms of bytes and times", "[monitor]") {
  CHECK(yolo9::short_bytes(0) == "0K");
  CHECK(yolo9::short_bytes(312 * 1024 * 1024) == "312M");
  CHECK(yolo9::short_bytes(1024LL * 1024 * 1024) == "1G");
  CHECK(yolo9::short_bytes(141LL * 1024 * 1024 * 1024) == "141G");
  CHECK(yolo9::short_time(45.2) == "45s");
  CHECK(yolo9::short_time(187) == "3:07");
  CHECK(yolo9::short_time(7387) == "2:03:07");
  CHECK(yolo9::short_time(-1) == "-");
  CHECK(yolo9::short_time(std::nan("")) == "-");
}
