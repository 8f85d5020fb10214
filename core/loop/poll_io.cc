#include "core/loop/poll_io.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <deque>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/fd.h"
#include "core/loop/io_parts.h"

namespace rocefs {
struct PollIo::State {
  // A prepared request, or one that waits for its descriptor.
  struct Request {
    enum class Kind { kSend, kRoom, kReadAtOnce, kRead, kWrite };
    Kind kind;
    int fd;
    IoListener* listener;
    const msghdr* message = nullptr;
    std::span<uint8_t> into = {};
    std::span<const iovec> from = {};

    bool writes() const { return kind == Kind::kWrite; }
    ssize_t transfer() const;
    ssize_t transfer_file() const;
  };

  // Reception on one socket, several datagrams by one call.
  struct Receiver {
    const int fd;
    DatagramListener* const listener;
    const size_t largest;  // payload
    const size_t size;     // bytes of a buffer
    std::vector<uint8_t> memory;
    std::vector<iovec> parts;
    std::vector<mmsghdr> headers;
    bool readable = true;  // there may be datagrams
    unsigned errors = 0;   // consecutive

    Receiver(int socket, DatagramListener& l, unsigned count, size_t most);
    void clear(size_t buffer);
    int take(size_t limit);
    bool goes_on_after(int code);
  };

  // A descriptor that the kernel is asked about.
  struct Source {
    int fd = -1;
    uint32_t asked = 0;  // events, edge-triggered
    bool queued = false;
    std::shared_ptr<UniqueFunction<void()>> watcher;
    bool told = false;  // data has come; the watcher is to be called
    std::unique_ptr<Receiver> receiver;
    std::deque<Request> reads, writes, rooms;  // waiting

    uint32_t wanted() const {
      bool in = watcher || receiver || !reads.empty();
      bool out = !writes.empty() || !rooms.empty();
      return (in ? uint32_t{EPOLLIN} : 0u) | (out ? uint32_t{EPOLLOUT} : 0u);
    }
  };

  struct Done {
    IoListener* listener;
    int result;
  };

  explicit State(Fd made) : epoll(std::move(made)) {}

  Fd epoll;
  std::vector<Request> prepared;
  std::unordered_map<int, Source> sources;
  std::deque<Done> done;
  std::deque<int> ready;  // descriptors of sources that a pass has to look at
  IoOwners owners;

  void finish(const Request& request, ssize_t result) {
    done.push_back({request.listener, static_cast<int>(result)});
  }
  Source& source(int fd) {
    Source& one = sources[fd];
    one.fd = fd;
    return one;
  }
  Source* find(int fd) {
    auto found = sources.find(fd);
    return found == sources.end() ? nullptr : &found->second;
  }
  void queue(Source& one) {
    if (!std::exchange(one.queued, true)) ready.push_back(one.fd);
  }

  int ask(Source& one);
  void settle(Source& one);
  void start(const Request& request);
  void start_transfer(const Request& request);
  size_t send(size_t first);
  void happened(Source& one, uint32_t events);
  size_t serve(int fd, size_t limit);
  size_t receive(Source& one, size_t limit);
  void gather();
  void dispatch();
  bool cancel(std::deque<Request>& waiting, const IoListener& listener);
};

// The result of a read or a write now: EAGAIN if it would wait.
ssize_t PollIo::State::Request::transfer() const {
  const iovec whole{into.data(), into.size()};
  constexpr off_t kPosition = -1;  // the descriptor's own
  ssize_t result =
      writes() ? ::pwritev2(fd, from.data(), static_cast<int>(from.size()), kPosition, RWF_NOWAIT)
               : ::preadv2(fd, &whole, 1, kPosition, RWF_NOWAIT);
  if (result >= 0) return result;
  if (errno != EOPNOTSUPP) return -errno;
  // A kind of file that does not know the flag.
  pollfd look{fd, static_cast<short>(writes() ? POLLOUT : POLLIN), 0};
  return ::poll(&look, 1, 0) == 0 ? -EAGAIN : transfer_file();
}

// The result where the call does not wait: for a regular file.
ssize_t PollIo::State::Request::transfer_file() const {
  ssize_t result = writes() ? ::writev(fd, from.data(), static_cast<int>(from.size()))
                            : ::read(fd, into.data(), into.size());
  return result < 0 ? -errno : result;
}

PollIo::PollIo(std::unique_ptr<State> state) : state_(std::move(state)) {}
PollIo::~PollIo() = default;

Result<std::unique_ptr<PollIo>> PollIo::create() {
  Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return errorf(errno, "epoll: {}", std::strerror(errno));
  return std::unique_ptr<PollIo>(new PollIo(std::make_unique<State>(std::move(epoll))));
}

// Asks for the events that the source waits for; those that are there come at once. An errno:
// EPERM for a file that is always ready.
int PollIo::State::ask(Source& one) {
  epoll_event wanted{};
  wanted.events = one.wanted() | EPOLLET;
  wanted.data.fd = one.fd;
  int operation = one.asked == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
  int failed = ::epoll_ctl(epoll.get(), operation, one.fd, &wanted) == 0 ? 0 : errno;
  // The descriptor was closed meanwhile, and its number is in use again.
  if (failed == ENOENT) {
    failed = ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, one.fd, &wanted) == 0 ? 0 : errno;
  }
  one.asked = failed == 0 ? one.wanted() : 0;
  return failed;
}

