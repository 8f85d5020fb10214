#include "rdma/host/host_server.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/passed_descriptors.h"
#include "core/process/stranger_socket.h"

namespace rocefs {
namespace {

template <class Answer>
void put_reason(Answer& answer, char* reason, size_t room, const Error& why) {
  answer.error = why.code;
  why.reason.copy(reason, room - 1);
}

}  // namespace

struct HostServer::Program {
  StrangerFd socket;
  Credentials who;
  Host* waits_for = nullptr;  // the host that it enters
  std::vector<Host*> began;   // hosts that it makes and has not started
  Host* attaches = nullptr;   // as the maker of this host alone
  bool makes_rest = false;    // though its host runs: another maker was interrupted
  bool answering = false;
};

HostServer::HostServer(Engine& engine, PollLoop& loop, Hosts& hosts,
                       std::function<bool(uid_t)> may_use, Log log)
    : engine_(engine),
      loop_(loop),
      hosts_(hosts),
      may_use_(std::move(may_use)),
      log_(std::move(log)),
      silence_(loop, [this] { drop_maker(); }) {}

HostServer::~HostServer() {
  for (const ProgramPtr& program : programs_) loop_.unwatch(program->socket.get());
}

Result<void> HostServer::check(const ClientServer::Claim& claim) const {
  if (engine_.mode() != ClockMode::kReal) {
    return Error{EOPNOTSUPP, "hosts need the real clock: a kernel has no place in virtual time"};
  }
  if (!may_use_(claim.who.uid)) return Error{EPERM, "hosts are for root and for the mount's owner"};
  if (programs_.size() >= kMaxPrograms) return Error{EAGAIN, "too many programs enter hosts now"};
  return {};
}

void HostServer::take_over(ClientServer::Claim claim) {
  auto program = std::make_shared<Program>();
  program->socket = std::move(claim.socket);
  program->who = claim.who;
  rocefs_answer answer{};
  Result<void> checked = check(claim);
  if (!checked) put_reason(answer, answer.u.reason, sizeof answer.u.reason, checked.error());
  bool sent = send_at_once(program->socket.get(), answer);
  if (!checked || !sent) return program->socket.hang_up();
  programs_.push_back(program);
  loop_.watch(program->socket.get(), [this, program] { take(program); });
}

// A program that waits for an answer and sends more is dropped.
void HostServer::take(const ProgramPtr& program) {
  rocefs_host_request request{};
  StrangerMessage message = receive_from_stranger(program->socket, bytes_of(request), true);
  if (message.kind == StrangerMessage::Kind::kNothing) return;
  bool good = message.kind == StrangerMessage::Kind::kReceived && message.size == sizeof request &&
              !program->answering && !program->waits_for;
  if (!good) return drop(program);
  request.host[sizeof request.host - 1] = 0;
  handle(program, request, std::move(message.attached));
}

void HostServer::handle(const ProgramPtr& program, const rocefs_host_request& request,
                        StrangerFd attached) {
  bool made = request.op == ROCEFS_HOST_MADE;
  Host* host = made ? nullptr : hosts_.find(request.host);
  if (!host && !made) {
    return answer(program, errorf(ENOENT, "there is no host {}", request.host));
  }
  if (request.op == ROCEFS_HOST_ENTER) {
    program->makes_rest = request.number != ROCEFS_HOST_AS_IT_IS;
    return enter(program, *host);
  }
  if (request.op == ROCEFS_HOST_ATTACH) return attach(program, *host, attached);
  if (request.op == ROCEFS_HOST_DETACH) return detach(program, *host);
  if (maker_.lock() != program)
    return answer(program, Error{EPERM, "another program makes the hosts"});
  build(program, request, host, std::move(attached));
}

void HostServer::enter(const ProgramPtr& program, Host& host) {
  program->waits_for = &host;
  serve_waiting();
}

void HostServer::attach(const ProgramPtr& program, Host& host, const StrangerFd& network) {
  if (!maker_.expired()) return answer(program, Error{EBUSY, "hosts are being made now"});
  Result<void> alone = network ? hosts_.check_network(host, network) : Result<void>();
  if (!alone) return answer(program, alone);
  program->attaches = &host;
  program->began.push_back(&host);
  make(program);
}

void HostServer::detach(const ProgramPtr& program, Host& host) {
  if (!maker_.expired()) return answer(program, Error{EBUSY, "hosts are being made now"});
  if (!host.attached) return answer(program, errorf(ENOENT, "{} is not attached", host.name));
  hosts_.stop(host);
  log_(fmt::format("{} detached by pid {} of user {}", host.name, program->who.pid,
                   program->who.uid));
  answer(program, {});
}

// Answers the programs whose host runs, and makes the first other one the maker if there is none.
// A program whose host runs makes the rest if the maker before it was interrupted.
void HostServer::serve_waiting() {
  const std::list<ProgramPtr> programs = programs_;
  for (const ProgramPtr& program : programs) {
    Host* host = program->waits_for;
    if (!host) continue;
    bool makes_rest =
        program->makes_rest && !all_tried_ && maker_.expired() && !hosts_.all_running();
    if (host->running && !makes_rest) {
      program->waits_for = nullptr;
      answer_running(program, *host);
    } else if (maker_.expired()) {
      program->waits_for = nullptr;
      make(program);
    }
  }
}

void HostServer::make(const ProgramPtr& program) {
  maker_ = program;
  answer(program, {}, ROCEFS_HOST_MAKE);
}

// A maker that is stopped, or waits for what does not come, would keep all others off the hosts.
void HostServer::drop_maker() {
  ProgramPtr program = maker_.lock();
  if (!program) return;
  log_(fmt::format("pid {} of user {} makes hosts no more: it has gone no step further for {} s",
                   program->who.pid, program->who.uid, kMakersTime / kSecond));
  drop(program);
}

void HostServer::build(const ProgramPtr& program, const rocefs_host_request& request, Host* host,
                       StrangerFd attached) {
  if (host && host->running && host != program->attaches)
    return answer(program, errorf(EBUSY, "{} runs already", host->name));
  auto& began = program->began;
  if (host && std::find(began.begin(), began.end(), host) == began.end()) began.push_back(host);
  switch (request.op) {
    case ROCEFS_HOST_PLUG:
      program->answering = true;
      return hosts_.plug(*host, request.number, std::move(attached),
                         [this, program](Result<void> result) {
                           program->answering = false;
                           if (program->socket) answer(program, result);
                         });
    case ROCEFS_HOST_WATCH:
      return answer(program, hosts_.watch(*host, std::move(attached)));
    case ROCEFS_HOST_PARK:
      return answer(program, hosts_.park(*host, request.number, std::move(attached)));
    case ROCEFS_HOST_NAMESPACE:
      return answer(program, hosts_.set_namespace(*host, request.number, std::move(attached)));
    case ROCEFS_HOST_STARTED: {
      Result<void> started = hosts_.start(*host, host == program->attaches, program->who.uid);
      if (started) std::erase(began, host);
      answer(program, started);
      return serve_waiting();
    }
    case ROCEFS_HOST_MADE:
      return made(program);
    default:
      return answer(program, errorf(EINVAL, "there is no operation {}", request.op));
  }
}

void HostServer::made(const ProgramPtr& program) {
  bool complete = program->began.empty();
  for (Host* host : program->began) Hosts::forget(*host);
  program->began.clear();
  if (!std::exchange(program->attaches, nullptr)) all_tried_ = true;
  maker_.reset();
  answer(program, {});
  if (complete) {
    log_(fmt::format("hosts made by pid {} of user {}", program->who.pid, program->who.uid));
  }
  serve_waiting();
}

void HostServer::answer(const ProgramPtr& program, const Result<void>& result,
                        rocefs_host_state state) {
  rocefs_host_answer answer{};
  answer.state = state;
  if (result && maker_.lock() == program) silence_.arm(kMakersTime);
  if (!result) put_reason(answer, answer.reason, sizeof answer.reason, result.error());
  if (!send_at_once(program->socket.get(), answer)) drop(program);
}

void HostServer::answer_running(const ProgramPtr& program, const Host& host) {
  rocefs_host_answer answer{};
  answer.state = ROCEFS_HOST_RUNNING;
  if (host.maker != program->who.uid) answer.present |= ROCEFS_HOST_OF_ANOTHER;
  std::vector<int> descriptors;
  for (size_t i = 0; i < host.namespaces.size(); ++i) {
    if (!host.namespaces[i]) continue;
    answer.present |= 1u << i;
    descriptors.push_back(host.namespaces[i].get());
  }
  if (!send_at_once(program->socket.get(), answer, descriptors)) drop(program);
}

// Takes back what it has not finished.
void HostServer::drop(const ProgramPtr& program) {
  if (!program->socket) return;
  loop_.unwatch(program->socket.get());
  program->socket.hang_up();
  program->socket.reset();
  for (Host* host : program->began) Hosts::forget(*host);
  bool was_maker = maker_.lock() == program;
  if (was_maker && !program->attaches) all_tried_ = false;
  if (was_maker) maker_.reset();
  programs_.remove(program);
  if (was_maker) serve_waiting();
}

}  // namespace rocefs
