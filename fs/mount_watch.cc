#include "fs/mount_watch.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "core/process/mount_table.h"

namespace rocefs {

MountWatch::MountWatch(dev_t device, PollLoop& loop, std::function<void()> gone, Blind blind)
    : device_(device),
      loop_(loop),
      gone_(std::move(gone)),
      blind_(std::move(blind)),
      again_(loop, [this] { table_ ? look() : open(); }) {
  open();
}

MountWatch::~MountWatch() {
  if (table_) loop_.unwatch(table_.get());
}

// Watches first, then reads, so that no change is missed.
void MountWatch::open() {
  table_ = Fd(::open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC));
  if (!table_) return try_again(std::strerror(errno));
  loop_.watch_priority(table_.get(), [this] { look(); });
  look();
}

// Reads the table. If it is unreadable, the state of the mount is unknown: tries again.
void MountWatch::look() {
  Result<std::vector<Mount>> table = read_mount_table(table_.get());
  if (!table) return try_again(table.error().reason);
  is_blind_ = false;
  bool there = std::any_of(table->begin(), table->end(),
                           [this](const Mount& mount) { return mount.device == device_; });
  if (there || !gone_) return;
  std::exchange(gone_, nullptr)();
}

void MountWatch::try_again(std::string_view why) {
  if (!std::exchange(is_blind_, true)) blind_(why);
  again_.arm(kAgain);
}

}  // namespace rocefs
