// HostServer: answers the programs that make and enter hosts (rdma/uapi/host.h).
//
// Control thread.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "core/loop/engine.h"
#include "core/loop/loop_timer.h"
#include "core/loop/poll_loop.h"
#include "rdma/client/server.h"
#include "rdma/host/hosts.h"

namespace rocefs {

class HostServer {
 public:
  using Log = std::function<void(std::string_view)>;
  // `may_use`: whether a user may make and enter hosts. References outlive the server.
  HostServer(Engine& engine, PollLoop& loop, Hosts& hosts, std::function<bool(uid_t)> may_use,
             Log log);
  ~HostServer();

  // Takes over a connection that has said HOST_OPEN (ClientServer::hand_claims_to), and answers it.
  void take_over(ClientServer::Claim claim);

 private:
  static constexpr size_t kMaxPrograms = 1024;
  static constexpr TimeNs kMakersTime = 10 * kSecond;  // for the next step of a maker

  struct Program;
  using ProgramPtr = std::shared_ptr<Program>;

  Result<void> check(const ClientServer::Claim& claim) const;
  void take(const ProgramPtr& program);
  void handle(const ProgramPtr& program, const rocefs_host_request& request, StrangerFd attached);
  void enter(const ProgramPtr& program, Host& host);
  void attach(const ProgramPtr& program, Host& host, const StrangerFd& network);
  void detach(const ProgramPtr& program, Host& host);
  void build(const ProgramPtr& program, const rocefs_host_request& request, Host* host,
             StrangerFd attached);
  void serve_waiting();
  void make(const ProgramPtr& program);
  void drop_maker();
  void made(const ProgramPtr& program);
  void answer(const ProgramPtr& program, const Result<void>& result,
              rocefs_host_state state = ROCEFS_HOST_DONE);
  void answer_running(const ProgramPtr& program, const Host& host);
  void drop(const ProgramPtr& program);

  Engine& engine_;
  PollLoop& loop_;
  Hosts& hosts_;
  const std::function<bool(uid_t)> may_use_;
  const Log log_;
  std::list<ProgramPtr> programs_;  // in the order in which they came
  std::weak_ptr<Program> maker_;
  LoopTimer silence_;       // of the maker
  bool all_tried_ = false;  // a maker has come to its end, with or without success
};

}  // namespace rocefs
