#include "tools/rocefs/netlink/socket_server.h"

#include <fcntl.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "core/process/effective_user.h"
#include "tools/rocefs/netlink/filter.h"
#include "tools/rocefs/netlink/rdma_answers.h"

namespace rocefs {
namespace {

constexpr size_t kLargestRequest = 64 * 1024;
constexpr size_t kMaxWaiting = size_t{16}
                               << 20;  // octets of answers for a socket that nobody reads

int descriptor_of(const seccomp_notif& call) {
  return static_cast<int>(call.data.args[0]);
}

// Where a message of the asker is, or is to be put.
struct Message {
  std::vector<iovec> parts;
  uint64_t name = 0;         // address of a struct sockaddr, or 0
  uint64_t name_length = 0;  // recvfrom: address of its length
  uint64_t header = 0;       // recvmsg, sendmsg: address of the struct msghdr
  int flags = 0;
};

// Reads the arguments of a call that sends or receives. nullopt: EFAULT.
std::optional<Message> message_of(const Asker& asker, const seccomp_notif& call) {
  const auto& args = call.data.args;
  Message message;
  if (call.data.nr == SYS_sendto || call.data.nr == SYS_recvfrom) {
    message.parts.push_back({reinterpret_cast<void*>(args[1]), args[2]});
    message.flags = static_cast<int>(args[3]);
    message.name = args[4];
    message.name_length = args[5];
    return message;
  }
  if (call.data.nr == SYS_write) {
    message.parts.push_back({reinterpret_cast<void*>(args[1]), args[2]});
    return message;
  }
  constexpr size_t kMostParts = 64;
  if (call.data.nr == SYS_writev) {
    if (args[2] > kMostParts) return std::nullopt;
    message.parts.resize(args[2]);
    if (!asker.read(args[1], message.parts.data(), args[2] * sizeof(iovec))) return std::nullopt;
    return message;
  }
  msghdr header;
  if (!asker.read(args[1], &header, sizeof header) || header.msg_iovlen > kMostParts) {
    return std::nullopt;
  }
  message.header = args[1];
  message.flags = static_cast<int>(args[2]);
  message.name = reinterpret_cast<uint64_t>(header.msg_name);
  message.parts.resize(header.msg_iovlen);
  if (!asker.read(reinterpret_cast<uint64_t>(header.msg_iov), message.parts.data(),
                  message.parts.size() * sizeof(iovec))) {
    return std::nullopt;
  }
  return message;
}

// Writes an address as the kernel does: as much as there is room for, and its whole length.
bool write_address(const Asker& asker, uint64_t address, uint64_t length_address, uint32_t port) {
  if (!address) return true;
  sockaddr_nl name{};
  name.nl_family = AF_NETLINK;
  name.nl_pid = port;
  socklen_t room = 0, length = sizeof name;
  return asker.read(length_address, &room, sizeof room) &&
         asker.write(address, &name, std::min<size_t>(room, sizeof name)) &&
         asker.write(length_address, &length, sizeof length);
}

bool write_data(const Asker& asker, const Message& message, std::string_view data) {
  for (const iovec& part : message.parts) {
    size_t size = std::min(part.iov_len, data.size());
    if (!asker.write(reinterpret_cast<uint64_t>(part.iov_base), data.data(), size)) return false;
    data.remove_prefix(size);
  }
  return true;
}

// Sets what recvmsg(2) returns in its header. Netlink messages come from port 0, the kernel.
bool write_header(const Asker& asker, const Message& message, bool cut) {
  msghdr header;
  if (!asker.read(message.header, &header, sizeof header)) return false;
  sockaddr_nl name{};
  name.nl_family = AF_NETLINK;
  if (header.msg_name &&
      !asker.write(message.name, &name, std::min<size_t>(header.msg_namelen, sizeof name))) {
    return false;
  }
  header.msg_namelen = header.msg_name ? sizeof name : 0;
  header.msg_controllen = 0;
  header.msg_flags = cut ? MSG_TRUNC : 0;
  return asker.write(message.header, &header, sizeof header);
}

}  // namespace

SocketServer::Session* SocketServer::find(uint64_t number) {
  auto it = std::find_if(sessions_.begin(), sessions_.end(),
                         [&](const Session& session) { return session.number == number; });
  return number == 0 || it == sessions_.end() ? nullptr : &*it;
}

void SocketServer::run() {
  for (;;) {
    forget_dead_receivers();
    std::vector<pollfd> watched{{listener_.get(), POLLIN, 0}};
    for (const Session& session : sessions_) {
      short events = session.waiting.empty() ? POLLIN : POLLIN | POLLOUT;
      watched.push_back({session.far.get(), events, 0});
    }
    for (const Receiver& receiver : receivers_) watched.push_back({receiver.near.get(), POLLIN, 0});
    if (::poll(watched.data(), watched.size(), -1) < 0 && errno != EINTR) return;
    auto events = watched.begin() + 1;
    for (auto it = sessions_.begin(); it != sessions_.end(); ++events) {
      bool keeps = true;
      if (events->revents & POLLOUT) keeps = flush(*it);
      if (keeps && events->revents & POLLIN) keeps = read_written(*it);
      if (events->revents & POLLHUP) keeps = false;
      it = keeps ? std::next(it) : sessions_.erase(it);
    }
    for (auto it = receivers_.begin(); it != receivers_.end(); ++events) {
      auto receiver = it++;
      if (events->revents) retry(receiver);
    }
    if (watched[0].revents & POLLIN) take_call();
    if (watched[0].revents & POLLHUP) return;
  }
}

void SocketServer::take_call() {
  seccomp_notif call{};
  if (::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_RECV, &call) != 0) return;
  Outcome outcome = perform(call);
  if (outcome.kind != Outcome::kLater) respond(call.id, outcome);
}

