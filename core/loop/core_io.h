// CoreIo: the packet core's input and output. Requests are prepared, passed on in batches, and
// their completions are queued and dispatched in batches. IoRing does it by io_uring; PollIo by
// epoll(7) and calls that do not block, where io_uring may not be used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

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
  // Owner thread: the system call's result, a count or a negative errno; `flags` are for the own
  // use of CoreIo. Never within the call that makes the request.
  virtual void completed(int result, uint32_t flags) = 0;

 protected:
  ~IoListener() = default;
};

// IoOwner: an object whose memory requests refer to. CoreIo owns it, and destroys it when all its
// requests are done, or with itself.
class IoOwner {
 public:
  virtual ~IoOwner() = default;
};

// A received datagram. Its memory belongs to CoreIo and is reused when the listener returns.
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

enum class IoKind { kIoUring, kPoll };
// As ROCEFS_LOOP has it.
constexpr std::string_view name(IoKind kind) {
  return kind == IoKind::kPoll ? "poll" : "io_uring";
}

// Made by any thread; the thread that then calls enable() owns it.
class CoreIo {
 public:
  virtual ~CoreIo() = default;
  virtual IoKind kind() const = 0;

  // Owner thread, once, before all other calls.
  virtual void enable() = 0;

  // `ready` runs whenever data comes to `fd`, whether or not it reads it.
  virtual void watch(int fd, UniqueFunction<void()> ready) = 0;
  // Must precede close(2) of `fd`.
  virtual void unwatch(int fd) = 0;

  // Owner thread, after enable(): sendmsg(2), without waiting for room: EAGAIN. The message and the
  // memory it points to live until `done` is called. Messages leave in the order of the calls; a
  // later message may find room after an earlier one has found none.
  virtual void send_message(int fd, const msghdr& message, IoListener& done) = 0;
  // Owner thread, after enable(): calls `done` once, when a socket has room to send.
  virtual void await_room(int fd, IoListener& done) = 0;
  // Owner thread, after enable(): gives `listener` each datagram of a socket, in one of `buffers`
  // (a power of two); datagrams longer than `largest` are truncated. Until stop_receiving() or
  // receiving_ended(). An error that a socket reports once, as for ICMP, does not end it.
  virtual void receive_messages(int fd, unsigned buffers, size_t largest,
                                DatagramListener& listener) = 0;
  // Any thread: whether receive_messages() works here. ENOSYS with the reason.
  virtual Result<void> can_receive_messages() const = 0;
  // Not from a listener. Dispatches the completions received so far; the listener of `fd` is not
  // called afterwards, and the caller may close `fd`.
  virtual void stop_receiving(int fd) = 0;

  // Owner thread, after enable(): read(2) and writev(2) of a descriptor that a poll can wait for.
  // The memory is that of an adopted owner, and lives until `done` is called. kAtOnce: EAGAIN where
  // a read would wait; such reads are done in the order of the calls.
  enum class Wait { kAtOnce, kForData };
  virtual void read(int fd, std::span<uint8_t> into, Wait wait, IoListener& done) = 0;
  virtual void write(int fd, std::span<const iovec> from, IoListener& done) = 0;
  // Ends a request soon: `done` is called still, with ECANCELED if it was not done.
  virtual void cancel(IoListener& done) = 0;
  // Owner thread, or before enable().
  virtual void adopt(std::unique_ptr<IoOwner> owner) = 0;
  // Destroys an owner without requests after the listener that runs has returned.
  virtual void release(IoOwner& owner) = 0;

  // Passes all prepared requests to the kernel, so that descriptors may be closed. Dispatches
  // nothing.
  virtual void submit() = 0;
  // Submits prepared requests and dispatches completions, without waiting; a bounded number at a
  // time: wait() returns at once while there are more.
  virtual void poll() = 0;
  // Submits and waits for a completion, at most `timeout_ns` (kNever: no limit). poll() dispatches
  // it.
  virtual void wait(TimeNs timeout_ns) = 0;
};

}  // namespace rocefs
