// Opening a path that somebody echoed into a file: as that process would open it, with its
// credentials, its root and its working directory, so that the daemon's rights lend it nothing.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "core/fd.h"
#include "core/file.h"
#include "core/result.h"

namespace rocefs {

// On the Worker's thread. `flags` as open(2). Fails with the errno that the caller would get; with
// EINVAL when it is not a regular file, or lies on the file system `own_mount` (the mount itself);
// with EPERM when the daemon cannot act as the caller. Never blocks on a FIFO.
Result<Fd> open_as(const Caller& caller, const std::string& path, int flags,
                   std::optional<dev_t> own_mount);

// The process's name, as `ps -o comm` shows it, in one line; empty if it is gone.
std::string comm_of(pid_t pid);

}  // namespace rocefs
