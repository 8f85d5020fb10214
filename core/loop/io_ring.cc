#include "core/loop/io_ring.h"

#include <liburing.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <list>
#include <utility>
#include <vector>

#include "core/base/fd.h"
#include "core/loop/io_parts.h"
#include "core/loop/io_uring_refusal.h"

namespace rocefs {
struct IoRing::State {
  // A watch, until it is cancelled.
  struct Request final : IoListener {
    State* state = nullptr;
    UniqueFunction<void()> ready;
    int fd = -1;
    bool cancelled = false;
    std::list<Request>::iterator self;
    void completed(int, uint32_t flags) override {
      state->complete(*this, (flags & IORING_CQE_F_MORE) != 0);
    }
  };

  // Reception on one socket: a multishot request, each completion with a buffer from a ring that
  // the kernel takes them from. Ends when the ring is empty, and is submitted again.
  struct Receiver final : IoListener {
    State& state;
    const int fd;
    DatagramListener* listener;
    const uint16_t group;
    const unsigned count;
    const size_t largest;  // payload
    const size_t size;     // bytes of a buffer
    std::vector<uint8_t> memory;
    io_uring_buf_ring* buffers = nullptr;
    msghdr shape{};
    bool cancelled = false;
    bool armed = false;
    unsigned errors = 0;  // consecutive

    Receiver(State& s, int socket, DatagramListener& l, uint16_t g, unsigned n, size_t most);
    ~Receiver();
    int offer();
    void arm();
    void completed(int result, uint32_t flags) override;
    void hand_on(int result, uint16_t buffer);
    void end(int code);
  };

  // A completion.
  struct Seen {
    IoListener* listener;
    int result;
    uint32_t flags;
  };

  io_uring ring{};
  std::deque<Seen> kept;  // taken out of the ring early
  bool initialised = false;
  bool disabled = false;
  bool tells = false;  // the kernel signals pending task work
  std::list<Request> requests;
  std::list<Receiver> receivers;
  uint16_t next_group = 0;
  IoOwners owners;

  ~State() {
    if (std::exchange(initialised, false)) io_uring_queue_exit(&ring);
  }

