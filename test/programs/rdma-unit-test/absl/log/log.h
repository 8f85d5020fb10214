// Logging by the names of absl/log, which Debian's abseil of 2022 lacks: to standard error, INFO
// only with RDMA_UNIT_TEST_LOG in the environment.
#pragma once
#include <cstdlib>
#include <iostream>
#include <sstream>

namespace log_shim {
enum Severity { INFO, WARNING, ERROR, FATAL };

class Message {
 public:
  Message(Severity severity, const char* file, int line) : severity_(severity) {
    text_ << file << ':' << line << ' ';
  }
  ~Message() {
    static const bool kVerbose = std::getenv("RDMA_UNIT_TEST_LOG") != nullptr;
    if (severity_ != INFO || kVerbose) std::cerr << text_.str() + "\n" << std::flush;
    if (severity_ == FATAL) std::abort();
  }
  std::ostream& stream() { return text_; }

 private:
  Severity severity_;
  std::ostringstream text_;
};

class FatalMessage : public Message {
 public:
  FatalMessage(const char* file, int line) : Message(ERROR, file, line) {}
  [[noreturn]] ~FatalMessage() {
    std::cerr << stream().rdbuf() << std::endl;
    std::abort();
  }
};

struct Voidify {
  void operator&&(std::ostream&) const {}
};
}  // namespace log_shim

#define LOG_SHIM_INFO log_shim::Message(log_shim::INFO, __FILE__, __LINE__)
#define LOG_SHIM_WARNING log_shim::Message(log_shim::WARNING, __FILE__, __LINE__)
#define LOG_SHIM_ERROR log_shim::Message(log_shim::ERROR, __FILE__, __LINE__)
#define LOG_SHIM_FATAL log_shim::FatalMessage(__FILE__, __LINE__)
#define LOG(severity) LOG_SHIM_##severity.stream()
#define LOG_IF(severity, condition) !(condition) ? (void)0 : log_shim::Voidify() && LOG(severity)
#define VLOG(level) LOG(INFO)
#define LOG_EVERY_N_SEC(severity, seconds) LOG(severity)
