// PollIo: CoreIo by epoll(7) and system calls that do not block. Needs no io_uring, and any kernel
// that rocefs runs on.
#pragma once

#include <memory>

#include "core/loop/core_io.h"

namespace rocefs {

class PollIo final : public CoreIo {
 public:
  // Fails without descriptors.
  static Result<std::unique_ptr<PollIo>> create();
  ~PollIo() override;

  IoKind kind() const override { return IoKind::kPoll; }
  void enable() override {}
  void watch(int fd, UniqueFunction<void()> ready) override;
  void unwatch(int fd) override;
  void send_message(int fd, const msghdr& message, IoListener& done) override;
  void await_room(int fd, IoListener& done) override;
  void receive_messages(int fd, unsigned buffers, size_t largest,
                        DatagramListener& listener) override;
  Result<void> can_receive_messages() const override { return {}; }
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
  explicit PollIo(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace rocefs
