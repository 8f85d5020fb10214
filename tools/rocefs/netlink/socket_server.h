// SocketServer: serves the netlink sockets of processes under a filter (filter.h). Each is one end
// of a pair of unix sockets, so that poll(2), read(2) and close(2) work without help; calls that a
// unix socket would answer differently come by notification (seccomp_unotify(2)).
#pragma once

#include <linux/seccomp.h>

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "core/base/fd.h"
#include "core/base/shares.h"
#include "tools/rocefs/netlink/asker.h"
#include "tools/rocefs/netlink/session.h"
#include "tools/rocefs/netlink/user_threads.h"

namespace rocefs {

// The asker's memory and files are looked at on the thread of its user alone: both may be in a file
// system that never answers. All else, on the main thread, never waits for an asker.
class SocketServer {
 public:
  explicit SocketServer(Fd listener);
  SocketServer(const SocketServer&) = delete;
  // Users' threads go on after run(): end the process instead.
  ~SocketServer() = delete;

  // Returns when the last process under the filter has ended.
  void run();

 private:
  // A call on one of our sockets.
  struct Call {
    seccomp_notif notif;
    Asker asker;
    Asker::User user;
    bool privileged;
    std::shared_ptr<Session> session;
    Shares::Share share;  // of our descriptors
    Fd near;              // the asker's end, for a call that receives
  };
  using CallPtr = std::shared_ptr<Call>;
  // The end of a call, or its delay.
  struct Outcome {
    enum Kind { kDone, kContinue, kLater } kind = kDone;
    int64_t value = 0;  // negative: an errno
  };
  static constexpr Outcome kNotOurs{Outcome::kContinue, 0};

  // ---- Main thread ----
  void take_call();
  Outcome begin(const seccomp_notif& notif);
  Outcome make_socket(const Asker& asker, const seccomp_notif& notif);
  Outcome post(CallPtr call);
  bool read_written(Session& session);
  void take_receivers();
  std::shared_ptr<Session> find(uint64_t number);

  // ---- Threads of users ----
  void work(const CallPtr& call);
  Outcome perform(Call& call);
  Outcome bind(Call& call);
  Outcome show_name(Call& call);
  Outcome send(Call& call);
  int answer(Call& call, std::string_view datagram);
  Outcome receive(Call& call);

  // ---- Any thread ----
  void respond(uint64_t id, const Outcome& outcome);
  void wake();

  Fd listener_, wakeup_;
  Shares descriptors_;
  Shares waiting_octets_;
  UserThreads threads_;
  std::list<std::shared_ptr<Session>> sessions_;
  std::list<CallPtr> receivers_;  // recv(2) that wait for an answer
  std::mutex mutex_;
  std::vector<CallPtr> new_receivers_;  // under mutex_
};

}  // namespace rocefs