// An asker that has died meanwhile gets no response.
void SocketServer::respond(uint64_t id, const Outcome& outcome) {
  seccomp_notif_resp response{};
  response.id = id;
  if (outcome.kind == Outcome::kContinue) {
    response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  } else if (outcome.value < 0) {
    response.error = static_cast<int32_t>(outcome.value);
  } else {
    response.val = outcome.value;
  }
  (void)::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_SEND, &response);
}

SocketServer::Outcome SocketServer::perform(const seccomp_notif& call) {
  Asker asker(listener_.get(), call);
  if (call.data.nr == SYS_socket) return make_socket(asker, call);
  Session* session = find(asker.socket_number(descriptor_of(call)));
  if (!session) return kNotOurs;
  switch (call.data.nr) {
    case SYS_bind:
      return bind(*session, asker, call);
    case SYS_connect:
      return {};
    case SYS_getsockname:
      return show_name(*session, asker, call);
    case SYS_setsockopt:
      return call.data.args[1] == SOL_NETLINK ? Outcome() : kNotOurs;
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_write:
    case SYS_writev:
      return send(*session, asker, call);
    default: {
      Fd near = asker.copy(descriptor_of(call));
      if (!near) return {Outcome::kDone, -EBADF};
      Outcome outcome = receive(asker, call, near);
      if (outcome.kind == Outcome::kLater) {
        receivers_.push_back({call, std::move(asker), std::move(near)});
      }
      return outcome;
    }
  }
}

// The descriptor must have a number in the filter's range.
SocketServer::Outcome SocketServer::make_socket(const Asker& asker, const seccomp_notif& call) {
  if (!asker) return {Outcome::kDone, -EMFILE};
  auto type = static_cast<int>(call.data.args[1]);
  int kind = type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (kind != SOCK_RAW && kind != SOCK_DGRAM) return {Outcome::kDone, -ESOCKTNOSUPPORT};
  int number = kHighestSocket;
  while (number >= kLowestSocket && asker.has_descriptor(number)) --number;
  int ends[2];
  if (number < kLowestSocket ||
      ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
    return {Outcome::kDone, -EMFILE};
  }
  Fd far(ends[0]), near(ends[1]);
  if (!(type & SOCK_NONBLOCK)) ::fcntl(near.get(), F_SETFL, 0);
  struct stat status;
  if (::fstat(near.get(), &status) != 0) return {Outcome::kDone, -ENFILE};
  seccomp_notif_addfd add{};
  add.id = call.id;
  add.flags = SECCOMP_ADDFD_FLAG_SETFD | SECCOMP_ADDFD_FLAG_SEND;
  add.srcfd = static_cast<uint32_t>(near.get());
  add.newfd = static_cast<uint32_t>(number);
  add.newfd_flags = type & SOCK_CLOEXEC ? O_CLOEXEC : 0;
  if (::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_ADDFD, &add) < 0) {
    return {Outcome::kDone, -EMFILE};
  }
  sessions_.push_back({std::move(far), status.st_ino, call.pid, {}, 0});
  return {Outcome::kLater, 0};  // it was responded to
}

SocketServer::Outcome SocketServer::bind(Session& session, const Asker& asker,
                                         const seccomp_notif& call) {
  sockaddr_nl name{};
  if (call.data.args[2] < sizeof name) return {Outcome::kDone, -EINVAL};
  if (!asker.read(call.data.args[1], &name, sizeof name)) return {Outcome::kDone, -EFAULT};
  if (name.nl_family != AF_NETLINK) return {Outcome::kDone, -EINVAL};
  if (name.nl_pid != 0) session.port = name.nl_pid;
  return {};
}

