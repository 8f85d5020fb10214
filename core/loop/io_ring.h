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

struct iovec;
struct msghdr;
struct sockaddr;

namespace rocefs {

// Receives the result of a request. A sender embeds one per message, so that sending allocates
// nothing.
class IoListener {
 public:
  // Owner thread: the system call's result, a count or a negative errno; `flags` are for the ring's
  // own use.
  virtual void completed(int result, uint32_t flags) = 0;

 protected:
  ~IoListener() = default;
};

// IoOwner: an object whose memory requests refer to. The ring owns it, and destroys it when all its
// requests are done, or with the ring.
class IoOwner {
 public:
  virtual ~IoOwner() = default;
};

// A received datagram. Its memory belongs to the ring and is reused when the listener returns.
struct Datagram {
  const sockaddr* from;
  std::span<uint8_t> control;  // ancillary data, as recvmsg(2) has it
  std::span<uint8_t> payload;
  bool truncated;  // the payload was longer than a buffer
  // Octets before the payload that the listener may overwrite after reading the rest.
  static constexpr size_t kHeadroom = 64;
};

class DatagramListener {
 public:
  virtual void received(const Datagram& datagram) = 0;
  // Reception has ended with this errno.
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

  // Owner thread, once, before all other calls.
  void enable();

  // `ready` runs whenever data comes to `fd`, whether or not it reads it.
  void watch(int fd, UniqueFunction<void()> ready);
  // Must precede close(2) of `fd`.
  void unwatch(int fd);

  // Owner thread, after enable(): sendmsg(2), without waiting for room: EAGAIN. The message and the
  // memory it points to live until `done` is called. Messages leave in the order of the calls; a
  // later message may find room after an earlier one has found none.
  void send_message(int fd, const msghdr& message, IoListener& done);
  // Owner thread, after enable(): calls `done` once, when a socket has room to send.
  void await_room(int fd, IoListener& done);
  // Owner thread, after enable(): gives `listener` each datagram of a socket, in one of `buffers`
  // (a power of two) that the kernel fills; datagrams longer than `largest` are truncated. Until
  // stop_receiving() or receiving_ended(). An error that a socket reports once, as for ICMP, does
  // not end it.
  void receive_messages(int fd, unsigned buffers, size_t largest, DatagramListener& listener);
  // Any thread: whether the kernel supports receive_messages() (Linux 6.0). ENOSYS with the reason.
  static Result<void> can_receive_messages();
  // Not from a listener. Dispatches the completions received so far; the listener of `fd` is not
  // called afterwards, and the caller may close `fd`.
  void stop_receiving(int fd);

  // Owner thread, after enable(): read(2) and writev(2) of a descriptor that a poll can wait for.
  // The memory is that of an adopted owner, and lives until `done` is called. kAtOnce: EAGAIN where
  // a read would wait; such reads are done in the order of the calls.
  enum class Wait { kAtOnce, kForData };
  void read(int fd, std::span<uint8_t> into, Wait wait, IoListener& done);
  void write(int fd, std::span<const iovec> from, IoListener& done);
  // Ends a request soon: `done` is called still, with ECANCELED if it was not done.
  void cancel(IoListener& done);
  // Owner thread, or before enable().
  void adopt(std::unique_ptr<IoOwner> owner);
  // Destroys an owner without requests after the listener that runs has returned.
  void release(IoOwner& owner);

  // Passes all prepared requests to the kernel, so that descriptors may be closed. Dispatches
  // nothing.
  void submit();
  // Submits prepared requests and dispatches completions, without waiting; a bounded number at a
  // time: wait() returns at once while there are more.
  void poll();
  // Submits and waits for a completion, at most `timeout_ns` (kNever: no limit). poll() dispatches
  // it.
  void wait(TimeNs timeout_ns);

 private:
  struct State;
  explicit IoRing(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace rocefs
