#include "rdma/client/server.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <optional>

#include "core/base/passed_descriptors.h"
#include "core/base/text.h"
#include "core/process/stranger_socket.h"
#include "rdma/client/introduction.h"
#include "rdma/client/pidfd.h"
#include "rdma/uapi/cm.h"
#include "rdma/uapi/host.h"

namespace rocefs {
namespace {

// Number of descriptors that clients may use; the rest is for this process itself.
size_t descriptors_for_strangers() {
  constexpr rlim_t kMaxFiles = 1 << 20, kOwn = 256;
  rlimit limit{kMaxFiles, kMaxFiles};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  rlim_t all = std::min(limit.rlim_cur, kMaxFiles);
  return all - std::min(kOwn, all / 2);
}

// Whether the socket is one of a pair made by the client. The daemon writes to no other descriptor
// of a client, because its rights are not the client's.
bool is_own_pair(int fd, const Credentials& client) {
  int domain = 0, type = 0;
  ucred other{};
  socklen_t size = sizeof domain, type_size = sizeof type, other_size = sizeof other;
  return ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX &&
         ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_size) == 0 && type == SOCK_SEQPACKET &&
         ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &other, &other_size) == 0 &&
         other.pid == client.pid && other.uid == client.uid;
}

// Charge of a refused descriptor. Rings when it is closed, on the closer's thread.
struct RefusedDescriptor {
  Shares::Share share;
  std::shared_ptr<Fd> bell;
  ~RefusedDescriptor() {
    const uint64_t one = 1;
    (void)!::write(bell->get(), &one, sizeof one);
  }
};

// Text that reports a failure of the operation; null for one that is not reported.
const char* reported(uint32_t op) {
  if (op == ROCEFS_OP_MODIFY_QP) return "the queue pair is not modified";
  if (op == ROCEFS_OP_CHECK_ADDRESS) return "there is no address handle";
  return nullptr;
}

// Whether a first request is for another server (hand_claims_to).
bool is_claim(uint32_t op) {
  return op == ROCEFS_OP_PCC_CLAIM || op == ROCEFS_OP_CM_OPEN || op == ROCEFS_OP_HOST_OPEN;
}

}  // namespace

struct ClientServer::Connection {
  uint64_t id = 0;
  StrangerFd socket;
  std::shared_ptr<Process> process;
  std::string comm;
  bool greeted = false;    // first request read
  bool opened = false;     // first request granted
  bool answering = false;  // one request at a time
  bool dropped = false;
  Shares::Share slot, descriptors;
  std::vector<Shares::Share> channels;   // one per socket
  std::optional<rocefs_answer> refusal;  // of a descriptor, waits until that is closed
  std::weak_ptr<const void> refused;     // its charge
  LentMemory memory;
};

Result<std::unique_ptr<ClientServer>> ClientServer::create(Engine& engine, Fabric& fabric,
                                                           PollLoop& loop, Log log) {
  auto clients = Clients::create(fabric, engine);
  if (!clients) return clients.error();
  auto bell = std::make_shared<Fd>(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!*bell) return Error{errno, "no descriptor is left"};
  return std::unique_ptr<ClientServer>(
      new ClientServer(engine, loop, std::move(*clients), std::move(bell), std::move(log)));
}

ClientServer::ClientServer(Engine& engine, PollLoop& loop, std::unique_ptr<Clients> clients,
                           std::shared_ptr<Fd> bell, Log log)
    : engine_(engine),
      loop_(loop),
      clients_(std::move(clients)),
      log_(std::move(log)),
      refusals_(log_, "refusals of verbs clients"),
      failures_(log_, "failures of verbs clients"),
      programs_(log_, "verbs clients"),
      bell_(std::move(bell)),
      pause_(loop, [this] { resume(); }),
      descriptors_(descriptors_for_strangers(), descriptors_for_strangers() / 8) {
  loop_.watch(bell_->get(), [this] { answer_refused(); });
}

ClientServer::~ClientServer() {
  loop_.unwatch(bell_->get());
  close_listener();
}

void ClientServer::listen(Fd listener) {
  listener_ = std::move(listener);
  spare_ = Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ::fcntl(listener_.get(), F_SETFL, O_NONBLOCK);
  loop_.watch(listener_.get(), [this] { accept(); });
}

