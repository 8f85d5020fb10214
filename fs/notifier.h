// Notifier: tells the kernel that entries it caches have gone, or have come where it remembers that
// there are none, and wakes who polls.
#pragma once

#include <fuse_lowlevel.h>

#include <atomic>
#include <memory>
#include <string>

#include "core/fd.h"
#include "core/poll_loop.h"
#include "core/tree.h"
#include "core/worker.h"

namespace rocefs {

// Called on the control thread.
class Notifier final : public Tree::Listener {
 public:
  Notifier(fuse_session* session, PollLoop& loop);

  // Sent by a thread of its own: the kernel takes the directory's lock, and whoever holds that may
  // be waiting for the control thread to answer a lookup.
  void entry_changed(Ino parent, const std::string& name) override;
  void when_known(Task then) override;

  // Sent at once: the kernel only looks the handle up under a spin lock and wakes its waiters
  // (fs/fuse/file.c, fuse_notify_poll_wakeup), so nothing can wait for this thread meanwhile.
  void wake(fuse_pollhandle* handle) {
    if (worker_) fuse_lowlevel_notify_poll(handle);
  }

  // Nothing more is sent. The descriptor that this returns becomes readable when the last message
  // under way is through; until then the kernel may need its requests served.
  int begin_close();
  void close() { worker_.reset(); }

 private:
  fuse_session* session_;
  PollLoop& loop_;
  Fd idle_;
  std::atomic<bool> closing_{false};
  std::unique_ptr<Worker> worker_;
};

// Wakes a poll(2) once. Dropped unused it wakes nobody, or a poller would ask again for ever. May
// outlive the session.
class PollWake {
 public:
  PollWake(std::shared_ptr<Notifier> notifier, fuse_pollhandle* handle)
      : notifier_(std::move(notifier)), handle_(handle, fuse_pollhandle_destroy) {}
  void operator()() { notifier_->wake(handle_.get()); }

 private:
  std::shared_ptr<Notifier> notifier_;
  std::unique_ptr<fuse_pollhandle, decltype(&fuse_pollhandle_destroy)> handle_;
};

}  // namespace rocefs
