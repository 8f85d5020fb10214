// ProgramServer: user programs that set a device's windows themselves (mango_pcc_create() of
// libmango); protocol in rdma/uapi/uapi.h. The socket holds the claim: when it ends, for any
// reason, the claim is released.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/fd.h"
#include "core/base/log_limit.h"
#include "core/base/shares.h"
#include "core/loop/poll_loop.h"
#include "core/takeover/shared_memory.h"
#include "core/tree/dmesg.h"
#include "core/tree/file.h"
#include "rdma/client/server.h"
#include "rdma/uapi/uapi.h"

namespace rocefs {

// Decides about claims of devices. Control thread; answers come on it, at once or later.
class PccClaims {
 public:
  struct Program {
    uint64_t id = 0;
    pid_t pid = 0;
    std::string comm;
  };
  struct Pages {
    std::shared_ptr<SharedMemory> signals, control;
  };
  virtual ~PccClaims() = default;

  // Grants exclusive use of the device's windows until release(). ENODEV: no such device. EBUSY: in
  // use or claimed. EOPNOTSUPP: virtual clock.
  virtual Result<void> claim(const std::string& device, const Program& program) = 0;
  // Starts a run for the holder of the claim. The pages are those of a new run, with descriptors
  // that stay open until the answer has been sent. EBUSY while a run is active.
  virtual void run(const std::string& device, uint64_t program, unsigned pollers,
                   Answer<Pages> answer) = 0;
  // Ends the run; its windows have no effect any more. No-op without a run.
  virtual void stop(const std::string& device, uint64_t program, Answer<void> answer) = 0;
  // Releases the claim; the holder's last call. Ends a run, also one that is starting; pending
  // answers may be dropped.
  virtual void release(const std::string& device, uint64_t program) = 0;
  // Log line of the program that holds the claim, rate-limited by LogLimit.
  virtual void program_log(const std::string& device, LogLevel level, std::string_view text) = 0;
};

// Control thread.
class ProgramServer {
 public:
  // True if programs of this user may set windows, which affect all users of the device.
  using MayClaim = std::function<bool(uid_t uid)>;
  // Loop and claims outlive the server.
  ProgramServer(PollLoop& loop, PccClaims& claims, MayClaim may_claim)
      : loop_(loop), claims_(claims), may_claim_(std::move(may_claim)) {}
  // Releases all claims.
  ~ProgramServer() { drop_all(); }

  // Takes over a connection that sent CLAIM (ClientServer::hand_claims_to), and answers it.
  void take_over(ClientServer::Claim claim);
  // Closes a program's socket and releases its claim; the device is leaving, or the permission
  // ended. No-op for an unknown program.
  void revoke(uint64_t program);
  void drop_all();
  size_t count() const { return programs_.size(); }

 private:
  struct Connection;
  using ConnectionPtr = std::shared_ptr<Connection>;
  static constexpr size_t kMaxPrograms = 256;
  static constexpr size_t kKeptPrograms = 32;  // of these, reserved for root and the daemon's user
  static constexpr int kMaxMessagesAtOnce = 32;

  void take(const ConnectionPtr& connection);
  void handle(const ConnectionPtr& connection, const rocefs_request& request);
  void run(const ConnectionPtr& connection, unsigned pollers);
  void stop(const ConnectionPtr& connection);
  Result<void> admit(Connection& connection, const Credentials& who);
  Error refuse_user(const Connection& connection, Error why);
  bool warn(const Connection& connection, const std::string& text);
  void log(Connection& connection, const rocefs_pcc_log& log);
  void answer(const ConnectionPtr& connection, const Result<void>& result,
              const PccClaims::Pages& pages = {});
  void drop(const ConnectionPtr& connection);

  PollLoop& loop_;
  PccClaims& claims_;
  const MayClaim may_claim_;
  Shares slots_{kMaxPrograms, kKeptPrograms};
  LogLimit refusals_;
  uint64_t next_id_ = 1;
  std::map<uint64_t, ConnectionPtr> programs_;
};

}  // namespace rocefs
