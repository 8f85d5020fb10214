// EventSockets: the sockets through which a client hears of events. What has no room in one waits
// for it; of what is lost for that, whoever destroys the events' object is told.
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

// At most 16 bytes. The cookie of the object comes first; a completion's event is nothing else.
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

// Copy thread, where nothing else is said.
class EventSockets {
 public:
  // Control thread. The number of a socket that adopt() will be told of.
  uint32_t announce();
  // Any thread. False once it is closed, by us or at its other end.
  bool has(uint32_t number);
  // Any thread. How many are not closed.
  size_t count();

  void adopt(uint32_t number, Fd fd);
  void send(uint32_t number, const EventMessage& message);
  void close(uint32_t number);
  void close_all() { sockets_.clear(); }
  // Whether messages wait for room.
  bool waiting() const { return backlog_ > 0; }
  // Sends what waits, and lets go of those whose other end is closed.
  void sweep();
  // Takes back the events of `cookie` for which there was no room, and tells of those that were
  // lost for that.
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
    std::deque<EventMessage> waiting;  // for room in it
  };
  static constexpr size_t kMaxWaiting = 4096;
  static constexpr size_t kMaxLost = 4 * kMaxWaiting;  // objects whose losses are kept in mind

  void note_lost(const EventMessage& message);
  // False when its other end has closed it.
  bool send_waiting(Socket& socket);

  std::mutex mutex_;         // for what follows; held for moments only
  std::set<uint32_t> open_;  // the sockets that are not closed

  uint32_t next_ = 1;  // control thread
  std::map<uint32_t, Socket> sockets_;
  size_t backlog_ = 0;               // of all sockets
  std::map<uint64_t, Unsent> lost_;  // by cookie
};

}  // namespace rocefs
