// ProgramServer: the programs that set the windows of a device themselves (libmango's
// mango_pcc_create() in a user's program), as rdma/uapi/uapi.h has them. What a program holds, it
// holds by its socket: when that ends, for whatever reason, all is given back.
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

// Who decides about the devices. Control thread; answers come on it, at once or later.
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

  // Nobody else may set the device's windows until release(). ENODEV where there is no such device,
  // EBUSY where another does or has claimed it, EOPNOTSUPP under the virtual clock.
  virtual Result<void> claim(const std::string& device, const Program& program) = 0;
  // By who has claimed it. The pages are those of a new run, whose windows count from now on; their
  // descriptors are open until the answer has been given. EBUSY while one is under way.
  virtual void run(const std::string& device, uint64_t program, unsigned pollers,
                   Answer<Pages> answer) = 0;
  // Windows of the run count no more. Nothing where there is none.
  virtual void stop(const std::string& device, uint64_t program, Answer<void> answer) = 0;
  // Once, by who has claimed it, and the last that is heard of it: a run ends, one that is only
  // being begun too, and what is owed an answer need not be answered.
  virtual void release(const std::string& device, uint64_t program) = 0;
  // A line of the program's, by who has claimed it: so many a second, as LogLimit has it.
  virtual void program_log(const std::string& device, LogLevel level, std::string_view text) = 0;
};

// Control thread.
class ProgramServer {
 public:
  // Whether this user's programs may set windows, which are everybody's on the device.
  using MayClaim = std::function<bool(uid_t uid)>;
  // Loop and claims outlive it.
  ProgramServer(PollLoop& loop, PccClaims& claims, MayClaim may_claim)
      : loop_(loop), claims_(claims), may_claim_(std::move(may_claim)) {}
  // Releases what they hold.
  ~ProgramServer() { drop_all(); }

  // A connection that has said CLAIM (ClientServer::hand_claims_to); it is answered here.
  void take_over(ClientServer::Claim claim);
  // The device has left, or the program may not have it any more: its socket ends, and the claim is
  // released. Nothing where there is no such program.
  void revoke(uint64_t program);
  void drop_all();
  size_t count() const { return programs_.size(); }

 private:
  struct Connection;
  using ConnectionPtr = std::shared_ptr<Connection>;
  static constexpr size_t kMaxPrograms = 256;
  static constexpr size_t kKeptPrograms = 32;  // of these, for root and the daemon's own user
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
