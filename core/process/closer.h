// Closer: closes descriptors that other processes can influence, on separate threads. close(2) of
// such a descriptor may take minutes: a TCP socket lingers over unsent data, a file is flushed to a
// file system that does not answer, and a unix socket drops queued descriptors of either kind.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>

#include "core/base/fd.h"

namespace rocefs {

// A handle; copies share one closer. Its threads are never joined: after the last handle is gone
// they close the remaining descriptors and end.
class Closer {
 public:
  // Number of users whose close(2) may block before the next user's has to wait.
  static constexpr size_t kMaxThreads = 64;

  // Starts no thread.
  Closer();
  ~Closer();
  Closer(const Closer&) = default;
  Closer& operator=(const Closer&) = delete;

  // Any thread; returns at once. Closes descriptors of one owner one after the other, those of
  // several owners in parallel. Releases `charge` when this one is closed.
  void close(Fd fd, uid_t owner, std::shared_ptr<const void> charge = nullptr) const;
  // Any thread. Number of descriptors not closed yet.
  size_t waiting() const;

 private:
  class Queue;
  class Handle;
  std::shared_ptr<Handle> handle_;
};

// StrangerFd: an owned descriptor that only a Closer may close.
class StrangerFd {
 public:
  StrangerFd() = default;
  // `owner`: the other process's user.
  StrangerFd(Fd fd, const Closer& closer, uid_t owner)
      : fd_(std::move(fd)), closer_(std::make_unique<Closer>(closer)), owner_(owner) {}
  StrangerFd(StrangerFd&& other) noexcept = default;
  StrangerFd& operator=(StrangerFd&& other) noexcept {
    if (this == &other) return *this;
    reset();
    fd_ = std::move(other.fd_);
    closer_ = std::move(other.closer_);
    owner_ = other.owner_;
    charge_ = std::move(other.charge_);
    return *this;
  }
  ~StrangerFd() { reset(); }

  int get() const { return fd_.get(); }
  explicit operator bool() const { return static_cast<bool>(fd_); }
  // Charge that is released when the descriptor is closed.
  void charge(std::shared_ptr<const void> charge) { charge_ = std::move(charge); }
  // Wraps another descriptor with the same owner and charge.
  StrangerFd of_same(Fd fd) const {
    StrangerFd other(std::move(fd), *closer_, owner_);
    other.charge_ = charge_;
    return other;
  }
  // Gives up the descriptor to a caller that closes it where blocking hurts only its owner.
  Fd release() { return std::move(fd_); }
  // Shuts down a socket of ours: its peer is notified at once, even if other closes come first.
  void hang_up();
  void reset() {
    if (fd_) closer_->close(std::move(fd_), owner_, std::move(charge_));
  }

 private:
  Fd fd_;
  std::unique_ptr<Closer> closer_;
  uid_t owner_ = 0;
  std::shared_ptr<const void> charge_;
};

}  // namespace rocefs
