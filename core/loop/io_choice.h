// Chooses how the packet core's input and output is done: by io_uring, or by polls where io_uring
// may not be used or is too old.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/loop/core_io.h"

namespace rocefs {

// ROCEFS_LOOP of the environment: poll, io_uring, or auto (the default), which is empty here.
// EINVAL for another word.
Result<std::optional<IoKind>> wanted_io();

struct ChosenIo {
  std::unique_ptr<CoreIo> io;
  std::string why_poll;  // empty with io_uring
};
// `wanted`: empty: io_uring if it can do all that the core asks of it. Fails with the reason if the
// wanted kind may not be used.
Result<ChosenIo> choose_io(std::optional<IoKind> wanted, unsigned entries);

}  // namespace rocefs
