// Notifier: tells the kernel that what it caches is gone. In a thread of its own: the kernel may
// hold the directory's lock while it waits for the thread that serves it.
#pragma once

#include <fuse_lowlevel.h>

#include <string>

#include "core/worker.h"

namespace rocefs {

class Notifier {
 public:
  explicit Notifier(fuse_session* session) : session_(session) {}

  // Any thread.
  void entry_gone(fuse_ino_t parent, std::string name, fuse_ino_t child) {
    worker_.post([session = session_, parent, name = std::move(name), child] {
      fuse_lowlevel_notify_delete(session, parent, child, name.c_str(), name.size());
      fuse_lowlevel_notify_inval_inode(session, child, 0, 0);
    });
  }
  // Wakes whoever polls; takes the handle.
  void wake(fuse_pollhandle* handle) {
    worker_.post([handle] {
      fuse_lowlevel_notify_poll(handle);
      fuse_pollhandle_destroy(handle);
    });
  }

 private:
  fuse_session* session_;
  Worker worker_;
};

}  // namespace rocefs
