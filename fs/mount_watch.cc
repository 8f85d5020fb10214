#include "fs/mount_watch.h"

#include <fcntl.h>

#include <algorithm>
#include <vector>

#include "fs/mount_table.h"

namespace rocefs {

// Watched first, then looked at: no change is missed.
MountWatch::MountWatch(dev_t device, PollLoop& loop, std::function<void()> gone)
    : device_(device),
      loop_(loop),
      gone_(std::move(gone)),
      table_(::open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC)) {
  if (table_) loop_.watch_priority(table_.get(), [this] { look(); });
  look();
}

MountWatch::~MountWatch() {
  if (table_) loop_.unwatch(table_.get());
}

void MountWatch::look() {
  std::vector<Mount> table = mount_table();
  bool there = std::any_of(table.begin(), table.end(),
                           [this](const Mount& mount) { return mount.device == device_; });
  if (there || !gone_) return;
  std::exchange(gone_, nullptr)();
}

}  // namespace rocefs