SocketServer::Outcome SocketServer::show_name(const Session& session, const Asker& asker,
                                              const seccomp_notif& call) {
  bool shown =
      call.data.args[1] && write_address(asker, call.data.args[1], call.data.args[2], session.port);
  return {Outcome::kDone, shown ? 0 : -EFAULT};
}

SocketServer::Outcome SocketServer::send(Session& session, const Asker& asker,
                                         const seccomp_notif& call) {
  std::optional<Message> message = message_of(asker, call);
  if (!message) return {Outcome::kDone, -EFAULT};
  std::string datagram;
  for (const iovec& part : message->parts) {
    size_t at = datagram.size();
    if (part.iov_len > kLargestRequest - at) return {Outcome::kDone, -EMSGSIZE};
    datagram.resize(at + part.iov_len);
    if (!asker.read(reinterpret_cast<uint64_t>(part.iov_base), &datagram[at], part.iov_len)) {
      return {Outcome::kDone, -EFAULT};
    }
  }
  answer(session, asker, datagram);
  return {Outcome::kDone, static_cast<int64_t>(datagram.size())};
}

// Looks at files as the asker's user: the asker has made its own /sys.
void SocketServer::answer(Session& session, const Asker& asker, std::string_view datagram) {
  Fd root = asker.root();
  std::optional<Asker::User> user = asker.user();
  if (!root || !user) return;
  std::vector<std::string> messages;
  {
    EffectiveUser as_asker(user->uid, user->gid);
    if (!as_asker) return;
    messages = answer_rdma_netlink(datagram, session.port, RdmaView(root.get()));
  }
  for (std::string& message : messages) deliver(session, std::move(message));
}

// A message beyond the limit is lost, as with the kernel's ENOBUFS.
void SocketServer::deliver(Session& session, std::string message) {
  if (session.waiting_octets + message.size() > kMaxWaiting) return;
  session.waiting_octets += message.size();
  session.waiting.push_back(std::move(message));
  flush(session);
}

// False if the asker has closed its end.
bool SocketServer::flush(Session& session) {
  while (!session.waiting.empty()) {
    const std::string& first = session.waiting.front();
    ssize_t sent = ::send(session.far.get(), first.data(), first.size(), MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN || errno == ENOBUFS || errno == EINTR;
    session.waiting_octets -= first.size();
    session.waiting.pop_front();
  }
  return true;
}

// Refuses requests that came by a call that was not notified, sendmmsg(2), or by a copy with
// another number: the asker's rights and files are not known.
bool SocketServer::read_written(Session& session) {
  std::string datagram(kLargestRequest, '\0');
  ssize_t got = ::recv(session.far.get(), datagram.data(), datagram.size(), 0);
  if (got <= 0) return got < 0 && errno == EAGAIN;
  datagram.resize(static_cast<size_t>(got));
  for (std::string& message : refuse_rdma_netlink(datagram, session.port)) {
    deliver(session, std::move(message));
  }
  return true;
}

SocketServer::Outcome SocketServer::receive(const Asker& asker, const seccomp_notif& call,
                                            const Fd& near) {
  std::optional<Message> message = message_of(asker, call);
  if (!message) return {Outcome::kDone, -EFAULT};
  static char data[kLargestRequest];
  ssize_t got = ::recv(near.get(), data, sizeof data, MSG_DONTWAIT | (message->flags & MSG_PEEK));
  if (got < 0) {
    bool waits = errno == EAGAIN && !(message->flags & MSG_DONTWAIT) &&
                 !(::fcntl(near.get(), F_GETFL) & O_NONBLOCK);
    return waits ? Outcome{Outcome::kLater, 0} : Outcome{Outcome::kDone, -errno};
  }
  size_t room = 0;
  for (const iovec& part : message->parts) room += part.iov_len;
  auto size = static_cast<size_t>(got);
  bool written = write_data(asker, *message, {data, size}) &&
                 (message->header ? write_header(asker, *message, size > room)
                                  : write_address(asker, message->name, message->name_length, 0));
  if (!written) return {Outcome::kDone, -EFAULT};
  return {Outcome::kDone,
          static_cast<int64_t>(message->flags & MSG_TRUNC ? size : std::min(size, room))};
}

// Closes our copies of sockets whose askers were killed while they waited: else the sessions would
// never see their end.
void SocketServer::forget_dead_receivers() {
  receivers_.remove_if([](const Receiver& receiver) { return !receiver.asker; });
}

// An asker that was killed while poll(2) blocked has told nobody: its answer stays for others.
void SocketServer::retry(std::list<Receiver>::iterator receiver) {
  if (receiver->asker) {
    Outcome outcome = receive(receiver->asker, receiver->call, receiver->near);
    if (outcome.kind == Outcome::kLater) return;
    respond(receiver->call.id, outcome);
  }
  receivers_.erase(receiver);
}

}  // namespace rocefs