// Pending connections may have sent descriptors: another process that closes the listening socket
// last would wait for theirs.
void ClientServer::close_listener() {
  if (!listener_) return;
  loop_.unwatch(listener_.get());
  pause_.disarm();
  ::shutdown(listener_.get(), SHUT_RDWR);
  ucred peer;
  while (next_in_line(peer)) {
  }
  listener_.reset();
}

void ClientServer::drop_all() {
  while (!connections_.empty()) drop(connections_.begin()->second, "");
}

bool ClientServer::settle() {
  clients_->take_results();
  return std::all_of(gone_.begin(), gone_.end(), [](const Gone& one) {
    auto process = one.thread.lock();
    return !process || (process->idle() && !process->busy());
  });
}

StrangerFd ClientServer::next_in_line(ucred& peer) {
  Fd door(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!door) return {};
  socklen_t size = sizeof peer;
  peer = {};
  ::getsockopt(door.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size);
  return StrangerFd(std::move(door), closer_, peer.uid);
}

void ClientServer::accept() {
  if (closer_.waiting() >= kMaxUnclosed) return pause();
  ucred peer{};
  StrangerFd door = next_in_line(peer);
  if (!door) {
    if (errno == EMFILE || errno == ENFILE) turn_away();
    return;
  }
  greet(door, peer);
  door.hang_up();
}

// Sends a refusal and closes the connection.
void ClientServer::refuse(const StrangerFd& door, const ucred& peer, int code,
                          std::string_view why) {
  rocefs_greeting greeting{ROCEFS_UAPI_REFUSAL, static_cast<uint32_t>(code)};
  (void)send_at_once(door.get(), greeting);
  say_refused({peer.pid, peer.uid, peer.gid}, why);
}

void ClientServer::say_refused(const Credentials& who, std::string_view why) {
  refusals_.say(
      fmt::format("a verbs client, pid {} of user {}, is refused: {}", who.pid, who.uid, why));
}

void ClientServer::greet(StrangerFd& door, const ucred& peer) {
  Fd pidfd = pidfd_of(door.get(), peer.pid);
  if (peer.pid == 0 || !pidfd) {
    return refusals_.say("a verbs client is refused: its process is not visible");
  }
  // Processes whose memory still blocks a thread count as well.
  std::erase_if(gone_, [](const Gone& one) { return one.thread.expired(); });
  bool privileged = Credentials{peer.pid, peer.uid, peer.gid}.privileged();
  Shares::Share slot = slots_.take(peer.uid, privileged);
  if (!slot) {
    return refuse(door, peer, EUSERS,
                  fmt::format("its user has used up the share of {} clients", kMaxClients));
  }
  Shares::Share descriptors = descriptors_.take(peer.uid, privileged, kOwnDescriptors);
  if (!descriptors)
    return refuse(door, peer, EMFILE, "its user has used up the share of open files");
  door.charge(descriptors);
  auto process = Process::create({peer.pid, peer.uid, peer.gid}, std::move(pidfd), engine_);
  if (!process) {
    return refusals_.say(
        fmt::format("a verbs client, pid {}, is refused: cannot start a thread for it", peer.pid));
  }
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return refusals_.say("a verbs client is refused: no descriptors are left");
  }
  StrangerFd socket(Fd(ends[0]), closer_, peer.uid);
  socket.charge(descriptors);
  Fd theirs(ends[1]);
  rocefs_greeting greeting{ROCEFS_UAPI_MAGIC, ROCEFS_UAPI_VERSION};
  const int passed[] = {theirs.get()};
  if (!send_at_once(door.get(), greeting, passed)) return;
  auto connection = std::make_shared<Connection>();
  connection->process = std::move(process);
  connection->socket = std::move(socket);
  connection->slot = std::move(slot);
  connection->descriptors = std::move(descriptors);
  serve(connection);
}

void ClientServer::serve(const ConnectionPtr& connection) {
  connection->id = next_id_++;
  connections_[connection->id] = connection;
  loop_.watch(connection->socket.get(), [this, connection] { take(connection); });
  loop_.watch(connection->process->pidfd(), [this, connection] { drop(connection, ""); });
}

