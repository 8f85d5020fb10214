#include "rdma/client/event_sockets.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

namespace rocefs {

EventMessage::EventMessage(std::span<const uint8_t> bytes)
    : length_(static_cast<uint8_t>(bytes.size())) {
  assert(bytes.size() <= bytes_.size());
  std::copy(bytes.begin(), bytes.end(), bytes_.begin());
}

uint64_t EventMessage::cookie() const {
  uint64_t cookie;
  std::memcpy(&cookie, bytes_.data(), sizeof cookie);
  return cookie;
}

uint32_t EventSockets::announce() {
  std::lock_guard lock(mutex_);
  open_.insert(next_);
  return next_++;
}

bool EventSockets::has(uint32_t number) {
  std::lock_guard lock(mutex_);
  return open_.count(number) > 0;
}

size_t EventSockets::count() {
  std::lock_guard lock(mutex_);
  return open_.size();
}

void EventSockets::adopt(uint32_t number, Fd fd) {
  sweep();
  sockets_[number].fd = std::move(fd);
}

void EventSockets::send(uint32_t number, const EventMessage& message) {
  auto found = sockets_.find(number);
  if (found == sockets_.end()) return;
  Socket& socket = found->second;
  if (socket.waiting.size() == kMaxWaiting) return note_lost(message);
  socket.waiting.push_back(message);
  ++backlog_;
  if (!send_waiting(socket)) close(number);
}

// Counts a lost event: destroying its object waits until all events are acknowledged, and this one
// never will be.
void EventSockets::note_lost(const EventMessage& message) {
  uint64_t cookie = message.cookie();
  if (lost_.size() < kMaxLost || lost_.count(cookie) > 0) lost_[cookie].add(message);
}

bool EventSockets::send_waiting(Socket& socket) {
  while (!socket.waiting.empty()) {
    std::span<const uint8_t> bytes = socket.waiting.front().bytes();
    ssize_t sent = ::send(socket.fd.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN || errno == ENOBUFS;
    socket.waiting.pop_front();
    --backlog_;
  }
  return true;
}

void EventSockets::sweep() {
  std::vector<uint32_t> closed;
  for (auto& [number, socket] : sockets_) {
    pollfd other_end{socket.fd.get(), 0, 0};
    bool gone = ::poll(&other_end, 1, 0) == 1;  // POLLHUP, POLLERR
    if (gone || !send_waiting(socket)) closed.push_back(number);
  }
  for (uint32_t number : closed) close(number);
}

void EventSockets::close(uint32_t number) {
  auto socket = sockets_.find(number);
  if (socket == sockets_.end()) return;
  backlog_ -= socket->second.waiting.size();
  sockets_.erase(socket);
  std::lock_guard lock(mutex_);
  open_.erase(number);
}

EventSockets::Unsent EventSockets::forget(uint64_t cookie) {
  Unsent unsent;
  if (auto lost = lost_.find(cookie); lost != lost_.end()) {
    unsent = lost->second;
    lost_.erase(lost);
  }
  for (auto& [number, socket] : sockets_) {
    backlog_ -= std::erase_if(socket.waiting, [&](const EventMessage& event) {
      bool ours = event.cookie() == cookie;
      if (ours) unsent.add(event);
      return ours;
    });
  }
  return unsent;
}

}  // namespace rocefs
