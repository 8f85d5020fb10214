// CardProcess: a mango-pccd as a child process: start, socket, end.
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
#include "pcc/card/output_lines.h"

namespace rocefs {

// Control thread.
class CardProcess {
 public:
  struct Program {
    std::string path;
    std::vector<std::string> arguments;  // without argv[0]
    bool stranger = false;               // runs as another user: does not get our environment
  };
  class Listener {
   public:
    virtual ~Listener() = default;
    // Datagram received; empty if it was too long or had descriptors. May destroy the process.
    virtual void card_said(std::string_view message) = 0;
    // Line that the process, or one of its children, has printed.
    virtual void card_printed(std::string_view line) = 0;
    // Process ended; the last callback. `how` is text such as `died of SIGFPE`. May destroy the
    // process.
    enum class End { kExit, kSignal, kCore };  // by a signal, with a core dump
    virtual void card_ended(std::string_view how, End end) = 0;
  };

  // Starts the program. It inherits its end of the socket as descriptor 3, and nothing else; a pipe
  // is its standard output and error.
  static Result<std::unique_ptr<CardProcess>> start(PollLoop& loop, const Program& program,
                                                    Listener& listener);
  // Kills the process and its children; the loop reaps them.
  ~CardProcess();

  pid_t pid() const { return pid_; }
  // Sends without blocking; false if the socket is full.
  bool send(std::string_view message, std::span<const int> descriptors);
  // Delivers what the process has printed so far; lines that come later are dropped.
  void take_output() { output_->finish(); }
  // Grants the process one second to end, then kills it.
  void await_end();

 private:
  static constexpr TimeNs kGrace = kSecond;
  static constexpr int kMaxMessagesAtOnce = 32;
  static constexpr int kMaxMessagesHeld = 1024;  // each takes at least 700 octets of kernel memory

  CardProcess(PollLoop& loop, Listener& listener, pid_t pid, Fd pidfd, Fd socket,
              std::unique_ptr<OutputLines> output);
  // Receives up to `most` messages; false if the process or this object is gone.
  bool take(int most);
  void unwatch_socket();
  void bury();

  PollLoop& loop_;
  Listener& listener_;
  const pid_t pid_;
  Fd pidfd_;
  StrangerFd socket_;  // the other end is untrusted
  std::unique_ptr<OutputLines> output_;
  LoopTimer grace_;
  std::vector<char> buffer_;
  // False after destruction; shared with callbacks.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// Path of the mango-pccd beside this program.
std::string own_pccd();

}  // namespace rocefs
