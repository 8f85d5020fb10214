// Notifier: tells the kernel that what it caches is gone, and wakes who polls. In a thread of its
// own: the kernel may hold a directory's lock while it waits for the thread that serves it.
#pragma once

#include <fuse_lowlevel.h>

#include <memory>
#include <string>

#include "core/worker.h"

namespace rocefs {

// Called on the control thread.
class Notifier {
 public:
  explicit Notifier(fuse_session* session)
      : session_(session), worker_(std::make_unique<Worker>()) {}

  // Sends what is queued; afterwards nothing is sent. Poll handles may outlive the session.
  void close() { worker_.reset(); }

  void entry_gone(fuse_ino_t parent, std::string name) {
    if (!worker_) return;
    worker_->post([session = session_, parent, name = std::move(name)] {
      fuse_lowlevel_notify_inval_entry(session, parent, name.c_str(), name.size());
    });
  }
  // Takes the handle.
  void wake(fuse_pollhandle* handle) {
    if (!worker_) return fuse_pollhandle_destroy(handle);
    worker_->post([handle] {
      fuse_lowlevel_notify_poll(handle);
      fuse_pollhandle_destroy(handle);
    });
  }

 private:
  fuse_session* session_;
  std::unique_ptr<Worker> worker_;
};

}  // namespace rocefs
