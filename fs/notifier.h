// Notifier: tells the kernel that cached entries, positive or negative (the kernel's dcache), are
// out of date, and wakes pollers.
#pragma once

#include <fuse_lowlevel.h>

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/loop/loop_timer.h"
#include "core/loop/poll_loop.h"
#include "core/tree/tree.h"
#include "fs/invalidator.h"

namespace rocefs {

// Control thread. May outlive the session and the loop once it is closed.
class Notifier final : public Tree::Listener {
 public:
  static constexpr TimeNs kPatience = 5 * kSecond;
  // The kernel has not taken a change of a directory for so long: a program holds the lock of the
  // directory, as getdents(2) does into memory that does not come.
  using Stalled = std::function<void(Ino directory)>;
  Notifier(PollLoop& loop, Invalidator invalidator, Stalled stalled, TimeNs patience = kPatience);
  ~Notifier() override;

  // Sets the descriptor of the connection; before that, the kernel has cached nothing.
  void connect(int connection);

  // Sends by a separate process: the kernel takes the directory's lock, whose holder may be waiting
  // for the control thread to answer a lookup.
  void entry_changed(Ino parent, const std::string& name) override;
  // Does not wait longer than `patience` for one change: its program would hold all others.
  void when_known(Task then) override;

  // Sends at once: the kernel only looks the handle up under a spin lock and wakes its waiters
  // (fs/fuse/file.c, fuse_notify_poll_wakeup), so it cannot wait for this thread.
  void wake(fuse_pollhandle* handle) {
    if (!closed_) fuse_lowlevel_notify_poll(handle);
  }

  // Sends nothing from now on. Until drained(), serve the kernel's requests, and call hear() when
  // socket() is readable.
  void begin_close();
  bool drained() const { return sent_ == 0; }
  int socket() const { return invalidator_.socket(); }
  void hear();
  void close();

 private:
  struct Order {
    Ino directory;
    std::string notifications;
    std::deque<Task> then = {};  // when this has been taken
  };

  void flush();
  bool begin();
  void start_again();
  void take_oldest();
  void run(std::deque<Task> then);
  void give_up();
  void lose_patience();

  PollLoop& loop_;
  Invalidator invalidator_;
  const Stalled stalled_;
  const TimeNs patience_;
  std::optional<LoopTimer> stall_;  // armed while an order is under way; none once closed
  bool told_ = false;               // of the oldest order
  int connection_ = -1;
  std::deque<Order> orders_;
  size_t sent_ = 0;    // orders sent
  bool taken_ = true;  // the process has done something since it began
  bool closing_ = false, closed_ = false;
};

// Wake: wakes a poll(2) once. Dropping it unused wakes nothing, else a poller would poll again for
// ever. May outlive the session.
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
