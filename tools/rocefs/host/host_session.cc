#include "tools/rocefs/host/host_session.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/base/passed_descriptors.h"
#include "rdma/uapi/peer.h"
#include "rdma/uapi/uapi.h"

namespace rocefs {
namespace {

Error lost(const char* what, int code = errno) {
  if (code == EPIPE || code == ECONNRESET) return Error{ENOTCONN, "the mount has ended"};
  return errorf(code, "{}: {}", what, std::strerror(code));
}

Result<void> send_request(int socket, const void* data, size_t size, int descriptor) {
  int error = send_message(socket, data, size, descriptor);
  if (error != 0) return lost("request", error);
  return {};
}

// Receives one message of this size.
Result<void> receive_answer(int socket, void* data, size_t size, HostNamespaces& received) {
  ssize_t got = receive_message(socket, data, size, received);
  if (got == 0) return lost("answer", EPIPE);
  if (got < 0 && errno != EMSGSIZE) return lost("answer");
  if (static_cast<size_t>(got) != size) return Error{EPROTO, "the engine is of another version"};
  return {};
}

}  // namespace

Result<HostSession> HostSession::open(const std::string& mount_point) {
  HostSession session;
  Fd door(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!door) return lost("socket");
  if (int error = rocefs_connect_in(door.get(), mount_point.c_str())) {
    struct statvfs about;
    bool read_only = error == ENOENT && ::statvfs(mount_point.c_str(), &about) == 0 &&
                     (about.f_flag & ST_RDONLY) != 0;
    if (read_only) return errorf(EROFS, "{} is mounted read-only, so without hosts", mount_point);
    return errorf(error, "{}" ROCEFS_DIRECTORY "/uapi: {}", mount_point, std::strerror(error));
  }
  uid_t uid;
  if (!rocefs_trusts_peer(door.get(), &uid)) {
    return errorf(EPERM,
                  "{} is served by user {}, who is neither root nor you; " ROCEFS_TRUST_VARIABLE
                  "={} trusts that user",
                  mount_point, uid, uid);
  }
  socklen_t size = sizeof session.engine_;
  if (::getsockopt(door.get(), SOL_SOCKET, SO_PEERCRED, &session.engine_, &size) != 0) {
    return lost("the engine's user");
  }
  rocefs_greeting greeting{};
  HostNamespaces received;
  Result<void> greeted = receive_answer(door.get(), &greeting, sizeof greeting, received);
  if (!greeted) return greeted.error();
  if (greeting.magic == ROCEFS_UAPI_REFUSAL) {
    return lost("the engine refuses", static_cast<int>(greeting.version));
  }
  if (greeting.magic != ROCEFS_UAPI_MAGIC || !received[0]) {
    return Error{EPROTO, "no greeting of an engine"};
  }
  if (greeting.version != ROCEFS_UAPI_VERSION) {
    char why[128];
    rocefs_part_from(received[0].get(), greeting.version, "this rocefs", why, sizeof why);
    return Error{EPROTO, why};
  }
  session.socket_ = std::move(received[0]);
  rocefs_request request{};
  request.op = ROCEFS_OP_HOST_OPEN;
  rocefs_answer answer{};
  Result<void> asked = send_request(session.socket_.get(), &request, sizeof request, -1);
  if (asked) asked = receive_answer(session.socket_.get(), &answer, sizeof answer, received);
  if (!asked) return asked.error();
  if (answer.error != 0) {
    answer.u.reason[sizeof answer.u.reason - 1] = 0;
    return Error{answer.error, answer.u.reason};
  }
  return session;
}

Result<rocefs_host_answer> HostSession::exchange(rocefs_host_op op, const std::string& host,
                                                 uint32_t number, int descriptor,
                                                 HostNamespaces& received) {
  rocefs_host_request request{};
  if (host.size() >= sizeof request.host) return errorf(ENOENT, "there is no host {}", host);
  request.op = op;
  request.number = number;
  host.copy(request.host, host.size());
  rocefs_host_answer answer{};
  Result<void> asked = send_request(socket_.get(), &request, sizeof request, descriptor);
  if (asked) asked = receive_answer(socket_.get(), &answer, sizeof answer, received);
  if (!asked) return asked.error();
  if (answer.error == 0) return answer;
  answer.reason[sizeof answer.reason - 1] = 0;
  return Error{answer.error, answer.reason};
}

// Whether the engine is trusted by ROCEFS_TRUST_UID alone: not with rights that its user lacks.
bool HostSession::may_lie() const {
  uid_t user = engine_.uid;
  return user != 0 && user != ::geteuid() && rocefs_is_mapped(user);
}

Result<std::optional<RunningHost>> HostSession::enter(const std::string& host, uint32_t how) {
  HostNamespaces received;
  Result<rocefs_host_answer> answer = exchange(ROCEFS_HOST_ENTER, host, how, -1, received);
  if (!answer) return answer.error();
  if (answer->state != ROCEFS_HOST_RUNNING) return std::optional<RunningHost>();
  std::optional<RunningHost> running(std::in_place);
  running->of_another = may_lie() || (answer->present & ROCEFS_HOST_OF_ANOTHER) != 0;
  size_t next = 0;
  for (size_t i = 0; i < running->namespaces.size(); ++i) {
    if (!(answer->present >> i & 1)) continue;
    if (!received[next]) return Error{EMFILE, "a namespace got lost: too many open files"};
    running->namespaces[i] = std::move(received[next++]);
  }
  return running;
}

Result<void> HostSession::give(rocefs_host_op op, const std::string& host, uint32_t number,
                               int descriptor) {
  HostNamespaces none;
  Result<rocefs_host_answer> answer = exchange(op, host, number, descriptor, none);
  if (!answer) return answer.error();
  return {};
}

}  // namespace rocefs
