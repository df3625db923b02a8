#include <yolo9/core/log.h>

#include <mutex>
#include <set>

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>
#include <yolo9/core/error.h>

namespace yolo9 {

namespace {

struct State {
  std::shared_ptr<spdlog::logger> logger;
  bool json = false;
  std::mutex once_mutex;
  std::set<std::string> once;
  State() {
    logger = std::make_shared<spdlog::logger>("yolo9", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    logger->set_pattern("%^%v%$");
  }
};

State& state() {
  static State instance;
  return instance;
}

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::Debug: return spdlog::level::debug;
    case LogLevel::Info: return spdlog::level::info;
    case LogLevel::Warn: return spdlog::level::warn;
    case LogLevel::Error: return spdlog::level::err;
    case LogLevel::Off: break;
  }
  return spdlog::level::off;
}

void write(spdlog::level::level_enum level, const char* name, const char* prefix, const std::string& text) {
  State& s = state();
  if (!s.logger->should_log(level)) return;
  if (s.json) {
    nlohmann::json line{{"level", name}, {"message", text}};
    line["time"] = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
    s.logger->log(level, line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    s.logger->log(level, prefix + text);
  }
  s.logger->flush();
}

}  // namespace

void configure_log(const LogOptions& options) {
  std::vector<spdlog::sink_ptr> sinks{std::make_shared<spdlog::sinks::stderr_color_sink_mt>()};
  if (!options.file.empty()) {
    try {
      sinks.push_back(std::make_shared<spdlog::sinks::basic_file_sink_mt>(options.file));
    } catch (const spdlog::spdlog_ex&) {
      throw Error(ErrorKind::Usage, "the log file cannot be opened for writing", options.file,
                  "give --log-file a path in a writable folder");
    }
  }
  State& s = state();
  s.logger = std::make_shared<spdlog::logger>("yolo9", sinks.begin(), sinks.end());
  s.logger->set_level(to_spdlog(options.level));
  s.json = options.json;
  s.logger->set_pattern(options.json ? "%v" : "%^%v%$");
}

LogLevel parse_log_level(const std::string& name) {
  if (name == "debug") return LogLevel::Debug;
  if (name == "info") return LogLevel::Info;
  if (name == "warn") return LogLevel::Warn;
  if (name == "error") return LogLevel::Error;
  if (name == "off") return LogLevel::Off;
  throw Error(ErrorKind::Usage, "unknown log level \"" + name + "\"", "", "use debug, info, warn, error or off");
}

void log_debug(const std::string& text) { write(spdlog::level::debug, "debug", "", text); }
void log_info(const std::string& text) { write(spdlog::level::info, "info", "", text); }
void log_warn(const std::string& text) { write(spdlog::level::warn, "warning", "warning: ", text); }
void log_error(const std::string& text) { write(spdlog::level::err, "error", "error: ", text); }

void log_warn_once(const std::string& key, const std::string& text) {
  {
    std::lock_guard<std::mutex> lock(state().once_mutex);
    if (!state().once.insert(key).second) return;
  }
  log_warn(text);
}

}  // namespace yolo9
