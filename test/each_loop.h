// Runs a test with each kind of the packet core's I/O that may be used here.
#pragma once

#include <catch2/catch.hpp>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "core/loop/io_choice.h"

namespace rocefs::test {

inline std::vector<IoKind> usable_kinds() {
  std::vector<IoKind> kinds{IoKind::kPoll};
  if (choose_io(IoKind::kIoUring, 8)) kinds.push_back(IoKind::kIoUring);
  return kinds;
}

// ROCEFS_LOOP, for engines that are made meanwhile.
class LoopWord {
 public:
  explicit LoopWord(IoKind kind) {
    if (const char* text = std::getenv("ROCEFS_LOOP")) before_ = text;
    ::setenv("ROCEFS_LOOP", std::string(name(kind)).c_str(), 1);
  }
  ~LoopWord() {
    if (before_) ::setenv("ROCEFS_LOOP", before_->c_str(), 1);
    if (!before_) ::unsetenv("ROCEFS_LOOP");
  }

 private:
  std::optional<std::string> before_;
};

}  // namespace rocefs::test

// At the begin of a case: it runs once for each kind.
#define ON_EACH_LOOP()                                                       \
  const rocefs::IoKind loop_kind =                                           \
      GENERATE(Catch::Generators::from_range(rocefs::test::usable_kinds())); \
  INFO("ROCEFS_LOOP=" << rocefs::name(loop_kind));                           \
  const rocefs::test::LoopWord loop_word(loop_kind)
