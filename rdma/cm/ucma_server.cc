#include "rdma/cm/ucma_server.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "core/base/passed_descriptors.h"
#include "core/base/text.h"
#include "core/process/stranger_socket.h"
#include "rdma/client/convert.h"
#include "rdma/uapi/cm.h"

namespace rocefs {
namespace {

uint64_t cookie_of(int socket) {
  uint64_t cookie = 0;
  socklen_t size = sizeof cookie;
  return ::getsockopt(socket, SOL_SOCKET, SO_COOKIE, &cookie, &size) == 0 ? cookie : 0;
}

}  // namespace

struct UcmaServer::Channel {
  uint64_t id = 0;
  Credentials who;
  std::string comm;
  uint64_t name = 0;  // the SO_COOKIE of the client's end
  StrangerFd commands;
  StrangerFd events;
  Shares::Share slot;
  bool answering = false;
};

struct UcmaServer::Command {
  rocefs_cm_command header;
  std::array<uint8_t, ROCEFS_CM_MAX_COMMAND + ROCEFS_CM_MAX_OPTION> octets;
};

UcmaServer::UcmaServer(Engine& engine, PollLoop& loop, Ucma& ucma, Log log, ScopeOf scope_of)
    : engine_(engine),
      loop_(loop),
      ucma_(ucma),
      refusals_(log, "refusals of CM channels"),
      failures_(std::move(log), "refusals by the CM"),
      scope_of_(std::move(scope_of)) {}

UcmaServer::~UcmaServer() {
  drop_all();
}

void UcmaServer::drop_all() {
  while (!channels_.empty()) drop(ChannelPtr(channels_.begin()->second), "");
}

Result<void> UcmaServer::check(const ClientServer::Claim& claim, Channel& channel) {
  if (claim.request.u.hello.magic != ROCEFS_UAPI_MAGIC) {
    return Error{EPROTO, "the first request has no magic number"};
  }
  if (engine_.mode() != ClockMode::kReal) {
    return Error{EOPNOTSUPP, "programs have no place in virtual time"};
  }
  channel.slot = slots_.take(claim.who.uid, claim.who.privileged());
  if (!channel.slot) return errorf(EMFILE, "it has its share of {} channels", kMaxChannels);
  return {};
}

void UcmaServer::refuse(const Channel& channel, const Error& why) {
  refusals_.say(fmt::format("a CM channel of pid {} ({}) of user {} is refused: {}",
                            channel.who.pid, channel.comm, channel.who.uid, why.reason));
}

void UcmaServer::take_over(ClientServer::Claim claim) {
  const rocefs_hello& said = claim.request.u.hello;
  auto channel = std::make_shared<Channel>();
  channel->id = next_id_++;
  channel->who = claim.who;
  channel->comm = program_name({said.comm, sizeof said.comm});
  channel->commands = std::move(claim.socket);
  Result<void> result = check(claim, *channel);
  int ends[2] = {-1, -1};
  if (result && ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    result = Error{EMFILE, "no descriptors are left"};
  }
  Fd theirs(ends[1]);
  channel->events = channel->commands.of_same(Fd(ends[0]));
  rocefs_answer answer = result ? rocefs_answer{} : refusal(result.error());
  if (result) channel->name = cookie_of(theirs.get());
  if (!result) refuse(*channel, result.error());
  const int passed[] = {theirs.get()};
  bool sent =
      send_at_once(channel->commands.get(), answer, std::span<const int>(passed, theirs ? 1 : 0));
  if (!result || !sent) return;
  channels_[channel->id] = channel;
  loop_.watch(channel->commands.get(), [this, channel] { take(channel); });
  // The client has closed its end.
  loop_.watch(channel->events.get(), [this, channel] { drop(channel, ""); });
  open(channel);
}

void UcmaServer::open(const ChannelPtr& channel) {
  auto readable = [&engine = engine_, weak = std::weak_ptr<Channel>(channel)] {
    engine.tell_control([weak] {
      ChannelPtr here = weak.lock();
      char octet = 1;
      if (!here || !here->events) return;
      (void)!::send(here->events.get(), &octet, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    });
  };
  Ucma::Credentials owner{channel->who.uid, channel->who.privileged(), scope_of_(channel->who.pid),
                          channel->who.pid};
  Task task = [&ucma = ucma_, id = channel->id, owner, readable] {
    ucma.open(id, owner, readable);
  };
  if (!engine_.post(task)) drop(channel, "finds the engine busy");
}

void UcmaServer::take(const ChannelPtr& given) {
  ChannelPtr channel = given;
  Command command;
  using Kind = StrangerMessage::Kind;
  StrangerMessage message = receive_from_stranger(channel->commands, bytes_of(command), false);
  if (message.kind == Kind::kNothing) return;
  const rocefs_cm_command& header = command.header;
  bool whole = message.kind == Kind::kReceived && message.size >= sizeof header &&
               header.size <= ROCEFS_CM_MAX_COMMAND && header.option_size <= ROCEFS_CM_MAX_OPTION &&
               message.size == sizeof header + header.size + header.option_size;
  if (message.kind == Kind::kEnd) return drop(channel, "");
  if (!whole) return drop(channel, "sends what is no command");
  if (std::exchange(channel->answering, true))
    return drop(channel, "sends a request before the last is answered");
  handle(channel, command);
}

void UcmaServer::handle(const ChannelPtr& channel, const Command& command) {
  const uint8_t* octets = command.octets.data();
  std::vector<uint8_t> in(octets, octets + command.header.size);
  std::vector<uint8_t> option(octets + in.size(), octets + in.size() + command.header.option_size);
  uint64_t other = 0;
  for (const auto& [id, one] : channels_) {
    bool named = command.header.other != 0 && one->name == command.header.other;
    if (named && one->who.pid == channel->who.pid) other = id;
  }
  engine_.call<UcmaChannel::Reply>(
      [&ucma = ucma_, id = channel->id, other, in = std::move(in),
       option = std::move(option)]() -> Result<UcmaChannel::Reply> {
        UcmaChannel* core = ucma.channel(id);
        if (!core) return Error{EIO, "the channel has gone"};
        return core->command(in, option, ucma.channel(other));
      },
      [this, weak = std::weak_ptr<Channel>(channel)](Result<UcmaChannel::Reply> reply) {
        if (ChannelPtr here = weak.lock()) answer(here, reply);
      });
}

void UcmaServer::answer(const ChannelPtr& channel, const Result<UcmaChannel::Reply>& reply) {
  if (!channel->commands) return;
  channel->answering = false;
  struct {
    rocefs_cm_answer header;
    char octets[ROCEFS_CM_MAX_ANSWER];
  } out{};
  size_t size = 0;
  if (reply) {
    size = std::min(reply->bytes.size(), sizeof out.octets);
    std::memcpy(out.octets, reply->bytes.data(), size);
    out.header = {0, static_cast<uint32_t>(size), reply->emptied, reply->other_emptied};
  } else {
    out.header.error = reply.error().code;
  }
  size_t all = sizeof out.header + size;
  ssize_t sent = ::send(channel->commands.get(), &out, all, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(all)) return drop(channel, "does not receive its answers");
  if (!reply && reply.error().code != EAGAIN) {
    failures_.say(fmt::format("pid {} ({}) is refused by the CM: {}", channel->who.pid,
                              channel->comm, reply.error().reason));
  }
}

// Closes the channel on the core, behind all commands posted before.
void UcmaServer::drop(const ChannelPtr& given, std::string_view why) {
  ChannelPtr channel = given;  // keeps the channel alive while its handler is destroyed
  if (channels_.erase(channel->id) == 0) return;
  if (!why.empty()) {
    failures_.say(fmt::format("pid {} ({}) loses its CM channel: it {}", channel->who.pid,
                              channel->comm, why));
  }
  loop_.unwatch(channel->commands.get());
  loop_.unwatch(channel->events.get());
  channel->commands.hang_up();
  channel->events.hang_up();
  engine_.post_retrying([&ucma = ucma_, id = channel->id] { ucma.close(id); });
}

}  // namespace rocefs
