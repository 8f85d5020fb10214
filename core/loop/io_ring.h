// IoRing: CoreIo by io_uring. One thread submits and reaps (SINGLE_ISSUER, DEFER_TASKRUN where the
// kernel has them); completions are queued by the kernel.
#pragma once

#include <memory>

#include "core/loop/core_io.h"

namespace rocefs {

class IoRing final : public CoreIo {
 public:
  // Fails with the reason where the kernel has no io_uring or a seccomp profile or sysctl forbids
  // it.
  static Result<std::unique_ptr<IoRing>> create(unsigned entries);
  ~IoRing() override;

  IoKind kind() const override { return IoKind::kIoUring; }
  void enable() override;
  void watch(int fd, UniqueFunction<void()> ready) override;
  void unwatch(int fd) override;
  void send_message(int fd, const msghdr& message, IoListener& done) override;
  void await_room(int fd, IoListener& done) override;
  void receive_messages(int fd, unsigned buffers, size_t largest,
                        DatagramListener& listener) override;
  // Needs Linux 6.0.
  Result<void> can_receive_messages() const override;
  void stop_receiving(int fd) override;
  void read(int fd, std::span<uint8_t> into, Wait wait, IoListener& done) override;
  void write(int fd, std::span<const iovec> from, IoListener& done) override;
  void cancel(IoListener& done) override;
  void adopt(std::unique_ptr<IoOwner> owner) override;
  void release(IoOwner& owner) override;
  void submit() override;
  void poll() override;
  void wait(TimeNs timeout_ns) override;

 private:
  struct State;
  explicit IoRing(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace rocefs
