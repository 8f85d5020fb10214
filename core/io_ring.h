// IoRing: the packet core's io_uring. One thread submits and reaps (SINGLE_ISSUER, DEFER_TASKRUN
// where the kernel has them); completions are queued by the kernel and dispatched in batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/result.h"
#include "core/task.h"
#include "core/time.h"

namespace rocefs {

class IoRing {
 public:
  // Any thread; fails with the reason where the kernel has no io_uring or a seccomp profile or
  // sysctl forbids it. The thread that then calls enable() owns the ring.
  static Result<std::unique_ptr<IoRing>> create(unsigned entries);
  ~IoRing();

  // Owner thread, once, before anything else.
  void enable();

  // `result` is what the system call would return: a count, or a negative errno.
  using Completion = UniqueFunction<void(int result)>;

  // Writes at `offset` of a regular file. `data` stays the caller's and must live until `done`.
  // The kernel's workers do it, so that a slow disk does not hold up the owner.
  void write(int fd, const void* data, size_t size, uint64_t offset, Completion done);
  // `ready` runs whenever something comes to `fd`, whether or not it takes what is there.
  void watch(int fd, UniqueFunction<void()> ready);
  // The caller closes it only after this.
  void unwatch(int fd);

  // Submits what is prepared and dispatches what is complete, without waiting.
  void poll();
  // The same, but waits for a completion, at most `timeout_ns` (kNever: for ever).
  void wait(TimeNs timeout_ns);

 private:
  struct State;
  explicit IoRing(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace rocefs
