#include "tools/rocefs/netlink/socket_server.h"

#include <fcntl.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string>
#include <utility>

#include "core/process/effective_user.h"
#include "tools/rocefs/netlink/asker_message.h"
#include "tools/rocefs/netlink/filter.h"
#include "tools/rocefs/netlink/rdma_answers.h"

namespace rocefs {
namespace {

constexpr size_t kLargestRequest = 64 * 1024;
// Octets of answers for sockets that nobody reads, of all users together.
constexpr size_t kMaxWaiting = size_t{64} << 20, kReserved = kMaxWaiting / 8;
constexpr size_t kAnswerOverhead = 256;  // octets of memory beside an answer's own
constexpr size_t kMostUsers = 64;
constexpr size_t kOwnDescriptors = 64;    // of the server itself, and of files that it reads
constexpr size_t kDescriptorsOfCall = 3;  // memory, directory in /proc, socket

// Raises the limit first, as far as it may be.
size_t open_file_limit() {
  constexpr rlim_t kEnough = 64 * 1024;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur < std::min(limit.rlim_max, kEnough)) {
    limit.rlim_cur = std::min(limit.rlim_max, kEnough);
    (void)::setrlimit(RLIMIT_NOFILE, &limit);
    ::getrlimit(RLIMIT_NOFILE, &limit);
  }
  return std::clamp<rlim_t>(limit.rlim_cur, 2 * kOwnDescriptors, kEnough);
}

int descriptor_of(const seccomp_notif& notif) {
  return static_cast<int>(notif.data.args[0]);
}

bool receives(const seccomp_notif& notif) {
  return notif.data.nr == SYS_recvfrom || notif.data.nr == SYS_recvmsg;
}

}  // namespace

SocketServer::SocketServer(Fd listener)
    : listener_(std::move(listener)),
      wakeup_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      descriptors_(open_file_limit() - kOwnDescriptors, open_file_limit() / 8),
      waiting_octets_(kMaxWaiting, kReserved),
      threads_(kMostUsers) {}

std::shared_ptr<Session> SocketServer::find(uint64_t number) {
  auto it = std::find_if(sessions_.begin(), sessions_.end(),
                         [&](const auto& session) { return session->number() == number; });
  return number == 0 || it == sessions_.end() ? nullptr : *it;
}

void SocketServer::run() {
  for (;;) {
    take_receivers();
    std::vector<pollfd> watched{{listener_.get(), POLLIN, 0}, {wakeup_.get(), POLLIN, 0}};
    for (const auto& session : sessions_) {
      short events = session->waits() ? POLLIN | POLLOUT : POLLIN;
      watched.push_back({session->far(), events, 0});
    }
    for (const CallPtr& call : receivers_) watched.push_back({call->near.get(), POLLIN, 0});
    if (::poll(watched.data(), watched.size(), -1) < 0 && errno != EINTR) return;
    auto events = watched.begin() + 2;
    for (auto it = sessions_.begin(); it != sessions_.end(); ++events) {
      bool keeps = true;
      if (events->revents & POLLOUT) keeps = (*it)->flush();
      if (keeps && events->revents & POLLIN) keeps = read_written(**it);
      if (events->revents & POLLHUP) keeps = false;
      it = keeps ? std::next(it) : sessions_.erase(it);
    }
    for (auto it = receivers_.begin(); it != receivers_.end(); ++events) {
      auto receiver = it++;
      if (!events->revents) continue;
      Outcome outcome = post(*receiver);
      if (outcome.kind != Outcome::kLater) respond((*receiver)->notif.id, outcome);
      receivers_.erase(receiver);
    }
    if (watched[0].revents & POLLIN) take_call();
    if (watched[0].revents & POLLHUP) return;
  }
}

// Wakes the main thread to poll other descriptors.
void SocketServer::wake() {
  uint64_t one = 1;
  (void)!::write(wakeup_.get(), &one, sizeof one);
}

// Closes our copies of sockets whose askers were killed while they waited: else the sessions would
// never see their end.
void SocketServer::take_receivers() {
  uint64_t count;
  (void)!::read(wakeup_.get(), &count, sizeof count);
  std::vector<CallPtr> fresh;
  {
    std::lock_guard lock(mutex_);
    fresh.swap(new_receivers_);
  }
  receivers_.insert(receivers_.end(), fresh.begin(), fresh.end());
  receivers_.remove_if([](const CallPtr& call) { return !call->asker; });
}

