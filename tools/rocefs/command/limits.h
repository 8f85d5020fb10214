// Limits of the process (setrlimit(2)) that are too small: told before a mount serves, or a
// simulation runs.
#pragma once

#include <cstddef>

#include "core/base/result.h"

namespace rocefs {

// `option`: of ulimit, by which there may be more.
Result<void> check_open_files(size_t devices, const char* option);
// Of a mount: those too. `memory`: octets of the largest shared memory, which counts as a file.
Result<void> check_limits(size_t memory, size_t devices);

// From now on what no limit was known for beforehand, memory that is not there and threads that
// may not be, is told in one line, and the process ends with status 1. A file that may not grow is
// an error of its writer's, no signal.
void tell_limits();

}  // namespace rocefs
