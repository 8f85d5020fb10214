#include "core/io_ring.h"

#include <liburing.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <list>

#include "core/io_uring_refusal.h"

namespace rocefs {
struct IoRing::State {
  // One request in the kernel: a write ends with its completion, a watch when it is cancelled.
  struct Request {
    Completion done;
    UniqueFunction<void()> ready;
    int fd = -1;
    bool cancelled = false;
    std::list<Request>::iterator self;
  };

  io_uring ring{};
  bool initialised = false;
  bool disabled = false;
  bool tells = false;  // the kernel says when it has something for us
  std::list<Request> requests;

  ~State() {
    if (initialised) io_uring_queue_exit(&ring);
  }

  // Whether there is something to submit, or completions that only a call brings.
  bool wants_kernel() {
    constexpr unsigned kWaiting = IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW;
    return !tells || io_uring_sq_ready(&ring) > 0 ||
           (std::atomic_ref(*ring.sq.kflags).load(std::memory_order_acquire) & kWaiting) != 0;
  }
  io_uring_sqe* sqe() {
    io_uring_sqe* entry = io_uring_get_sqe(&ring);
    if (!entry) {
      io_uring_submit(&ring);
      entry = io_uring_get_sqe(&ring);
    }
    assert(entry);
    return entry;
  }
  Request& add() {
    requests.emplace_front();
    requests.front().self = requests.begin();
    return requests.front();
  }
  void arm(Request& watch) {
    io_uring_sqe* entry = sqe();
    io_uring_prep_poll_multishot(entry, watch.fd, POLLIN);
    io_uring_sqe_set_data(entry, &watch);
  }
  void complete(Request& request, int result, bool more) {
    if (request.cancelled) {
      if (!more) requests.erase(request.self);
      return;
    }
    if (request.ready) {
      if (!more) arm(request);
      request.ready();
      return;
    }
    Completion done = std::move(request.done);
    requests.erase(request.self);
    done(result);
  }
  void dispatch() {
    std::array<io_uring_cqe*, 32> batch;
    while (unsigned count = io_uring_peek_batch_cqe(&ring, batch.data(), batch.size())) {
      struct Seen {
        Request* request;
        int result;
        bool more;
      };
      std::array<Seen, batch.size()> seen;
      for (unsigned i = 0; i < count; ++i) {
        seen[i] = {static_cast<Request*>(io_uring_cqe_get_data(batch[i])), batch[i]->res,
                   (batch[i]->flags & IORING_CQE_F_MORE) != 0};
      }
      io_uring_cq_advance(&ring, count);
      for (unsigned i = 0; i < count; ++i) {
        if (seen[i].request) complete(*seen[i].request, seen[i].result, seen[i].more);
      }
    }
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

void IoRing::write(int fd, const void* data, size_t size, uint64_t offset, Completion done) {
  State::Request& request = state_->add();
  request.done = std::move(done);
  io_uring_sqe* entry = state_->sqe();
  io_uring_prep_write(entry, fd, data, static_cast<unsigned>(size), offset);
  io_uring_sqe_set_flags(entry, IOSQE_ASYNC);
  io_uring_sqe_set_data(entry, &request);
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
    io_uring_prep_poll_remove(entry, reinterpret_cast<uint64_t>(&request));
    io_uring_sqe_set_data(entry, nullptr);
    io_uring_submit(&state_->ring);  // the kernel forgets the descriptor before it is closed
  }
}

void IoRing::poll() {
  if (state_->wants_kernel()) io_uring_submit_and_get_events(&state_->ring);
  state_->dispatch();
}

void IoRing::wait(TimeNs timeout_ns) {
  io_uring_cqe* first = nullptr;
  if (timeout_ns == kNever) {
    io_uring_submit_and_wait(&state_->ring, 1);
  } else {
    __kernel_timespec ts{timeout_ns / kSecond, timeout_ns % kSecond};
    io_uring_submit_and_wait_timeout(&state_->ring, &first, 1, &ts, nullptr);
  }
  state_->dispatch();
}

}  // namespace rocefs
