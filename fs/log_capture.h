// What libfuse and fusermount3 would print by themselves, kept for a line of our own.
#pragma once

#include <string>

#include "core/base/fd.h"

namespace rocefs {

// While it stands, what libfuse logs on this thread is kept instead of printed. Not nested.
class LogCapture {
 public:
  LogCapture();
  ~LogCapture();
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;
  // In one line.
  std::string text() const;

 private:
  std::string text_;
};

// The same for standard error, of the whole process and of what it starts (fusermount3). Only for
// the moment of mounting, when nobody else prints.
class StderrCapture {
 public:
  StderrCapture();
  ~StderrCapture();
  StderrCapture(const StderrCapture&) = delete;
  StderrCapture& operator=(const StderrCapture&) = delete;
  // In one line.
  std::string text() const;

 private:
  Fd kept_;
  Fd real_;
};

}  // namespace rocefs
