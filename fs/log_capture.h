// Captures what libfuse and fusermount3 would print, for one line of our own.
#pragma once

#include <string>

#include "core/base/fd.h"

namespace rocefs {

// Captures libfuse's log messages of this thread instead of printing them. Not nested.
class LogCapture {
 public:
  LogCapture();
  ~LogCapture();
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;
  // Returns the text in one line.
  std::string text() const;

 private:
  std::string text_;
};

// Captures standard error of the whole process and of its children (fusermount3). Only for the
// moment of mounting, when nothing else prints.
class StderrCapture {
 public:
  StderrCapture();
  ~StderrCapture();
  StderrCapture(const StderrCapture&) = delete;
  StderrCapture& operator=(const StderrCapture&) = delete;
  // Returns the text in one line.
  std::string text() const;

 private:
  Fd kept_;
  Fd real_;
};

}  // namespace rocefs
