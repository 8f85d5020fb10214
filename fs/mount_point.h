// Checks the mount point before anything starts, so that a mistake is one clear line.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "core/base/result.h"

namespace rocefs {

// Returns the absolute path of a directory on which a rocefs may be mounted. Fails with ENOENT,
// ENOTDIR, EACCES; with EBUSY if a live rocefs is mounted there. Unmounts dead mounts of earlier
// instances lazily, with a line on stderr; ENOTCONN if that is refused, or if another file system
// is dead.
Result<std::string> check_mount_point(const std::string& path);

// Detaches the rocefs with this device number: immediately from its path, later for its users, by
// umount2(2) or, for an ordinary user, by fusermount3. Returns false, and unmounts nothing, if the
// path leads to another mount by now: a directory above may belong to somebody who exchanged it.
bool unmount_own(const std::string& path, dev_t device);

// Detaches the topmost mount if it is a rocefs without a server, and returns whether it was. Keeps
// a mount that was made there meanwhile, even with the same device number.
bool unmount_dead(const std::string& path);

// Returns the device number of the rocefs mounted at this absolute path, as stat(2) would show it.
std::optional<dev_t> mounted_device(const std::string& path);

}  // namespace rocefs
