#include "fs/notifier.h"

#include <sys/eventfd.h>

namespace rocefs {

Notifier::Notifier(fuse_session* session)
    : session_(session), idle_(::eventfd(0, EFD_CLOEXEC)), worker_(std::make_unique<Worker>()) {}

void Notifier::entry_gone(fuse_ino_t parent, std::string name) {
  if (!worker_) return;
  worker_->post([this, parent, name = std::move(name)] {
    if (closing_.load()) return;
    fuse_lowlevel_notify_inval_entry(session_, parent, name.c_str(), name.size());
  });
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