  // Whether there are requests to submit, or completions that only a system call delivers.
  bool wants_kernel() {
    constexpr unsigned kWaiting = IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW;
    return !tells || io_uring_sq_ready(&ring) > 0 ||
           (std::atomic_ref(*ring.sq.kflags).load(std::memory_order_acquire) & kWaiting) != 0;
  }
  size_t ready() const { return kept.size() + io_uring_cq_ready(&ring); }
  // The first of the ready() completions.
  Seen next() {
    if (kept.empty()) return take();
    Seen first = kept.front();
    kept.pop_front();
    return first;
  }
  Seen take() {
    io_uring_cqe* entry = nullptr;
    io_uring_peek_batch_cqe(&ring, &entry, 1);  // there is one, so this does not enter the kernel
    Seen seen{static_cast<IoListener*>(io_uring_cqe_get_data(entry)), entry->res, entry->flags};
    io_uring_cq_advance(&ring, 1);
    return seen;
  }
  // Submits all requests. The kernel may lack memory for a moment, or refuse more while the
  // completion queue is full: completions are then put aside. False if it takes none at all.
  bool flush() {
    while (io_uring_sq_ready(&ring) > 0) {
      int rc = io_uring_submit(&ring);
      if (rc < 0 && rc != -EAGAIN && rc != -EBUSY && rc != -EINTR) return false;
      if (rc > 0) continue;
      while (io_uring_cq_ready(&ring) > 0) kept.push_back(take());
      ::sched_yield();
    }
    return true;
  }
  io_uring_sqe* sqe() {
    io_uring_sqe* entry = io_uring_get_sqe(&ring);
    while (!entry) {
      if (!flush()) std::abort();  // the ring is not enabled
      entry = io_uring_get_sqe(&ring);
    }
    return entry;
  }
  static void set_listener(io_uring_sqe* entry, IoListener* listener) {
    io_uring_sqe_set_data(entry, listener);
  }
  Request& add() {
    requests.emplace_front();
    requests.front().self = requests.begin();
    requests.front().state = this;
    return requests.front();
  }
  void arm(Request& watch) {
    io_uring_sqe* entry = sqe();
    io_uring_prep_poll_multishot(entry, watch.fd, POLLIN);
    set_listener(entry, &watch);
  }
  void complete(Request& request, bool more) {
    if (request.cancelled) {
      if (!more) requests.erase(request.self);
      return;
    }
    if (!more) arm(request);
    request.ready();
  }
  // One pass over the completions present at its start, at most kMaxAtOnce. Enters the kernel for
  // no more: a peer that sends without pause is served in turn with other sources.
  void dispatch() {
    for (size_t left = std::min(kMaxAtOnce, ready()); left > 0; --left) {
      Seen seen = next();
      if (seen.listener) seen.listener->completed(seen.result, seen.flags);
    }
    receivers.remove_if([](const Receiver& one) { return one.cancelled && !one.armed; });
    owners.drop_released();
  }
};

IoRing::IoRing(std::unique_ptr<State> state) : state_(std::move(state)) {}
IoRing::~IoRing() = default;

Result<std::unique_ptr<IoRing>> IoRing::create(unsigned entries) {
  auto state = std::make_unique<State>();
  // R_DISABLED lets one thread make the ring and another own it. Kernels before 6.1 lack the rest.
  state->disabled = state->tells = true;
  int rc = io_uring_queue_init(entries, &state->ring,
                               IORING_SETUP_R_DISABLED | IORING_SETUP_SINGLE_ISSUER |
                                   IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG);
  if (rc == -EINVAL) {
    state->disabled = state->tells = false;
    rc = io_uring_queue_init(entries, &state->ring, 0);
  }
  if (rc < 0) return io_uring_refusal(-rc, io_uring_barriers());
  state->initialised = true;
  if (int code = refused_on_ring(state->ring.ring_fd)) {
    return io_uring_refusal(code, io_uring_barriers());
  }
  return std::unique_ptr<IoRing>(new IoRing(std::move(state)));
}

void IoRing::enable() {
  if (!state_->disabled) return;
  // liburing 2.3 declares io_uring_enable_rings() but does not export it.
  ::syscall(__NR_io_uring_register, state_->ring.ring_fd, IORING_REGISTER_ENABLE_RINGS, nullptr, 0);
}

void IoRing::watch(int fd, UniqueFunction<void()> ready) {
  State::Request& request = state_->add();
  request.ready = std::move(ready);
  request.fd = fd;
  state_->arm(request);
}

void IoRing::unwatch(int fd) {
  for (State::Request& request : state_->requests) {
    if (request.fd != fd || request.cancelled) continue;
    request.cancelled = true;
    io_uring_sqe* entry = state_->sqe();
    io_uring_prep_poll_remove(entry,
                              reinterpret_cast<uint64_t>(static_cast<IoListener*>(&request)));
    io_uring_sqe_set_data(entry, nullptr);
    submit();  // the kernel forgets the descriptor before it is closed
  }
}

IoRing::State::Receiver::Receiver(State& s, int socket, DatagramListener& l, uint16_t g, unsigned n,
                                  size_t most)
    : state(s),
      fd(socket),
      listener(&l),
      group(g),
      count(n),
      largest(most),
      size((sizeof(io_uring_recvmsg_out) + kName + kControl + largest + 63) / 64 * 64),
      memory(count * size) {
  shape.msg_namelen = kName;
  shape.msg_controllen = kControl;
}

// The kernel requires a page-aligned ring.
int IoRing::State::Receiver::offer() {
  size_t bytes = count * sizeof(io_uring_buf);
  void* place = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (place == MAP_FAILED) return errno;
  io_uring_buf_reg registration{};
  registration.ring_addr = reinterpret_cast<uint64_t>(place);
  registration.ring_entries = count;
  registration.bgid = group;
  if (int rc = io_uring_register_buf_ring(&state.ring, &registration, 0); rc != 0) {
    ::munmap(place, bytes);
    return -rc;
  }
  buffers = static_cast<io_uring_buf_ring*>(place);
  io_uring_buf_ring_init(buffers);
  for (unsigned i = 0; i < count; ++i) {
    io_uring_buf_ring_add(buffers, memory.data() + i * size, static_cast<unsigned>(size),
                          static_cast<uint16_t>(i), io_uring_buf_ring_mask(count),
                          static_cast<int>(i));
  }
  io_uring_buf_ring_advance(buffers, static_cast<int>(count));
  return 0;
}

IoRing::State::Receiver::~Receiver() {
  if (!buffers) return;
  if (state.initialised) io_uring_unregister_buf_ring(&state.ring, group);
  ::munmap(buffers, count * sizeof(io_uring_buf));
}

void IoRing::State::Receiver::arm() {
  io_uring_sqe* entry = state.sqe();
  io_uring_prep_recvmsg_multishot(entry, fd, &shape, 0);
  entry->flags |= IOSQE_BUFFER_SELECT;
  entry->buf_group = group;
  set_listener(entry, this);
  armed = true;
}

void IoRing::State::Receiver::completed(int result, uint32_t flags) {
  if (!(flags & IORING_CQE_F_MORE)) armed = false;
  if (flags & IORING_CQE_F_BUFFER) hand_on(result, static_cast<uint16_t>(flags >> 16));
  errors = result >= 0 ? 0 : errors + 1;
  if (armed || cancelled) return;
  bool goes_on = result >= 0 || (passes(-result) && errors < kMaxErrors);
  goes_on ? arm() : end(-result);
}

void IoRing::State::Receiver::hand_on(int result, uint16_t buffer) {
  uint8_t* at = memory.data() + buffer * size;
  io_uring_recvmsg_out* out = result < 0 ? nullptr : io_uring_recvmsg_validate(at, result, &shape);
  if (out && !cancelled) {
    auto* name = static_cast<uint8_t*>(io_uring_recvmsg_name(out));
    size_t control = std::min<size_t>(out->controllen, kControl);
    auto* payload = static_cast<uint8_t*>(io_uring_recvmsg_payload(out, &shape));
    size_t length = io_uring_recvmsg_payload_length(out, result, &shape);
    bool truncated = (out->flags & MSG_TRUNC) != 0 || length > largest;
    listener->received({reinterpret_cast<const sockaddr*>(name),
                        {name + kName, control},
                        {payload, std::min(length, largest)},
                        truncated});
  }
  io_uring_buf_ring_add(buffers, at, static_cast<unsigned>(size), buffer,
                        io_uring_buf_ring_mask(count), 0);
  io_uring_buf_ring_advance(buffers, 1);
}

void IoRing::State::Receiver::end(int code) {
  cancelled = true;
  listener->receiving_ended(code);
}

void IoRing::send_message(int fd, const msghdr& message, IoListener& done) {
  io_uring_sqe* entry = state_->sqe();
  io_uring_prep_sendmsg(entry, fd, &message, MSG_DONTWAIT);
  State::set_listener(entry, &done);
}

void IoRing::await_room(int fd, IoListener& done) {
  io_uring_sqe* entry = state_->sqe();
  io_uring_prep_poll_add(entry, fd, POLLOUT);
  State::set_listener(entry, &done);
}

void IoRing::receive_messages(int fd, unsigned buffers, size_t largest,
                              DatagramListener& listener) {
  State::Receiver& receiver =
      state_->receivers.emplace_back(*state_, fd, listener, state_->next_group++, buffers, largest);
  if (int code = receiver.offer(); code != 0) return receiver.end(code);
  receiver.arm();
}

// A kernel that supports multishot reception waits for data on the socket; others fail at once.
Result<void> IoRing::can_receive_messages() const {
  Result<std::unique_ptr<IoRing>> made = create(4);
  if (!made) return made.error();
  (*made)->enable();
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return errorf(errno, "no socket: {}", std::strerror(errno));
  }
  Fd near(ends[0]), far(ends[1]);
  struct Listener final : DatagramListener {
    int code = 0;
    void received(const Datagram&) override {}
    void receiving_ended(int why) override { code = why; }
  } listener;
  (*made)->receive_messages(near.get(), 1, 64, listener);
  (*made)->poll();
  return multishot_refusal(listener.code);
}

