#include "fs/notifier.h"

#include <sys/eventfd.h>

namespace rocefs {

Notifier::Notifier(fuse_session* session, PollLoop& loop)
    : session_(session),
      loop_(loop),
      idle_(::eventfd(0, EFD_CLOEXEC)),
      worker_(std::make_unique<Worker>()) {}

// The directory's own attributes too: how many subdirectories it has.
void Notifier::entry_changed(Ino parent, const std::string& name) {
  if (!worker_) return;
  worker_->post([this, parent, name] {
    if (closing_.load()) return;
    fuse_lowlevel_notify_inval_entry(session_, parent, name.c_str(), name.size());
    fuse_lowlevel_notify_inval_inode(session_, parent, -1, 0);
  });
}

void Notifier::when_known(Task then) {
  if (!worker_) return then();
  worker_->post([this, then = std::move(then)]() mutable { loop_.post(std::move(then)); });
}

int Notifier::begin_close() {
  closing_.store(true);
  worker_->post([this] {
    uint64_t one = 1;
    (void)!::write(idle_.get(), &one, sizeof one);
  });
  return idle_.get();
}

}  // namespace rocefs