// Asks for no more than the source waits for, and forgets it if that is nothing: its descriptor may
// be closed now.
void PollIo::State::settle(Source& one) {
  if (one.wanted() == one.asked) {
    if (one.asked != 0) return;
  } else if (one.wanted() != 0) {
    (void)ask(one);
    return;
  } else {
    ::epoll_ctl(epoll.get(), EPOLL_CTL_DEL, one.fd, nullptr);
  }
  sources.erase(int{one.fd});
}

void PollIo::State::start(const Request& request) {
  if (request.kind != Request::Kind::kRoom) return start_transfer(request);
  Source& one = source(request.fd);
  one.rooms.push_back(request);
  int failed = ask(one);
  if (failed == 0) return;
  one.rooms.pop_back();
  finish(request, failed == EPERM ? POLLOUT : -failed);
  settle(one);
}

// Requests of one kind for one descriptor are done in their order.
void PollIo::State::start_transfer(const Request& request) {
  if (Source* one = find(request.fd); one && request.kind != Request::Kind::kReadAtOnce) {
    std::deque<Request>& before = request.writes() ? one->writes : one->reads;
    if (!before.empty()) return before.push_back(request);
  }
  ssize_t result = request.transfer();
  if (result != -EAGAIN || request.kind == Request::Kind::kReadAtOnce) {
    return finish(request, result);
  }
  Source& one = source(request.fd);
  std::deque<Request>& waiting = request.writes() ? one.writes : one.reads;
  waiting.push_back(request);
  int failed = ask(one);
  if (failed == 0) return;
  waiting.pop_back();
  finish(request, failed == EPERM ? request.transfer_file() : -failed);
  settle(one);
}

// Sends the first prepared message and those behind it to the same socket; returns how many. Once
// one finds no room, the rest is not tried.
size_t PollIo::State::send(size_t first) {
  constexpr size_t kMost = 64;
  std::array<mmsghdr, kMost> messages;
  size_t count = 0, tried = 0;
  const int fd = prepared[first].fd;
  while (count < kMost && first + count < prepared.size()) {
    const Request& next = prepared[first + count];
    if (next.kind != Request::Kind::kSend || next.fd != fd) break;
    messages[count++].msg_hdr = *next.message;
  }
  while (tried < count) {
    int sent = ::sendmmsg(fd, messages.data() + tried, static_cast<unsigned>(count - tried),
                          MSG_DONTWAIT | MSG_NOSIGNAL);
    int failed = sent < 0 ? errno : 0;
    for (int i = 0; i < sent; ++i, ++tried) {
      finish(prepared[first + tried], messages[tried].msg_len);
    }
    if (failed == 0) continue;
    size_t rest = failed == EAGAIN ? count : tried + 1;
    for (; tried < rest; ++tried) finish(prepared[first + tried], -failed);
  }
  return count;
}

