// IoRing: the packet core's io_uring. One thread submits and reaps (SINGLE_ISSUER, DEFER_TASKRUN
// where the kernel has them); completions are queued by the kernel and dispatched in batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/base/result.h"
#include "core/base/task.h"
#include "core/base/time.h"

struct msghdr;
struct sockaddr;

namespace rocefs {

// Is told how a request ended. Whoever sends embeds one per message, so that sending allocates
// nothing.
class IoListener {
 public:
  // Owner thread: what the system call would return, a count or a negative errno; `flags` are for
  // the ring's own.
  virtual void completed(int result, uint32_t flags) = 0;

 protected:
  ~IoListener() = default;
};

// One that was received. All of it is the ring's, and gone when the listener returns.
struct Datagram {
  const sockaddr* from;
  std::span<uint8_t> control;  // ancillary data, as recvmsg(2) has it
  std::span<uint8_t> payload;
  bool truncated;  // there was more payload than a buffer holds
  // So many octets before the payload are the listener's as well, once it has read the rest.
  static constexpr size_t kHeadroom = 64;
};

class DatagramListener {
 public:
  virtual void received(const Datagram& datagram) = 0;
  // No more will come: an errno.
  virtual void receiving_ended(int code) = 0;

 protected:
  ~DatagramListener() = default;
};

class IoRing {
 public:
  // Any thread; fails with the reason where the kernel has no io_uring or a seccomp profile or
  // sysctl forbids it. The thread that then calls enable() owns the ring.
  static Result<std::unique_ptr<IoRing>> create(unsigned entries);
  ~IoRing();

  // Owner thread, once, before anything else.
  void enable();

  // `ready` runs whenever something comes to `fd`, whether or not it takes what is there.
  void watch(int fd, UniqueFunction<void()> ready);
  // The caller closes it only after this.
  void unwatch(int fd);

  // Owner thread, after enable(): sendmsg(2), without waiting for room: EAGAIN. The message and all
  // that it points to live until `done` is told. Messages leave in the order in which they were
  // asked for; those behind one that has found no room may find some.
  void send_message(int fd, const msghdr& message, IoListener& done);
  // Owner thread, after enable(): `done` is told once, when a socket has room to send.
  void await_room(int fd, IoListener& done);
  // Owner thread, after enable(): gives `listener` each datagram that comes to a socket, through
  // `buffers` (a power of two) that the kernel fills; of larger datagrams than `largest` the end is
  // missing. Until stop_receiving(), or receiving_ended(). An error that a socket tells once, as of
  // what ICMP says, does not end it.
  void receive_messages(int fd, unsigned buffers, size_t largest, DatagramListener& listener);
  // Any thread: whether the kernel can do that (Linux 6.0). ENOSYS with the reason.
  static Result<void> can_receive_messages();
  // Not from a listener. Listeners are told of what has come by now; that of `fd` hears no more
  // afterwards, and the caller may close it.
  void stop_receiving(int fd);

  // The kernel has everything that is prepared, descriptors may be closed. Dispatches nothing.
  void submit();
  // Submits what is prepared and dispatches what is complete, without waiting; a bounded number at
  // a time, wait() does not wait while there is more.
  void poll();
  // Submits and waits until something is complete, at most `timeout_ns` (kNever: for ever). What is
  // complete is left to poll().
  void wait(TimeNs timeout_ns);

 private:
  struct State;
  explicit IoRing(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace rocefs