// Accepts and closes a connection without a free descriptor: it would wait for ever, and wake the
// loop all the time.
void ClientServer::turn_away() {
  spare_.reset();
  ucred peer{};
  if (next_in_line(peer)) refusals_.say("a verbs client is refused: no descriptors are left");
  pause();
}

// Stops accepting until the closer has freed the descriptor.
void ClientServer::pause() {
  loop_.unwatch(listener_.get());
  pause_.arm(kPause);
}

void ClientServer::resume() {
  if (!spare_) spare_ = Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!spare_) return pause_.arm(kPause);
  loop_.watch(listener_.get(), [this] { accept(); });
}

void ClientServer::take(const ConnectionPtr& connection) {
  if (connection->answering) {
    char byte;
    bool asks = ::recv(connection->socket.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
    return drop(connection, asks ? "sends a request before the last is answered" : "");
  }
  using Kind = StrangerMessage::Kind;
  rocefs_request request{};
  auto [kind, size, attached] = receive_from_stranger(connection->socket, bytes_of(request), true);
  if (kind == Kind::kNothing) return;
  if (kind == Kind::kEnd) return drop(connection, "");
  bool whole = kind == Kind::kReceived && size == sizeof request;
  if (auto other = connection->greeted ? std::nullopt : refusal_of_version(request, size)) {
    say_refused(connection->process->credentials(), other->reason);
    rocefs_answer said = refusal(*other);
    send_message(connection->socket.get(), &said, sizeof said, {}, MSG_DONTWAIT);
    return drop(connection, "");
  }
  if (whole && !attached && !connection->greeted && is_claim(request.op)) {
    return hand_over(connection, request);
  }
  bool in_order = connection->greeted == (request.op != ROCEFS_OP_HELLO);
  bool may_carry = request.op == ROCEFS_OP_HELLO || request.op == ROCEFS_OP_CREATE_CHANNEL;
  bool foreign = attached && !is_own_pair(attached.get(), connection->process->credentials());
  if (!whole || !in_order || foreign || (attached && !may_carry)) {
    return drop(connection, foreign ? "sends a descriptor that is not of its own socket pair"
                                    : "sends an invalid request");
  }
  connection->answering = true;
  Result<void> charged = attached ? charge_channel(*connection) : Result<void>();
  if (!charged) return turn_back(connection, attached, charged.error());
  handle(connection, request, std::move(attached));
}

// ENOMEM, EMFILE: the client, or its user, has as many descriptors as it may have.
Result<void> ClientServer::charge_channel(Connection& connection) {
  const Credentials& who = connection.process->credentials();
  size_t sockets = connection.process->socket_count();
  if (sockets >= kMaxSockets) return Error{ENOMEM, "the client has too many channels"};
  connection.channels.resize(std::min(connection.channels.size(), sockets));
  Shares::Share share = descriptors_.take(who.uid, who.privileged());
  if (!share) return Error{EMFILE, "the user has used up the share of open files"};
  connection.channels.push_back(std::move(share));
  return {};
}

// Refuses a descriptor. The answer waits until it is closed: a client that awaits its answers
// cannot send descriptors faster than they are closed, however long that takes.
void ClientServer::turn_back(const ConnectionPtr& connection, StrangerFd& attached,
                             const Error& why) {
  say_refused(connection->process->credentials(), "a channel: " + why.reason);
  std::shared_ptr<const void> charge(new RefusedDescriptor{connection->descriptors, bell_});
  connection->refused = charge;
  connection->refusal = refusal(why);
  attached.charge(std::move(charge));
  attached.reset();
}

void ClientServer::answer_refused() {
  uint64_t rung;
  (void)!::read(bell_->get(), &rung, sizeof rung);
  std::vector<ConnectionPtr> closed;
  for (const auto& [id, connection] : connections_) {
    if (connection->refusal && connection->refused.expired()) closed.push_back(connection);
  }
  for (const ConnectionPtr& connection : closed) {
    answer(connection, *std::exchange(connection->refusal, std::nullopt), {});
  }
}

void ClientServer::handle(const ConnectionPtr& connection, const rocefs_request& request,
                          StrangerFd attached) {
  if (request.op == ROCEFS_OP_HELLO) {
    return hello(connection, request.u.hello, std::move(attached));
  }
  uint32_t socket = attached ? connection->process->adopt(attached.release()) : 0;
  Result<Client::Attachment> attachment = prepare(*connection, request);
  if (attachment) attachment->socket = socket;
  Result<void> sent = attachment ? to_core(connection, request, std::move(*attachment))
                                 : Result<void>(attachment.error());
  if (!sent) answer(connection, refusal(sent.error()), {});
}

Result<LentMemory::Memory> ClientServer::queues(Connection& connection, size_t size) {
  const Credentials& who = connection.process->credentials();
  Shares::Share share = queue_bytes_.take(who.uid, who.privileged(), size);
  if (share) return connection.memory.queues(size, std::move(share));
  Error why = errorf(ENOMEM, "its user has used up the share of {} GiB of memory for queues",
                     kMaxQueueBytes >> 30);
  say_refused(who, "a queue: " + why.reason);
  return why;
}

Result<Client::Attachment> ClientServer::prepare(Connection& connection,
                                                 const rocefs_request& request) {
  Client::Attachment attachment;
  Result<rocefs_created> layout = plan(request);
  if (!layout) return layout.error();
  attachment.layout = *layout;
  if (layout->size == 0) return attachment;
  if (request.op == ROCEFS_OP_SHARE_MR) {
    // The core waits for the kernel where a program empties the memfd under it. Programs of the
    // daemon's own user could stop it anyway.
    if (connection.process->credentials().uid != ::geteuid()) {
      return Error{EPERM, "memory is shared with programs of the daemon's user alone"};
    }
    Result<LentMemory::Pages> pages = connection.memory.pages(layout->size);
    if (!pages) return pages.error();
    attachment.memory = std::move(pages->memory);
    attachment.file = pages->file;
    attachment.offset = pages->offset;
    return attachment;
  }
  auto memory = request.op == ROCEFS_OP_ALLOC_DM ? connection.memory.device_memory(layout->size)
                                                 : queues(connection, layout->size);
  if (!memory) return memory.error();
  attachment.memory = std::move(*memory);
  return attachment;
}

Result<void> ClientServer::to_core(const ConnectionPtr& connection, const rocefs_request& request,
                                   Client::Attachment attachment) {
  std::vector<int> descriptors;
  if (attachment.file >= 0) {
    descriptors.push_back(attachment.file);
  } else if (attachment.memory) {
    descriptors.push_back(attachment.memory->descriptor());
  }
  Client::Reply reply =
      replier(connection, std::move(descriptors), attachment.memory, reported(request.op));
  Task task = [this, id = connection->id, request, attachment = std::move(attachment),
               reply = std::move(reply)]() mutable {
    if (Client* client = clients_->find(id)) {
      client->request(request, std::move(attachment), std::move(reply));
    }
  };
  if (!engine_.post(task)) return Error{EAGAIN, "too many commands are waiting for the engine"};
  return {};
}

// Hands the connection over: it is not a verbs client's.
void ClientServer::hand_over(const ConnectionPtr& connection, const rocefs_request& request) {
  auto taker = claimed_.find(request.op);
  if (taker == claimed_.end()) {
    return answer(connection, refusal({EOPNOTSUPP, "not supported by this server"}), {});
  }
  Claim claim;
  claim.pidfd = Fd(::fcntl(connection->process->pidfd(), F_DUPFD_CLOEXEC, 0));
  claim.who = connection->process->credentials();
  claim.request = request;
  loop_.unwatch(connection->socket.get());
  claim.socket = std::move(connection->socket);
  drop(connection, "");
  if (claim.pidfd) taker->second(std::move(claim));
}

void ClientServer::hello(const ConnectionPtr& connection, const rocefs_hello& hello,
                         StrangerFd events) {
  auto refuse = [&](const Error& why) { answer(connection, refusal(why), {}); };
  connection->greeted = true;
  connection->comm = program_name({hello.comm, sizeof hello.comm});
  Clients::Arrival arrival;
  if (events) arrival.events = connection->process->adopt(events.release());
  if (hello.magic != ROCEFS_UAPI_MAGIC) {
    return refuse(Error{EPROTO, "the first request has no magic number"});
  }
  auto page = SharedMemory::create("rocefs-context", sizeof(rocefs_context_page),
                                   SharedMemory::Others::kWrite);
  Fd doorbell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!page || !doorbell) return refuse(Error{ENOMEM, "no memory or descriptors are left"});
  arrival.process = connection->process;
  arrival.page = std::make_shared<SharedMemory>(std::move(*page));
  arrival.hello = hello;
  const std::string device = program_name({hello.device, sizeof hello.device});
  std::vector<int> descriptors{clients_->page(device), arrival.page->descriptor(), doorbell.get()};
  arrival.doorbell = std::move(doorbell);
  Client::Reply reply = replier(connection, std::move(descriptors), arrival.page, nullptr);
  Task task = [this, id = connection->id, arrival = std::move(arrival),
               reply = std::move(reply)]() mutable {
    clients_->add(id, std::move(arrival), std::move(reply));
  };
  if (!engine_.post(task)) {
    return refuse(Error{EAGAIN, "too many commands are waiting for the engine"});
  }
  programs_.say(fmt::format("pid {} ({}) opens {}", connection->process->credentials().pid,
                            connection->comm, device));
}