void PollIo::State::happened(Source& one, uint32_t events) {
  auto serve_waiting = [this](std::deque<Request>& waiting) {
    while (!waiting.empty()) {
      ssize_t result = waiting.front().transfer();
      if (result == -EAGAIN) return;
      finish(waiting.front(), result);
      waiting.pop_front();
    }
  };
  if ((events & (EPOLLIN | EPOLLERR | EPOLLHUP)) != 0) {
    serve_waiting(one.reads);
    one.told = one.watcher != nullptr;
    if (one.receiver) one.receiver->readable = true;
    if (one.told || one.receiver) queue(one);
  }
  if ((events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0) serve_waiting(one.writes);
  // An error alone is no room: a socket keeps its queue of errors until they are read.
  if ((events & (EPOLLOUT | EPOLLHUP)) != 0) {
    for (const Request& room : one.rooms) finish(room, POLLOUT);
    one.rooms.clear();
  }
  settle(one);
}

// One look at what the kernel has to tell; what does not fit comes at the next one.
void PollIo::State::gather() {
  std::array<epoll_event, kMaxAtOnce> events;
  int count = ::epoll_wait(epoll.get(), events.data(), events.size(), 0);
  for (int i = 0; i < count; ++i) {
    if (Source* one = find(events[i].data.fd)) happened(*one, events[i].events);
  }
}

PollIo::State::Receiver::Receiver(int socket, DatagramListener& l, unsigned count, size_t most)
    : fd(socket),
      listener(&l),
      largest(most),
      size((kName + kControl + largest + 63) / 64 * 64),
      memory(std::min<size_t>(count, kMaxAtOnce) * size),
      parts(std::min<size_t>(count, kMaxAtOnce)),
      headers(parts.size()) {
  for (size_t i = 0; i < headers.size(); ++i) {
    uint8_t* at = memory.data() + i * size;
    parts[i] = {at + kName + kControl, largest};
    msghdr& header = headers[i].msg_hdr;
    header.msg_name = at;
    header.msg_iov = &parts[i];
    header.msg_iovlen = 1;
    header.msg_control = at + kName;
    clear(i);
  }
}

void PollIo::State::Receiver::clear(size_t buffer) {
  msghdr& header = headers[buffer].msg_hdr;
  header.msg_namelen = kName;
  header.msg_controllen = kControl;
  header.msg_flags = 0;
}

// Hands on at most `limit` datagrams; returns how many, or a negative errno. Fewer than were asked
// for: there were no more; an error that ended it is told by an event of its own.
int PollIo::State::Receiver::take(size_t limit) {
  size_t most = std::min(limit, headers.size());
  int count = ::recvmmsg(fd, headers.data(), static_cast<unsigned>(most), MSG_DONTWAIT, nullptr);
  if (count < 0) return -errno;
  readable = static_cast<size_t>(count) == most;
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    const msghdr& header = headers[i].msg_hdr;
    size_t length = headers[i].msg_len;
    listener->received({static_cast<const sockaddr*>(header.msg_name),
                        {static_cast<uint8_t*>(header.msg_control), header.msg_controllen},
                        {static_cast<uint8_t*>(parts[i].iov_base), std::min(length, largest)},
                        (header.msg_flags & MSG_TRUNC) != 0});
    clear(i);
  }
  return count;
}

bool PollIo::State::Receiver::goes_on_after(int code) {
  if (code == EAGAIN) {
    readable = false;
    return true;
  }
  return ++errors < kMaxErrors && passes(code);
}

// Returns the number of datagrams. The source may be gone afterwards.
size_t PollIo::State::receive(Source& one, size_t limit) {
  Receiver& receiver = *one.receiver;
  int count = receiver.take(limit);
  if (count >= 0) {
    receiver.errors = 0;
  } else if (!receiver.goes_on_after(-count)) {
    std::unique_ptr<Receiver> ended = std::move(one.receiver);
    settle(one);
    ended->listener->receiving_ended(-count);
    return 1;
  }
  if (receiver.readable) queue(one);
  return static_cast<size_t>(std::max(count, 1));
}

// Calls the listeners of one descriptor; returns how many times, at most `limit`.
size_t PollIo::State::serve(int fd, size_t limit) {
  Source* one = find(fd);
  if (!one) return 0;
  one->queued = false;
  size_t calls = 0;
  if (std::exchange(one->told, false)) {
    std::shared_ptr<UniqueFunction<void()>> watcher = one->watcher;  // may end its watch
    (*watcher)();
    one = find(fd);
    calls = 1;
  }
  if (!one || !one->receiver || !one->receiver->readable) return calls;
  if (calls < limit) return calls + receive(*one, limit - calls);
  queue(*one);
  return calls;
}

