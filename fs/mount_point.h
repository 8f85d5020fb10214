// The mount point, looked at before anything starts, so that a mistake is one clear line.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "core/base/result.h"

namespace rocefs {

// The absolute path of a directory on which a rocefs may be mounted. ENOENT, ENOTDIR, EACCES; EBUSY
// when a live rocefs is mounted there. Dead mounts of earlier ones are unmounted lazily, and said
// so on stderr; ENOTCONN when that is refused, or when it is another file system that is dead.
Result<std::string> check_mount_point(const std::string& path);

// Takes the mount away, at once for who looks and later for who uses it: by umount2(2) or, for an
// ordinary user, fusermount3. Nothing happens where that is refused.
void unmount_lazily(const std::string& path);

// If what is mounted on top there is a rocefs that nobody serves any more: takes it away, and is
// true. A mount that somebody else has made there meanwhile, perhaps with the same device number,
// stays.
bool unmount_dead(const std::string& path);

// The device number of the rocefs that is mounted at this absolute path, as stat(2) would show it.
std::optional<dev_t> mounted_device(const std::string& path);

}  // namespace rocefs
