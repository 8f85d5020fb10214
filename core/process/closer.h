// Closer: closes descriptors in which strangers have had a hand, on threads of its own. close(2) of
// such a one may take minutes: a TCP socket lingers over what it has not sent, a file is flushed to
// a file system that does not answer, and a unix socket drops the descriptors that wait in it, of
// either kind.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>

#include "core/base/fd.h"

namespace rocefs {

// A handle: copies of it are of one closer. Nobody waits for its threads; when the last handle is
// gone they close what is left, and end.
class Closer {
 public:
  // How many users' closes may block before those of the next one wait.
  static constexpr size_t kMaxThreads = 64;

  // Starts no thread.
  Closer();
  ~Closer();
  Closer(const Closer&) = default;
  Closer& operator=(const Closer&) = delete;

  // Any thread; returns at once. Descriptors of one owner are closed one after the other, those of
  // several owners beside each other. `charge` is let go of when this one is closed.
  void close(Fd fd, uid_t owner, std::shared_ptr<const void> charge = nullptr) const;
  // Any thread. How many are not closed yet.
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
  // `owner`: the stranger.
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
  // Is let go of when the descriptor is closed.
  void charge(std::shared_ptr<const void> charge) { charge_ = std::move(charge); }
  // Another descriptor of the same stranger's, with the same charge.
  StrangerFd of_same(Fd fd) const {
    StrangerFd other(std::move(fd), *closer_, owner_);
    other.charge_ = charge_;
    return other;
  }
  // For who closes it where blocking hurts nobody but its owner.
  Fd release() { return std::move(fd_); }
  // Of a socket of ours: its other end hears of it at once, though others' closes come first.
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
