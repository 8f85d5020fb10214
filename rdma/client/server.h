// ClientServer: the control thread's side of the client interface: it takes connections, reads
// requests, makes the memory that they need and hands them to the core. Its clients speak what
// rdma/uapi/uapi.h says.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/log_limit.h"
#include "core/base/shares.h"
#include "core/loop/engine.h"
#include "core/loop/loop_timer.h"
#include "core/loop/poll_loop.h"
#include "core/process/closer.h"
#include "rdma/client/clients.h"

namespace rocefs {

// Control thread.
class ClientServer {
 public:
  // Is told what dmesg should say.
  using Log = std::function<void(std::string_view)>;
  // Before the engine starts. Engine and fabric outlive it.
  static Result<std::unique_ptr<ClientServer>> create(Engine& engine, Fabric& fabric,
                                                      PollLoop& loop, Log log);
  ~ClientServer();

  // Serves whoever connects to a SOCK_SEQPACKET socket.
  void listen(Fd listener);
  // Before listen(): who takes over the connections whose first request is this one: PCC_CLAIM or
  // CM_OPEN. Without one they are refused.
  struct Claim {
    StrangerFd socket;
    Fd pidfd;  // readable once the process has died
    Credentials who;
    rocefs_request request;  // its first
  };
  using Claimed = std::function<void(Claim claim)>;
  void hand_claims_to(uint32_t op, Claimed claimed) { claimed_[op] = std::move(claimed); }
  // Closes what strangers have had a hand in.
  const Closer& closer() const { return closer_; }
  // -1 if there is none.
  int listener() const { return listener_.get(); }
  // Nobody else is taken, by no process that has the socket; who is there stays.
  void close_listener();
  // Every client goes.
  void drop_all();
  // After the engine has stopped. False while memory of a client that is gone still blocks: then
  // nothing of the fabric may be freed.
  bool settle();

  size_t count() const { return connections_.size(); }

 private:
  struct Connection;
  using ConnectionPtr = std::shared_ptr<Connection>;
  static constexpr size_t kMaxClients = 256;
  static constexpr size_t kKeptClients = 32;  // of these, for root and the daemon's own user
  // Descriptors that a client costs, beside its channels: both sockets, its process, its memory
  // (two), its doorbell, and one that is refused.
  static constexpr size_t kOwnDescriptors = 7;
  static constexpr size_t kMaxUnclosed = 1024;  // sockets that linger; then nobody else is taken
  static constexpr TimeNs kPause = 20 * kMillisecond;  // until there may be descriptors again
  static constexpr size_t kMaxSockets = 1100;  // of one client: its channels, and some that close
  static constexpr size_t kMaxRingBytes = size_t{512} << 20;  // of one client
  static constexpr size_t kMaxRegionBytes = size_t{4} << 30;  // of one client: its shared regions

  ClientServer(Engine& engine, PollLoop& loop, std::unique_ptr<Clients> clients, Log log);
  void accept();
  // Somebody who waits in line, with its credentials. Empty, with errno: there is none, or no
  // descriptor for it.
  StrangerFd next_in_line(ucred& peer);
  void greet(StrangerFd& door, const ucred& peer);
  void refuse(const StrangerFd& door, const ucred& peer, int code, std::string_view why);
  void say_refused(const Credentials& who, std::string_view why);
  bool charge_channel(const ConnectionPtr& connection, StrangerFd& attached);
  void turn_away();
  void pause();
  void resume();
  void take(const ConnectionPtr& connection);
  void handle(const ConnectionPtr& connection, const rocefs_request& request, StrangerFd attached);
  void hand_over(const ConnectionPtr& connection, const rocefs_request& request);
  void hello(const ConnectionPtr& connection, const rocefs_hello& hello, StrangerFd events);
  Result<Client::Attachment> prepare(Connection& connection, const rocefs_request& request);
  Result<void> to_core(const ConnectionPtr& connection, const rocefs_request& request,
                       Client::Attachment attachment);
  Client::Reply replier(const ConnectionPtr& connection, std::vector<int> descriptors,
                        std::shared_ptr<SharedMemory> memory);
  void answer(const ConnectionPtr& connection, const rocefs_answer& answer,
              const std::vector<int>& descriptors);
  void drop(const ConnectionPtr& connection, std::string_view why);
  void remove(uint64_t id);

  Engine& engine_;
  PollLoop& loop_;
  const std::unique_ptr<Clients> clients_;
  const Log log_;
  const Closer closer_;
  std::map<uint32_t, Claimed> claimed_;
  Fd listener_;
  Fd spare_;  // to be let go of when no other is left
  LoopTimer pause_;
  Shares slots_{kMaxClients, kKeptClients};
  Shares descriptors_;
  LogLimit refusals_;
  uint64_t next_id_ = 1;
  std::map<uint64_t, ConnectionPtr> connections_;
  struct Gone {
    std::weak_ptr<Process> thread;
    Shares::Share slot, descriptors;
    std::vector<Shares::Share> channels;
  };
  std::vector<Gone> gone_;  // until their copy threads have ended
};

// The queues or pages that a request asks for, laid out in their memory. EINVAL for what is past
// the limits.
Result<rocefs_created> plan(const rocefs_request& request);

}  // namespace rocefs
