// EventSockets: the sockets that carry a client's events. Events wait for room in their socket;
// lost ones are counted for the destruction of their object.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <span>

#include "core/base/fd.h"

namespace rocefs {

// At most 16 bytes. Begins with the object's cookie, which is all of a completion event.
class EventMessage {
 public:
  EventMessage() = default;
  explicit EventMessage(std::span<const uint8_t> bytes);
  std::span<const uint8_t> bytes() const { return {bytes_.data(), length_}; }
  uint64_t cookie() const;
  bool is_completion() const { return length_ == sizeof(uint64_t); }

 private:
  std::array<uint8_t, 16> bytes_{};
  uint8_t length_ = 0;
};

// Copy thread, unless stated otherwise.
class EventSockets {
 public:
  // Control thread. Reserves the number of a socket for adopt().
  uint32_t announce();
  // Any thread. False once it is closed, at either end.
  bool has(uint32_t number);
  // Any thread. Number of open sockets.
  size_t count();

  void adopt(uint32_t number, Fd fd);
  void send(uint32_t number, const EventMessage& message);
  void close(uint32_t number);
  void close_all() { sockets_.clear(); }
  // Whether messages wait for room.
  bool waiting() const { return backlog_ > 0; }
  // Sends waiting messages, and closes sockets whose other end is closed.
  void sweep();
  // Removes waiting events of `cookie`, and returns their number and that of lost ones.
  struct Unsent {
    uint32_t completions = 0;
    uint32_t asynchronous = 0;
    void add(const EventMessage& message) {
      ++(message.is_completion() ? completions : asynchronous);
    }
  };
  Unsent forget(uint64_t cookie);

 private:
  struct Socket {
    Fd fd;
    std::deque<EventMessage> waiting;  // for room in the socket
  };
  static constexpr size_t kMaxWaiting = 4096;
  static constexpr size_t kMaxLost = 4 * kMaxWaiting;  // objects with lost events

  void note_lost(const EventMessage& message);
  // False if the other end is closed.
  bool send_waiting(Socket& socket);

  std::mutex mutex_;         // protects the members below; held briefly
  std::set<uint32_t> open_;  // open sockets

  uint32_t next_ = 1;  // control thread
  std::map<uint32_t, Socket> sockets_;
  size_t backlog_ = 0;               // messages in all sockets
  std::map<uint64_t, Unsent> lost_;  // by cookie
};

}  // namespace rocefs
