// RendezvousLine: a TCP connection between two mounts that carries lines of text both ways. The far
// end may be a stranger's: lines and silences are bounded.
//
// Control thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/fd.h"
#include "core/base/time.h"
#include "core/loop/loop_timer.h"
#include "core/loop/poll_loop.h"
#include "rdma/packet/datagram.h"

namespace rocefs {

class RendezvousLine : public std::enable_shared_from_this<RendezvousLine> {
 public:
  struct Handlers {
    // A line without its feed, of at most kMaxRendezvousLine octets.
    std::function<void(std::string_view line)> line;
    // Once, when the far end has gone or is too slow. Not after hang_up().
    std::function<void(const std::string& why)> ended;
  };
  RendezvousLine(PollLoop& loop, Fd socket, bool connecting, const UdpAddress& peer);
  ~RendezvousLine();

  // Handlers may hang up, and may drop the line.
  void open(Handlers handlers);
  // The handlers before run no more.
  void set_handlers(Handlers handlers) { handlers_ = std::move(handlers); }
  // A line, without its feed.
  void send(std::string_view line);
  // Ends the line unless one comes within `after`; 0: without a limit.
  void expect_within(TimeNs after);
  // Already sent lines still leave; nothing more is heard.
  void hang_up();
  // After a last line.
  void hang_up(std::string_view last) {
    send(last);
    hang_up();
  }

  // The line belongs to a flow until it is hung up.
  void carry_flow() { carries_flow_ = true; }

  bool open() const { return static_cast<bool>(socket_); }
  bool carries_flow() const { return carries_flow_ && !leaving_; }
  const UdpAddress& peer() const { return peer_; }
  // The address at this end, once it is connected.
  const Ip& local() const { return local_; }

 private:
  void ready();
  void connected();
  bool flush();
  void take_input();
  bool take_lines();
  void overdue();
  void end(const std::string& why);
  void close();

  PollLoop& loop_;
  Fd socket_;
  bool connecting_;
  bool leaving_ = false;  // hung up; the rest of the output leaves
  bool carries_flow_ = false;
  const UdpAddress peer_;
  Ip local_{};
  Handlers handlers_;
  std::string in_, out_;
  TimeNs patience_ = 0;
  LoopTimer timer_;
};
using RendezvousLinePtr = std::shared_ptr<RendezvousLine>;

}  // namespace rocefs
