// SocketServer: serves the netlink sockets of processes under a filter (filter.h). Each is one end
// of a pair of unix sockets, so that poll(2), read(2) and close(2) work without help; calls that a
// unix socket would answer differently come by notification (seccomp_unotify(2)).
#pragma once

#include <linux/seccomp.h>

#include <cstdint>
#include <deque>
#include <list>
#include <string>
#include <vector>

#include "core/base/fd.h"
#include "tools/rocefs/netlink/asker.h"

namespace rocefs {

class SocketServer {
 public:
  explicit SocketServer(Fd listener) : listener_(std::move(listener)) {}

  // Returns when the last process under the filter has ended.
  void run();

 private:
  struct Session {
    Fd far;                           // our end
    uint64_t number;                  // of the asker's end in sockfs
    uint32_t port;                    // netlink port
    std::deque<std::string> waiting;  // answers for which the socket has no room
    size_t waiting_octets = 0;
  };
  // A recv(2) that waits for an answer.
  struct Receiver {
    seccomp_notif call;
    Asker asker;
    Fd near;  // the asker's end
  };
  // The end of a call, or its delay.
  struct Outcome {
    enum Kind { kDone, kContinue, kLater } kind = kDone;
    int64_t value = 0;  // negative: an errno
  };
  static constexpr Outcome kNotOurs{Outcome::kContinue, 0};

  void take_call();
  Outcome perform(const seccomp_notif& call);
  Outcome make_socket(const Asker& asker, const seccomp_notif& call);
  Outcome bind(Session& session, const Asker& asker, const seccomp_notif& call);
  Outcome show_name(const Session& session, const Asker& asker, const seccomp_notif& call);
  Outcome send(Session& session, const Asker& asker, const seccomp_notif& call);
  Outcome receive(const Asker& asker, const seccomp_notif& call, const Fd& near);
  void answer(Session& session, const Asker& asker, std::string_view datagram);
  void deliver(Session& session, std::string message);
  bool flush(Session& session);
  bool read_written(Session& session);
  void forget_dead_receivers();
  void retry(std::list<Receiver>::iterator receiver);
  void respond(uint64_t id, const Outcome& outcome);
  Session* find(uint64_t number);

  Fd listener_;
  std::list<Session> sessions_;
  std::list<Receiver> receivers_;
};

}  // namespace rocefs
