#include "tools/rocefs/host/host_session.h"

#include <fcntl.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "rdma/uapi/peer.h"
#include "rdma/uapi/uapi.h"

namespace rocefs {
namespace {

Error lost(const char* what, int code = errno) {
  if (code == EPIPE || code == ECONNRESET) return Error{ENOTCONN, "the mount has ended"};
  return errorf(code, "{}: {}", what, std::strerror(code));
}

// Connects through a descriptor of the directory: its path can exceed sun_path.
Result<void> connect_to(int socket, const std::string& mount_point) {
  std::string path = mount_point + "/kernel/debug/rocefs";
  Fd directory(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return errorf(errno, "{}: {}", path, std::strerror(errno));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/uapi",
                directory.get());
  while (::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    if (errno != EINTR) return errorf(errno, "{}/uapi: {}", path, std::strerror(errno));
  }
  return {};
}

Result<void> send_message(int socket, const void* data, size_t size, int descriptor) {
  union {
    cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
  } space{};
  iovec part{const_cast<void*>(data), size};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (descriptor >= 0) {
    message.msg_control = &space;
    message.msg_controllen = sizeof space;
    space.header = {CMSG_LEN(sizeof descriptor), SOL_SOCKET, SCM_RIGHTS};
    std::memcpy(CMSG_DATA(&space.header), &descriptor, sizeof descriptor);
  }
  ssize_t sent;
  do {
    sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) return lost("request");
  return {};
}

// Receives one message of this size. Descriptors come in order, without gaps.
Result<void> receive_message(int socket, void* data, size_t size, HostNamespaces& received) {
  union {
    cmsghdr header;
    char bytes[CMSG_SPACE(ROCEFS_HOST_NAMESPACES * sizeof(int))];
  } space{};
  iovec part{data, size};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = &space;
  message.msg_controllen = sizeof space;
  ssize_t got;
  do {
    got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return lost("answer");
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
    size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < std::min(count, received.size()); ++i) {
      int descriptor;
      std::memcpy(&descriptor, CMSG_DATA(header) + i * sizeof descriptor, sizeof descriptor);
      received[i] = Fd(descriptor);
    }
  }
  if (got == 0) return lost("answer", EPIPE);
  if (static_cast<size_t>(got) != size) return Error{EPROTO, "the engine is of another version"};
  return {};
}

}  // namespace

Result<HostSession> HostSession::open(const std::string& mount_point) {
  HostSession session;
  Fd door(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!door) return lost("socket");
  if (Result<void> connected = connect_to(door.get(), mount_point); !connected) {
    return connected.error();
  }
  uid_t uid;
  if (!rocefs_trusts_peer(door.get(), &uid)) {
    return errorf(EPERM, "{} is served by user {}, who is neither root nor you", mount_point, uid);
  }
  socklen_t size = sizeof session.engine_;
  if (::getsockopt(door.get(), SOL_SOCKET, SO_PEERCRED, &session.engine_, &size) != 0) {
    return lost("the engine's user");
  }
  rocefs_greeting greeting{};
  HostNamespaces received;
  Result<void> greeted = receive_message(door.get(), &greeting, sizeof greeting, received);
  if (!greeted) return greeted.error();
  if (greeting.magic == ROCEFS_UAPI_REFUSAL) {
    return lost("the engine refuses", static_cast<int>(greeting.version));
  }
  if (greeting.magic != ROCEFS_UAPI_MAGIC || greeting.version != ROCEFS_UAPI_VERSION ||
      !received[0]) {
    return Error{EPROTO, "the engine is of another version"};
  }
  session.socket_ = std::move(received[0]);
  rocefs_request request{};
  request.op = ROCEFS_OP_HOST_OPEN;
  rocefs_answer answer{};
  Result<void> asked = send_message(session.socket_.get(), &request, sizeof request, -1);
  if (asked) asked = receive_message(session.socket_.get(), &answer, sizeof answer, received);
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
  Result<void> asked = send_message(socket_.get(), &request, sizeof request, descriptor);
  if (asked) asked = receive_message(socket_.get(), &answer, sizeof answer, received);
  if (!asked) return asked.error();
  if (answer.error == 0) return answer;
  answer.reason[sizeof answer.reason - 1] = 0;
  return Error{answer.error, answer.reason};
}

Result<std::optional<HostNamespaces>> HostSession::enter(const std::string& host) {
  HostNamespaces received;
  Result<rocefs_host_answer> answer = exchange(ROCEFS_HOST_ENTER, host, 0, -1, received);
  if (!answer) return answer.error();
  if (answer->state != ROCEFS_HOST_RUNNING) return std::optional<HostNamespaces>();
  std::optional<HostNamespaces> namespaces(std::in_place);
  size_t next = 0;
  for (size_t i = 0; i < namespaces->size(); ++i) {
    if (!(answer->present >> i & 1)) continue;
    if (!received[next]) return Error{EMFILE, "a namespace got lost: too many open files"};
    (*namespaces)[i] = std::move(received[next++]);
  }
  return namespaces;
}

Result<void> HostSession::give(rocefs_host_op op, const std::string& host, uint32_t number,
                               int descriptor) {
  HostNamespaces none;
  Result<rocefs_host_answer> answer = exchange(op, host, number, descriptor, none);
  if (!answer) return answer.error();
  return {};
}

}  // namespace rocefs
