// UcmaServer: the control thread's side of librdmacm's channels (rdma/uapi/cm.h): reads commands,
// passes them to the core and sends the answers.
//
// Control thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string_view>

#include "core/base/limited_log.h"
#include "core/base/shares.h"
#include "core/loop/engine.h"
#include "core/loop/poll_loop.h"
#include "rdma/client/server.h"
#include "rdma/cm/ucma.h"

namespace rocefs {

class UcmaServer {
 public:
  static constexpr size_t kMaxChannels = 2048;
  static constexpr size_t kReservedChannels = 256;  // part of them, for root and the daemon's user

  using Log = std::function<void(std::string_view)>;
  // Devices of a process: those of the host that it runs on.
  using ScopeOf = std::function<CmScope(pid_t)>;
  // References outlive the server and all that it has posted.
  UcmaServer(
      Engine& engine, PollLoop& loop, Ucma& ucma, Log log,
      ScopeOf scope_of = [](pid_t) { return CmScope(); });
  ~UcmaServer();

  // Takes over a connection that has said CM_OPEN (ClientServer::hand_claims_to), and answers it.
  void take_over(ClientServer::Claim claim);
  // Closes all channels.
  void drop_all();
  size_t count() const { return channels_.size(); }

 private:
  struct Channel;
  using ChannelPtr = std::shared_ptr<Channel>;
  struct Command;

  Result<void> check(const ClientServer::Claim& claim, Channel& channel);
  void refuse(const Channel& channel, const Error& why);
  void open(const ChannelPtr& channel);
  void take(const ChannelPtr& channel);
  void handle(const ChannelPtr& channel, const Command& command);
  void answer(const ChannelPtr& channel, const Result<UcmaChannel::Reply>& reply);
  void drop(const ChannelPtr& channel, std::string_view why);

  Engine& engine_;
  PollLoop& loop_;
  Ucma& ucma_;
  LimitedLog refusals_, failures_;
  const ScopeOf scope_of_;
  Shares slots_{kMaxChannels, kReservedChannels};
  uint64_t next_id_ = 1;
  std::map<uint64_t, ChannelPtr> channels_;
};

}  // namespace rocefs
