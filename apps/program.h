// What every program shares: parse the command line, run, and turn any failure into one line on stderr and the
// exit status that scripts may rely on. Nothing but that one line may reach the user of a failed program.
#pragma once

#include <cstdio>
#include <exception>
#include <functional>
#include <iostream>
#include <new>
#include <string>

#include <c10/util/Exception.h>
#include <CLI/CLI.hpp>

#include <yolo9/core/error.h>
#include <yolo9/core/log.h>
#include <yolo9/train/training_kit.h>

namespace yolo9 {

// Exit statuses besides those of ErrorKind.
constexpr int kExitDone = 0;
constexpr int kExitInternal = 1;  // a defect of the program itself
constexpr int kExitStopped = 75;  // stopped by a signal after saving

inline std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

inline int report_failure(const std::string& line, int status) {
  std::cout.flush();
  std::cerr << "error: " << first_line(line) << std::endl;
  return status;
}

// Runs `body` and maps what it throws. Errors of LibTorch that are not out-of-memory lose their backtrace.
inline int run_guarded(const std::function<int()>& body) {
  try {
    return body();
  } catch (const Error& error) {
    return report_failure(error.what(), error.exit_status());
  } catch (const c10::OutOfMemoryError& error) {
    return report_failure(std::string("out of memory: ") + error.what_without_backtrace(),
                          static_cast<int>(ErrorKind::Memory));
  } catch (const c10::Error& error) {
    return report_failure(error.what_without_backtrace(), kExitInternal);
  } catch (const std::bad_alloc&) {
    return report_failure("out of memory: the host refused an allocation", static_cast<int>(ErrorKind::Memory));
  } catch (const std::exception& error) {
    return report_failure(error.what(), kExitInternal);
  }
}

// Puts a budget on the tensors of a device; "" sets none.
inline void limit_memory(const std::string& text, torch::Device device) {
  if (text.empty()) return;
  const auto source = make_memory_source(device);
  source->set_limit(parse_bytes(text, source->sample().device_total_bytes));
}

// Adds the log flags, parses the command line and runs `body`, which returns the exit status.
// --help prints and gives 0; a mistake on the command line is one line and 2.
inline int run_program(CLI::App& app, int argc, char** argv, const std::function<int()>& body) {
  LogOptions log;
  std::string level = "info";
  app.add_option("--log-level", level, "debug, info, warn, error or off")->capture_default_str();
  app.add_option("--log-file", log.file, "also write log lines to this file");
  app.add_flag("--log-json", log.json, "log one JSON object a line");
  // Of a flag given twice the last counts, so that a script's defaults can be overridden; lists stay lists.
  for (CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() == 1) option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return app.exit(error);
    return report_failure(std::string(error.what()) + "; see " + app.get_name() + " --help",
                          static_cast<int>(ErrorKind::Usage));
  }
  return run_guarded([&] {
    log.level = parse_log_level(level);
    configure_log(log);
    return body();
  });
}

}  // namespace yolo9