// Sends the answer, with these descriptors unless it is an error. `memory` keeps them open until
// then; afterwards the client has its own. `what`: see report_failure(); null: no report.
Client::Reply ClientServer::replier(const ConnectionPtr& connection, std::vector<int> descriptors,
                                    std::shared_ptr<SharedMemory> memory, const char* what) {
  return [this, connection, what, descriptors = std::move(descriptors),
          memory = std::move(memory)](const rocefs_answer& said) mutable {
    engine_.tell_control([this, connection, what, said, descriptors = std::move(descriptors),
                          memory = std::move(memory)] {
      if (what && said.error != 0) report_failure(*connection, what, said);
      answer(connection, said, descriptors);
      if (memory) memory->close_descriptor();
    });
  };
}

// Says why an operation fails of which a program sees the errno alone.
void ClientServer::report_failure(const Connection& connection, const char* what,
                                  const rocefs_answer& said) {
  std::string_view reason(said.u.reason, ::strnlen(said.u.reason, sizeof said.u.reason));
  failures_.say(fmt::format("pid {} ({}): {}: {} ({})", connection.process->credentials().pid,
                            connection.comm, what, reason, strerrorname_np(said.error)));
}

void ClientServer::answer(const ConnectionPtr& connection, const rocefs_answer& said,
                          const std::vector<int>& descriptors) {
  if (connection->dropped) return;
  connection->answering = false;
  bool well = said.error == 0;
  if (!send_at_once(connection->socket.get(), said,
                    well ? std::span(descriptors) : std::span<const int>())) {
    return drop(connection, "does not receive its answers");
  }
  if (well) connection->opened = true;
  if (!connection->opened) drop(connection, "");  // the client reads the reason
}

void ClientServer::drop(const ConnectionPtr& given, std::string_view why) {
  ConnectionPtr connection = given;  // the handler that holds it is destroyed
  if (std::exchange(connection->dropped, true)) return;
  if (!why.empty()) {
    programs_.say(fmt::format("pid {} ({}) is dropped: it {}",
                              connection->process->credentials().pid, connection->comm, why));
  }
  if (connection->socket) loop_.unwatch(connection->socket.get());
  loop_.unwatch(connection->process->pidfd());
  connection->process->end();
  connection->socket.hang_up();
  connections_.erase(connection->id);
  std::erase_if(gone_, [](const Gone& one) { return one.thread.expired(); });
  gone_.push_back({connection->process->thread(), std::move(connection->slot),
                   std::move(connection->descriptors), std::move(connection->channels)});
  remove(connection->id);
}

// Must not fail, however many commands wait.
void ClientServer::remove(uint64_t id) {
  Task task = [this, id] { clients_->remove(id); };
  if (!engine_.post(task)) loop_.post([this, id] { remove(id); });
}

}  // namespace rocefs