void SocketServer::take_call() {
  seccomp_notif notif{};
  if (::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_RECV, &notif) != 0) return;
  Outcome outcome = begin(notif);
  if (outcome.kind != Outcome::kLater) respond(notif.id, outcome);
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

SocketServer::Outcome SocketServer::begin(const seccomp_notif& notif) {
  Asker asker(listener_.get(), notif);
  if (notif.data.nr == SYS_socket) return make_socket(asker, notif);
  std::shared_ptr<Session> session = find(asker.socket_number(descriptor_of(notif)));
  if (!session) return kNotOurs;
  if (notif.data.nr == SYS_connect) return {};
  if (notif.data.nr == SYS_setsockopt) {
    return notif.data.args[1] == SOL_NETLINK ? Outcome() : kNotOurs;
  }
  std::optional<Asker::User> user = asker.user();
  if (!user) return {Outcome::kDone, -ESRCH};
  bool privileged = is_privileged(user->uid);
  Shares::Share share = descriptors_.take(user->uid, privileged, kDescriptorsOfCall);
  if (!share) return {Outcome::kDone, -ENOBUFS};
  Fd near = receives(notif) ? asker.copy(descriptor_of(notif)) : Fd();
  if (receives(notif) && !near) return {Outcome::kDone, -EBADF};
  return post(std::make_shared<Call>(Call{notif, std::move(asker), *user, privileged,
                                          std::move(session), std::move(share), std::move(near)}));
}

SocketServer::Outcome SocketServer::post(CallPtr call) {
  uid_t user = call->user.uid;
  bool privileged = call->privileged;
  bool posted = threads_.post(user, privileged, [this, call = std::move(call)] { work(call); });
  return posted ? Outcome{Outcome::kLater, 0} : Outcome{Outcome::kDone, -ENOMEM};
}

// The descriptor must have a number in the filter's range.
SocketServer::Outcome SocketServer::make_socket(const Asker& asker, const seccomp_notif& notif) {
  std::optional<Asker::User> user = asker.user();
  if (!user) return {Outcome::kDone, -EMFILE};
  auto type = static_cast<int>(notif.data.args[1]);
  int kind = type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (kind != SOCK_RAW && kind != SOCK_DGRAM) return {Outcome::kDone, -ESOCKTNOSUPPORT};
  Shares::Share share = descriptors_.take(user->uid, is_privileged(user->uid));
  if (!share) return {Outcome::kDone, -EMFILE};
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
  add.id = notif.id;
  add.flags = SECCOMP_ADDFD_FLAG_SETFD | SECCOMP_ADDFD_FLAG_SEND;
  add.srcfd = static_cast<uint32_t>(near.get());
  add.newfd = static_cast<uint32_t>(number);
  add.newfd_flags = type & SOCK_CLOEXEC ? O_CLOEXEC : 0;
  if (::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_ADDFD, &add) < 0) {
    return {Outcome::kDone, -EMFILE};
  }
  sessions_.push_back(
      std::make_shared<Session>(std::move(far), std::move(share), status.st_ino, notif.pid));
  return {Outcome::kLater, 0};  // it was responded to
}

// Refuses requests that came by a call that was not notified, sendmmsg(2), or by a copy with
// another number: the asker's rights and files are not known. Answers in excess are lost.
bool SocketServer::read_written(Session& session) {
  std::string datagram(kLargestRequest, '\0');
  ssize_t got = ::recv(session.far(), datagram.data(), datagram.size(), 0);
  if (got <= 0) return got < 0 && errno == EAGAIN;
  datagram.resize(static_cast<size_t>(got));
  if (session.waits()) return true;
  for (std::string& message : refuse_rdma_netlink(datagram, session.port())) {
    session.deliver(std::move(message), nullptr);
  }
  return true;
}

