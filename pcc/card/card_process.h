// CardProcess: a mango-pccd as the daemon has it: a child, a socket to it, and its end.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/fd.h"
#include "core/base/result.h"
#include "core/loop/loop_timer.h"
#include "core/loop/poll_loop.h"
#include "core/process/closer.h"

namespace rocefs {

// Control thread.
class CardProcess {
 public:
  struct Program {
    std::string path;
    std::vector<std::string> arguments;  // without its name
    bool stranger = false;  // it will be another user: our environment and output are not for it
  };
  class Listener {
   public:
    virtual ~Listener() = default;
    // A datagram; empty for one that is too long to be any, or has descriptors. May destroy the
    // process.
    virtual void card_said(std::string_view message) = 0;
    // Once, and the last: how it ended, for people: `died of SIGFPE`. May destroy the process.
    virtual void card_ended(std::string_view how, bool by_signal) = 0;
  };

  // It inherits its end of the socket as descriptor 3, standard output and error unless it is a
  // stranger, and nothing else.
  static Result<std::unique_ptr<CardProcess>> start(PollLoop& loop, const Program& program,
                                                    Listener& listener);
  // Kills it if it lives, and what it has started; whoever has the loop buries it.
  ~CardProcess();

  pid_t pid() const { return pid_; }
  // At once, or not at all: false when it does not take its messages.
  bool send(std::string_view message, std::span<const int> descriptors);
  // It is about to end: if it has not in a second, it is killed.
  void await_end();

 private:
  static constexpr TimeNs kGrace = kSecond;
  static constexpr int kMaxMessagesAtOnce = 32;
  static constexpr int kMaxMessagesHeld = 1024;  // each takes the kernel some 700 octets at least

  CardProcess(PollLoop& loop, Listener& listener, pid_t pid, Fd pidfd, Fd socket);
  // Up to `most` messages; false when the process is no more, or this.
  bool take(int most);
  void unwatch_socket();
  void bury();

  PollLoop& loop_;
  Listener& listener_;
  const pid_t pid_;
  Fd pidfd_;
  StrangerFd socket_;  // its other end is whatever runs in the process
  LoopTimer grace_;
  std::vector<char> buffer_;
  // Told to handlers, which may find that this is gone.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// The mango-pccd that belongs to this program: the one beside it.
std::string own_pccd();

}  // namespace rocefs
