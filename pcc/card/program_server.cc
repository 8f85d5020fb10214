#include "pcc/card/program_server.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/base/passed_descriptors.h"
#include "core/base/text.h"
#include "core/process/stranger_socket.h"

namespace rocefs {
namespace {

constexpr unsigned kMaxPollers = 64;

template <size_t N>
std::string text_of(const char (&field)[N]) {
  return std::string(field, ::strnlen(field, N));
}

}  // namespace

// State of a connection. Any state -> end of the socket, in drop().
//
//   kUnclaimed --claim granted--> kIdle --request--> kAnswering
//                                   <----answer------
struct ProgramServer::Connection {
  enum class State : uint8_t { kUnclaimed, kIdle, kAnswering };

  PccClaims::Program program;
  std::string device;
  StrangerFd socket;
  Fd pidfd;
  LogLimits<kLogLevels> log_limits;
  Shares::Share slot;
  State state = State::kUnclaimed;
};

void ProgramServer::take_over(ClientServer::Claim claim) {
  const rocefs_pcc_claim& said = claim.request.u.claim;
  auto connection = std::make_shared<Connection>();
  connection->program = {next_id_++, claim.who.pid, program_name({said.comm, sizeof said.comm})};
  connection->device = text_of(said.device);
  connection->socket = std::move(claim.socket);
  connection->pidfd = std::move(claim.pidfd);
  Result<void> result;
  if (said.magic != ROCEFS_UAPI_MAGIC) {
    result = Error{EPROTO, "the first request has no magic number"};
  } else {
    result = admit(*connection, claim.who);
  }
  if (result) result = claims_.claim(connection->device, connection->program);
  if (result) connection->state = Connection::State::kIdle;
  programs_[connection->program.id] = connection;
  loop_.watch(connection->socket.get(), [this, connection] { take(connection); });
  loop_.watch(connection->pidfd.get(), [this, connection] { drop(connection); });
  answer(connection, result);
  if (!result) drop(connection);  // the program can still read the error
}

// Same permission as for writing pcc/state.
Result<void> ProgramServer::admit(Connection& connection, const Credentials& who) {
  if (!may_claim_(who.uid)) {
    return refuse_user(connection, errorf(EPERM,
                                          "user {} may not set windows: the mount is neither his "
                                          "nor has allow_pcc",
                                          who.uid));
  }
  connection.slot = slots_.take(who.uid, who.privileged());
  if (connection.slot) return {};
  return refuse_user(connection,
                     errorf(EUSERS, "user {} has its share of {} programs", who.uid, kMaxPrograms));
}

Error ProgramServer::refuse_user(const Connection& connection, Error why) {
  auto say = [&](const std::string& text) { return warn(connection, "refusals: " + text); };
  if (!refusals_.admit(monotonic_ns(), say)) return why;
  const auto& [id, pid, comm] = connection.program;
  warn(connection, fmt::format("{} (pid {}) is refused: {}", comm, pid, why.reason));
  return why;
}

void ProgramServer::revoke(uint64_t program) {
  auto found = programs_.find(program);
  if (found != programs_.end()) drop(ConnectionPtr(found->second));
}

void ProgramServer::drop_all() {
  while (!programs_.empty()) drop(ConnectionPtr(programs_.begin()->second));
}

void ProgramServer::take(const ConnectionPtr& given) {
  ConnectionPtr connection = given;
  for (int i = 0; connection->socket && i < kMaxMessagesAtOnce; ++i) {
    rocefs_request request{};
    StrangerMessage message = receive_from_stranger(connection->socket, bytes_of(request), false);
    if (message.kind == StrangerMessage::Kind::kNothing) return;
    bool whole = message.kind == StrangerMessage::Kind::kReceived && message.size == sizeof request;
    if (!whole) return drop(connection);
    handle(connection, request);
  }
}

void ProgramServer::handle(const ConnectionPtr& connection, const rocefs_request& request) {
  if (request.op == ROCEFS_OP_PCC_LOG) return log(*connection, request.u.log);
  if (connection->state != Connection::State::kIdle) return drop(connection);
  connection->state = Connection::State::kAnswering;
  switch (request.op) {
    case ROCEFS_OP_PCC_RUN:
      return run(connection, request.u.run.pollers);
    case ROCEFS_OP_PCC_STOP:
      return stop(connection);
    default:
      return drop(connection);
  }
}

void ProgramServer::run(const ConnectionPtr& connection, unsigned pollers) {
  if (pollers == 0 || pollers > kMaxPollers) {
    return answer(connection, errorf(EINVAL, "pollers: 1 to {}, not {}", kMaxPollers, pollers));
  }
  std::weak_ptr<Connection> who = connection;
  claims_.run(connection->device, connection->program.id, pollers,
              [this, who](Result<PccClaims::Pages> pages) {
                ConnectionPtr there = who.lock();
                if (!there || !there->socket) return;
                if (!pages) return answer(there, pages.error());
                answer(there, {}, *pages);
              });
}

void ProgramServer::stop(const ConnectionPtr& connection) {
  std::weak_ptr<Connection> who = connection;
  claims_.stop(connection->device, connection->program.id, [this, who](Result<void> result) {
    ConnectionPtr there = who.lock();
    if (there && there->socket) answer(there, result);
  });
}

bool ProgramServer::warn(const Connection& connection, const std::string& text) {
  claims_.program_log(connection.device, LogLevel::kWarning, text);
  return true;
}

void ProgramServer::log(Connection& connection, const rocefs_pcc_log& log) {
  const size_t level = std::min<size_t>(log.level, kLogLevels - 1);
  auto say = [&](const std::string& text) {
    claims_.program_log(connection.device, static_cast<LogLevel>(level), text);
    return true;
  };
  if (connection.log_limits[level].admit(monotonic_ns(), say)) say(text_of(log.text));
}

void ProgramServer::answer(const ConnectionPtr& connection, const Result<void>& result,
                           const PccClaims::Pages& pages) {
  if (connection->state == Connection::State::kAnswering) {
    connection->state = Connection::State::kIdle;
  }
  rocefs_answer said{};
  if (!result) {
    const Error& why = result.error();
    said.error = why.code;
    std::memcpy(said.u.reason, why.reason.data(),
                std::min(why.reason.size(), sizeof said.u.reason - 1));
  }
  std::vector<int> passed;
  if (pages.signals) passed = {pages.signals->descriptor(), pages.control->descriptor()};
  if (!send_at_once(connection->socket.get(), said, passed)) drop(connection);
}

void ProgramServer::drop(const ConnectionPtr& given) {
  ConnectionPtr connection = given;
  if (!connection->socket) return;
  loop_.unwatch(connection->socket.get());
  loop_.unwatch(connection->pidfd.get());
  connection->socket.hang_up();
  programs_.erase(connection->program.id);
  if (std::exchange(connection->state, Connection::State::kUnclaimed) !=
      Connection::State::kUnclaimed) {
    for (size_t level = 0; level < kLogLevels; ++level) {
      connection->log_limits[level].settle([&](const std::string& text) {
        claims_.program_log(connection->device, static_cast<LogLevel>(level), text);
        return true;
      });
    }
    claims_.release(connection->device, connection->program.id);
  }
}

}  // namespace rocefs
