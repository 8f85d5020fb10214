// Limits of the process (setrlimit(2)) that are too small, found before a mount serves or a
// simulation runs.
#pragma once

#include <cstddef>

#include "core/base/result.h"

namespace rocefs {

// EMFILE if too few files may be open. `option`: the option of ulimit that the reason names.
Result<void> check_open_files(size_t devices, const char* option);
// All limits of a mount. `memory`: octets of the largest shared memory, which counts as a file.
Result<void> check_limits(size_t memory, size_t devices);

// From now on memory or threads that run out end the process with one line and status 1, and a file
// that may not grow (RLIMIT_FSIZE) is an error of the write, not a signal.
void report_exhausted_limits();

}  // namespace rocefs