// An asker that was killed before its user's thread came to it has told nobody. Only a receiver is
// tried again.
void SocketServer::work(const CallPtr& call) {
  if (!call->asker) return;
  Outcome outcome = perform(*call);
  if (call->session->waits()) wake();
  if (outcome.kind != Outcome::kLater) return respond(call->notif.id, outcome);
  {
    std::lock_guard lock(mutex_);
    new_receivers_.push_back(call);
  }
  wake();
}

SocketServer::Outcome SocketServer::perform(Call& call) {
  switch (call.notif.data.nr) {
    case SYS_bind:
      return bind(call);
    case SYS_getsockname:
      return show_name(call);
    case SYS_recvfrom:
    case SYS_recvmsg:
      return receive(call);
    default:
      return send(call);
  }
}

SocketServer::Outcome SocketServer::bind(Call& call) {
  sockaddr_nl name{};
  const auto& args = call.notif.data.args;
  if (args[2] < sizeof name) return {Outcome::kDone, -EINVAL};
  if (!call.asker.read(args[1], &name, sizeof name)) return {Outcome::kDone, -EFAULT};
  if (name.nl_family != AF_NETLINK) return {Outcome::kDone, -EINVAL};
  if (name.nl_pid != 0) call.session->set_port(name.nl_pid);
  return {};
}

SocketServer::Outcome SocketServer::show_name(Call& call) {
  const auto& args = call.notif.data.args;
  bool shown = args[1] && write_address(call.asker, args[1], args[2], call.session->port());
  return {Outcome::kDone, shown ? 0 : -EFAULT};
}

SocketServer::Outcome SocketServer::send(Call& call) {
  std::optional<AskerMessage> message = message_of(call.asker, call.notif);
  if (!message) return {Outcome::kDone, -EFAULT};
  std::string datagram;
  for (const iovec& part : message->parts) {
    size_t at = datagram.size();
    if (part.iov_len > kLargestRequest - at) return {Outcome::kDone, -EMSGSIZE};
    datagram.resize(at + part.iov_len);
    if (!call.asker.read(reinterpret_cast<uint64_t>(part.iov_base), &datagram[at], part.iov_len)) {
      return {Outcome::kDone, -EFAULT};
    }
  }
  if (int error = answer(call, datagram)) return {Outcome::kDone, -error};
  return {Outcome::kDone, static_cast<int64_t>(datagram.size())};
}

// Looks at files as the asker's user: the asker has made its own /sys.
int SocketServer::answer(Call& call, std::string_view datagram) {
  Fd root = call.asker.root();
  if (!root) return ESRCH;
  EffectiveUser as_asker(call.user.uid, call.user.gid);
  if (!as_asker) return EPERM;
  auto deliver = [&](std::string message) {
    Shares::Share share =
        waiting_octets_.take(call.user.uid, call.privileged, message.size() + kAnswerOverhead);
    if (!share || !call.asker) return false;
    call.session->deliver(std::move(message), std::move(share));
    return true;
  };
  return answer_rdma_netlink(datagram, call.session->port(), RdmaView(root.get()), deliver);
}

SocketServer::Outcome SocketServer::receive(Call& call) {
  std::optional<AskerMessage> message = message_of(call.asker, call.notif);
  if (!message) return {Outcome::kDone, -EFAULT};
  std::string data(kLargestRequest, '\0');
  int flags = MSG_DONTWAIT | (message->flags & MSG_PEEK);
  ssize_t got = ::recv(call.near.get(), data.data(), data.size(), flags);
  if (got < 0) {
    bool waits = errno == EAGAIN && !(message->flags & MSG_DONTWAIT) &&
                 !(::fcntl(call.near.get(), F_GETFL) & O_NONBLOCK);
    return waits ? Outcome{Outcome::kLater, 0} : Outcome{Outcome::kDone, -errno};
  }
  size_t room = 0;
  for (const iovec& part : message->parts) room += part.iov_len;
  auto size = static_cast<size_t>(got);
  bool written =
      write_data(call.asker, *message, {data.data(), size}) &&
      (message->header ? write_header(call.asker, *message, size > room)
                       : write_address(call.asker, message->name, message->name_length, 0));
  if (!written) return {Outcome::kDone, -EFAULT};
  return {Outcome::kDone,
          static_cast<int64_t>(message->flags & MSG_TRUNC ? size : std::min(size, room))};
}

}  // namespace rocefs
