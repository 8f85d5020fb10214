// ClientServer: the control thread's side of the client interface: accepts connections, reads
// requests, allocates their memory and passes them to the core. The protocol is rdma/uapi/uapi.h.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/limited_log.h"
#include "core/base/shares.h"
#include "core/loop/engine.h"
#include "core/loop/loop_timer.h"
#include "core/loop/poll_loop.h"
#include "core/process/closer.h"
#include "rdma/client/clients.h"
#include "rdma/client/lent_memory.h"

namespace rocefs {

// Control thread.
class ClientServer {
 public:
  // Writes a line to dmesg.
  using Log = std::function<void(std::string_view)>;
  // Before the engine starts. Engine and fabric outlive this object.
  static Result<std::unique_ptr<ClientServer>> create(Engine& engine, Fabric& fabric,
                                                      PollLoop& loop, Log log);
  ~ClientServer();

  // Serves clients that connect to a SOCK_SEQPACKET socket.
  void listen(Fd listener);
  // Before listen(): registers the receiver of connections whose first request is PCC_CLAIM,
  // CM_OPEN or HOST_OPEN. Without one they are refused.
  struct Claim {
    StrangerFd socket;
    Fd pidfd;  // readable once the process has died
    Credentials who;
    rocefs_request request;  // first request
  };
  using Claimed = std::function<void(Claim claim)>;
  void hand_claims_to(uint32_t op, Claimed claimed) { claimed_[op] = std::move(claimed); }
  // Core thread.
  Clients& clients() { return *clients_; }
  // Closes descriptors received from clients.
  const Closer& closer() const { return closer_; }
  // -1 if not listening.
  int listener() const { return listener_.get(); }
  // Accepts no more connections, in any process that has the socket; clients remain.
  void close_listener();
  // Drops every client.
  void drop_all();
  // After the engine has stopped. False while memory of a gone client still blocks: then no part of
  // the fabric may be freed.
  bool settle();

  size_t count() const { return connections_.size(); }

 private:
  struct Connection;
  using ConnectionPtr = std::shared_ptr<Connection>;
  static constexpr size_t kMaxClients = 256;
  static constexpr size_t kKeptClients = 32;  // reserved for root and the daemon's own user
  // Descriptors of a client besides its channels: both sockets, its process, its memory (two), its
  // doorbell, its regions, and a refused one.
  static constexpr size_t kOwnDescriptors = 8;
  static constexpr size_t kMaxUnclosed = 1024;         // lingering sockets before none is accepted
  static constexpr TimeNs kPause = 20 * kMillisecond;  // before the next attempt to accept
  // Memory of all clients' queues. The engine keeps posted receives in memory of its own, of about
  // that size.
  static constexpr size_t kMaxQueueBytes = size_t{8} << 30;
  static constexpr size_t kMaxSockets = 1100;  // per client: channels, and some that close

  ClientServer(Engine& engine, PollLoop& loop, std::unique_ptr<Clients> clients,
               std::shared_ptr<Fd> bell, Log log);
  void accept();
  // Accepts a pending connection, with its credentials. Empty, with errno, if there is none, or no
  // free descriptor.
  StrangerFd next_in_line(ucred& peer);
  void greet(StrangerFd& door, const ucred& peer);
  void serve(const ConnectionPtr& connection);
  void refuse(const StrangerFd& door, const ucred& peer, int code, std::string_view why);
  void say_refused(const Credentials& who, std::string_view why);
  Result<void> charge_channel(Connection& connection);
  void turn_back(const ConnectionPtr& connection, StrangerFd& attached, const Error& why);
  void answer_refused();
  void turn_away();
  void pause();
  void resume();
  void take(const ConnectionPtr& connection);
  void handle(const ConnectionPtr& connection, const rocefs_request& request, StrangerFd attached);
  void hand_over(const ConnectionPtr& connection, const rocefs_request& request);
  void hello(const ConnectionPtr& connection, const rocefs_hello& hello, StrangerFd events);
  Result<LentMemory::Memory> queues(Connection& connection, size_t size);
  Result<Client::Attachment> prepare(Connection& connection, const rocefs_request& request);
  Result<void> to_core(const ConnectionPtr& connection, const rocefs_request& request,
                       Client::Attachment attachment);
  Client::Reply replier(const ConnectionPtr& connection, std::vector<int> descriptors,
                        std::shared_ptr<SharedMemory> memory, const char* what);
  void report_failure(const Connection& connection, const char* what, const rocefs_answer& said);
  void answer(const ConnectionPtr& connection, const rocefs_answer& answer,
              const std::vector<int>& descriptors);
  void drop(const ConnectionPtr& connection, std::string_view why);
  void remove(uint64_t id);

  Engine& engine_;
  PollLoop& loop_;
  const std::unique_ptr<Clients> clients_;
  const Log log_;
  LimitedLog refusals_, failures_, programs_;
  const Closer closer_;
  const std::shared_ptr<Fd> bell_;  // rings when a refused descriptor is closed
  std::map<uint32_t, Claimed> claimed_;
  Fd listener_;
  Fd spare_;  // reserve, closed when no other is free
  LoopTimer pause_;
  Shares slots_{kMaxClients, kKeptClients};
  Shares descriptors_;
  Shares queue_bytes_{kMaxQueueBytes, kMaxQueueBytes / 8};
  uint64_t next_id_ = 1;
  std::map<uint64_t, ConnectionPtr> connections_;
  struct Gone {
    std::weak_ptr<Process> thread;
    Shares::Share slot, descriptors;
    std::vector<Shares::Share> channels;
  };
  std::vector<Gone> gone_;  // until their copy threads have ended
};

// Computes the layout of a request's queues or pages. EINVAL beyond the limits.
Result<rocefs_created> plan(const rocefs_request& request);

}  // namespace rocefs
