#include "fs/log_capture.h"

#include <fcntl.h>
#include <fuse_log.h>
#include <sys/mman.h>

#include <cstdarg>
#include <cstdio>

namespace rocefs {
namespace {

// Thread-local: libfuse passes no context to its log function.
thread_local std::string* captured_log = nullptr;

void capture_log(fuse_log_level, const char* format, va_list arguments) {
  char line[512];
  std::vsnprintf(line, sizeof line, format, arguments);
  if (captured_log) {
    *captured_log += line;
  } else {
    std::fputs(line, stderr);
  }
}

std::string in_one_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  return text;
}

}  // namespace

LogCapture::LogCapture() {
  captured_log = &text_;
  fuse_set_log_func(capture_log);
}

LogCapture::~LogCapture() {
  captured_log = nullptr;
}

std::string LogCapture::text() const {
  return in_one_line(text_);
}

StderrCapture::StderrCapture()
    : kept_(::memfd_create("rocefs-stderr", MFD_CLOEXEC)),
      real_(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)) {
  std::fflush(stderr);
  if (kept_ && real_) ::dup2(kept_.get(), STDERR_FILENO);
}

StderrCapture::~StderrCapture() {
  std::fflush(stderr);
  if (kept_ && real_) ::dup2(real_.get(), STDERR_FILENO);
}

std::string StderrCapture::text() const {
  if (!kept_) return {};
  char text[1024];
  ssize_t got = ::pread(kept_.get(), text, sizeof text, 0);
  return in_one_line(std::string(text, got > 0 ? static_cast<size_t>(got) : 0));
}

}  // namespace rocefs