void IoRing::stop_receiving(int fd) {
  for (State::Receiver& receiver : state_->receivers) {
    if (receiver.fd != fd || receiver.cancelled) continue;
    // Completions received so far go to the listener first.
    for (int i = 0; i < kMaxPassesAtStop && (state_->ready() > 0 || state_->wants_kernel()); ++i) {
      poll();
    }
    receiver.cancelled = true;
    io_uring_sqe* entry = state_->sqe();
    io_uring_prep_cancel64(entry, reinterpret_cast<uint64_t>(static_cast<IoListener*>(&receiver)),
                           0);
    io_uring_sqe_set_data(entry, nullptr);
    submit();
  }
}

void IoRing::read(int fd, std::span<uint8_t> into, Wait wait, IoListener& done) {
  io_uring_sqe* entry = state_->sqe();
  constexpr uint64_t kPosition = ~uint64_t{0};  // the descriptor's own
  io_uring_prep_read(entry, fd, into.data(), static_cast<unsigned>(into.size()), kPosition);
  if (wait == Wait::kAtOnce) entry->rw_flags = RWF_NOWAIT;
  State::set_listener(entry, &done);
}

void IoRing::write(int fd, std::span<const iovec> from, IoListener& done) {
  io_uring_sqe* entry = state_->sqe();
  constexpr uint64_t kPosition = ~uint64_t{0};
  io_uring_prep_writev(entry, fd, from.data(), static_cast<unsigned>(from.size()), kPosition);
  State::set_listener(entry, &done);
}

void IoRing::cancel(IoListener& done) {
  io_uring_sqe* entry = state_->sqe();
  io_uring_prep_cancel64(entry, reinterpret_cast<uint64_t>(&done), 0);
  io_uring_sqe_set_data(entry, nullptr);
}

void IoRing::adopt(std::unique_ptr<IoOwner> owner) {
  state_->owners.adopt(std::move(owner));
}

void IoRing::release(IoOwner& owner) {
  state_->owners.release(owner);
}

void IoRing::submit() {
  (void)state_->flush();
}

void IoRing::poll() {
  if (state_->wants_kernel()) io_uring_submit_and_get_events(&state_->ring);
  state_->dispatch();
}

void IoRing::wait(TimeNs timeout_ns) {
  if (state_->ready() > 0) return submit();
  io_uring_cqe* first = nullptr;
  if (timeout_ns == kNever) {
    io_uring_submit_and_wait(&state_->ring, 1);
    return;
  }
  __kernel_timespec ts{timeout_ns / kSecond, timeout_ns % kSecond};
  io_uring_submit_and_wait_timeout(&state_->ring, &first, 1, &ts, nullptr);
}

}  // namespace rocefs
