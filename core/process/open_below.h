// open_below(): openat2(2), for paths that must not lead elsewhere.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/fd.h"

namespace rocefs {

// `flags` as of open(2), O_CLOEXEC added; `resolve` as of openat2(2), RESOLVE_*. None with errno if
// it fails. The kernel gives up with EAGAIN where a mount or a rename anywhere on the machine came
// between, for a path with "..": then it is tried again, some thousand times.
Fd open_below(int root, const std::string& path, int flags, uint64_t resolve);

}  // namespace rocefs