// One pass over the completions and sources present at its start, at most kMaxAtOnce of each. Asks
// the kernel for no more: a peer that sends without pause is served in turn with other sources.
void PollIo::State::dispatch() {
  for (size_t left = std::min(kMaxAtOnce, done.size()); left > 0; --left) {
    Done next = done.front();
    done.pop_front();
    next.listener->completed(next.result, 0);
  }
  size_t left = kMaxAtOnce;
  for (size_t count = ready.size(); count > 0 && left > 0; --count) {
    int fd = ready.front();
    ready.pop_front();
    left -= serve(fd, left);
  }
  owners.drop_released();
}

void PollIo::watch(int fd, UniqueFunction<void()> ready) {
  State::Source& one = state_->source(fd);
  one.watcher = std::make_shared<UniqueFunction<void()>>(std::move(ready));
  int failed = state_->ask(one);
  assert(failed == 0 || failed == EPERM);
  if (failed == 0) return;
  one.told = true;  // a file is ready once and for all
  state_->queue(one);
}

void PollIo::unwatch(int fd) {
  State::Source* one = state_->find(fd);
  if (!one || !one->watcher) return;
  one->watcher.reset();
  one->told = false;
  state_->settle(*one);
}

void PollIo::send_message(int fd, const msghdr& message, IoListener& done) {
  state_->prepared.push_back({State::Request::Kind::kSend, fd, &done, &message});
}

void PollIo::await_room(int fd, IoListener& done) {
  state_->prepared.push_back({State::Request::Kind::kRoom, fd, &done});
}

void PollIo::receive_messages(int fd, unsigned buffers, size_t largest,
                              DatagramListener& listener) {
  State::Source& one = state_->source(fd);
  one.receiver = std::make_unique<State::Receiver>(fd, listener, buffers, largest);
  (void)state_->ask(one);
  state_->queue(one);  // the first look reports that it is no socket
}

void PollIo::stop_receiving(int fd) {
  State::Source* one = state_->find(fd);
  if (!one || !one->receiver) return;
  // Datagrams received so far go to the listener first.
  int passed = 0;
  do {
    poll();
    one = state_->find(fd);
    if (!one || !one->receiver) return;
  } while (one->receiver->readable && ++passed < kMaxPassesAtStop);
  one->receiver.reset();
  state_->settle(*one);
}

void PollIo::read(int fd, std::span<uint8_t> into, Wait wait, IoListener& done) {
  using Kind = State::Request::Kind;
  Kind kind = wait == Wait::kAtOnce ? Kind::kReadAtOnce : Kind::kRead;
  state_->prepared.push_back({kind, fd, &done, nullptr, into});
}

void PollIo::write(int fd, std::span<const iovec> from, IoListener& done) {
  state_->prepared.push_back({State::Request::Kind::kWrite, fd, &done, nullptr, {}, from});
}

// Whether a request of the listener waited.
bool PollIo::State::cancel(std::deque<Request>& waiting, const IoListener& listener) {
  auto found = std::find_if(waiting.begin(), waiting.end(),
                            [&](const Request& one) { return one.listener == &listener; });
  if (found == waiting.end()) return false;
  finish(*found, -ECANCELED);
  waiting.erase(found);
  return true;
}

void PollIo::cancel(IoListener& done) {
  submit();
  for (auto& [fd, one] : state_->sources) {
    if (state_->cancel(one.reads, done) || state_->cancel(one.writes, done) ||
        state_->cancel(one.rooms, done)) {
      return state_->settle(one);
    }
  }
}

void PollIo::adopt(std::unique_ptr<IoOwner> owner) {
  state_->owners.adopt(std::move(owner));
}

void PollIo::release(IoOwner& owner) {
  state_->owners.release(owner);
}

void PollIo::submit() {
  std::vector<State::Request>& prepared = state_->prepared;
  for (size_t i = 0; i < prepared.size();) {
    if (prepared[i].kind == State::Request::Kind::kSend) {
      i += state_->send(i);
    } else {
      state_->start(prepared[i++]);
    }
  }
  prepared.clear();
}

void PollIo::poll() {
  submit();
  state_->gather();
  state_->dispatch();
}

// The set of descriptors can be polled as one; poll() asks which.
void PollIo::wait(TimeNs timeout_ns) {
  submit();
  if (!state_->done.empty() || !state_->ready.empty()) return;
  pollfd any{state_->epoll.get(), POLLIN, 0};
  TimeNs left = std::max<TimeNs>(timeout_ns, 0);
  timespec limit{left / kSecond, left % kSecond};
  ::ppoll(&any, 1, timeout_ns == kNever ? nullptr : &limit, nullptr);
}

}  // namespace rocefs
