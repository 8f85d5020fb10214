#include "tools/rocefs/netlink/session.h"

#include <sys/socket.h>

#include <cerrno>

namespace rocefs {

uint32_t Session::port() const {
  std::lock_guard lock(mutex_);
  return port_;
}

void Session::set_port(uint32_t port) {
  std::lock_guard lock(mutex_);
  port_ = port;
}

void Session::deliver(std::string message, Shares::Share share) {
  std::lock_guard lock(mutex_);
  waiting_.push_back({std::move(message), std::move(share)});
  flush_locked();
}

bool Session::flush() {
  std::lock_guard lock(mutex_);
  return flush_locked();
}

bool Session::waits() const {
  std::lock_guard lock(mutex_);
  return !waiting_.empty();
}

bool Session::flush_locked() {
  while (!waiting_.empty()) {
    const std::string& first = waiting_.front().message;
    ssize_t sent = ::send(far_.get(), first.data(), first.size(), MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN || errno == ENOBUFS || errno == EINTR;
    waiting_.pop_front();
  }
  return true;
}

}  // namespace rocefs
