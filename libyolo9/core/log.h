// Log lines behind plain strings, so that no other file needs spdlog (whose fmt cannot stand beside LibTorch's).
#pragma once

#include <string>

namespace yolo9 {

enum class LogLevel { Debug, Info, Warn, Error, Off };

struct LogOptions {
  LogLevel level = LogLevel::Info;
  std::string file;   // also append to this file when not empty
  bool json = false;  // one JSON object a line instead of text
};

// Throws Error(Usage) if the file cannot be opened.
void configure_log(const LogOptions& options);
// "debug", "info", "warn", "error", "off"; throws Error(Usage) otherwise.
LogLevel parse_log_level(const std::string& name);

void log_debug(const std::string& text);
void log_info(const std::string& text);
void log_warn(const std::string& text);
void log_error(const std::string& text);
// Says a warning only the first time this very `key` comes up in the process.
void log_warn_once(const std::string& key, const std::string& text);

}  // namespace yolo9
