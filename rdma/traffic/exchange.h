// Exchange: where mounts that are joined by an uplink tell each other of flows, before a packet
// can: a TCP listener at each address of the uplink, and connections from these addresses. Whoever
// connects is a stranger: lines, connections and silences are bounded.
//
// On the control thread.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/fd.h"
#include "core/base/result.h"
#include "core/loop/loop_timer.h"
#include "core/loop/poll_loop.h"
#include "rdma/packet/datagram.h"

namespace rocefs {

// One connection, which carries lines both ways.
class ExchangeLine : public std::enable_shared_from_this<ExchangeLine> {
 public:
  struct Handlers {
    // A line without its feed, of at most kMaxExchangeLine octets.
    std::function<void(std::string_view line)> line;
    // Once, when the far end has gone or is too slow. Not after hang_up().
    std::function<void(const std::string& why)> ended;
  };
  ExchangeLine(PollLoop& loop, Fd socket, bool connecting, const UdpAddress& peer);
  ~ExchangeLine();

  // Handlers may hang up, and may let go of the line.
  void open(Handlers handlers);
  // No handler runs any more.
  void set_handlers(Handlers handlers) { handlers_ = std::move(handlers); }
  // A line, without its feed.
  void send(std::string_view line);
  // It ends unless a line comes within `after`; 0: it may take as long as it likes.
  void expect_within(TimeNs after);
  // What was sent still leaves; nothing more is heard.
  void hang_up();
  // After a last line.
  void hang_up(std::string_view last) {
    send(last);
    hang_up();
  }

  // It is a flow's until it is hung up.
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
  bool leaving_ = false;  // hung up; what is left of the output goes
  bool carries_flow_ = false;
  const UdpAddress peer_;
  Ip local_{};
  Handlers handlers_;
  std::string in_, out_;
  TimeNs patience_ = 0;
  LoopTimer timer_;
};
using ExchangeLinePtr = std::shared_ptr<ExchangeLine>;

class Exchange {
 public:
  static constexpr size_t kMaxLines = 128;  // at a time, of those that came from others
  static constexpr TimeNs kFirstLine = 5 * kSecond;

  using Warn = std::function<void(const std::string&)>;
  // `arrived` has the line's handlers to set; it expects a first line within kFirstLine.
  using Arrived = std::function<void(const ExchangeLinePtr&)>;
  Exchange(PollLoop& loop, std::vector<Ip> addresses, Arrived arrived, Warn warn);
  ~Exchange();

  // Listens there, and nowhere else any more; 0: nowhere. What cannot be is warned of, and tried
  // again each second. Connections that there are stay.
  void listen(uint16_t port);
  // EADDRNOTAVAIL and the like; whether somebody listens there the line tells.
  Result<ExchangeLinePtr> connect(const Ip& from, const UdpAddress& to);
  // A line for each address: whether it listens. Connections.
  std::string text() const;
  uint16_t port() const { return port_; }
  bool serves(const Ip& address) const;

 private:
  struct Listener {
    Ip address;
    Fd socket;
    std::string trouble;
  };

  void take(Listener& listener);
  bool make_room(const Ip& peer);
  void wait_for_descriptors(Listener& listener);
  void open(Listener& listener);
  void watch(Listener& listener);
  void listen_again();

  PollLoop& loop_;
  Arrived arrived_;
  Warn warn_;
  uint16_t port_ = 0;
  std::vector<Listener> listeners_;
  std::list<ExchangeLinePtr>
      lines_;  // the oldest first; those that have ended leave when others come
  std::list<ExchangeLinePtr> own_;  // those that were connected here
  bool short_ = false;              // of descriptors, and it was told
  LoopTimer again_;
};

}  // namespace rocefs
