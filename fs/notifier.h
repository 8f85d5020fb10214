// Notifier: tells the kernel that entries it caches have gone, or have come where it remembers that
// there are none, and wakes who polls.
#pragma once

#include <fuse_lowlevel.h>

#include <deque>
#include <memory>
#include <string>

#include "core/loop/poll_loop.h"
#include "core/tree/tree.h"
#include "fs/invalidator.h"

namespace rocefs {

// Called on the control thread. May outlive the session and the loop once it is closed.
class Notifier final : public Tree::Listener {
 public:
  Notifier(PollLoop& loop, Invalidator invalidator);
  ~Notifier() override;

  // The kernel asks along this one from now on; before, there is nothing to tell it.
  void connect(int connection);

  // Sent by a process of its own: the kernel takes the directory's lock, and whoever holds that may
  // be waiting for the control thread to answer a lookup.
  void entry_changed(Ino parent, const std::string& name) override;
  void when_known(Task then) override;

  // Sent at once: the kernel only looks the handle up under a spin lock and wakes its waiters
  // (fs/fuse/file.c, fuse_notify_poll_wakeup), so nothing can wait for this thread meanwhile.
  void wake(fuse_pollhandle* handle) {
    if (!closed_) fuse_lowlevel_notify_poll(handle);
  }

  // Nothing more is sent. Until drained() the kernel may need its requests served; hear() when
  // socket() has something to say.
  void begin_close();
  bool drained() const { return sent_ == 0; }
  int socket() const { return invalidator_.socket(); }
  void hear();
  void close();

 private:
  struct Order {
    std::string notifications;
    std::deque<Task> then;  // when this has been taken
  };

  void flush();
  bool begin();
  void start_again();
  void take_oldest();
  void give_up();

  PollLoop& loop_;
  Invalidator invalidator_;
  int connection_ = -1;
  std::deque<Order> orders_;
  size_t sent_ = 0;    // of these
  bool taken_ = true;  // the process has done something since it began
  bool closing_ = false, closed_ = false;
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
