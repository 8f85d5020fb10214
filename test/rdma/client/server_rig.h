// Engine, fabric and client server without a mount, in threads of this process, and clients that
// speak rdma/uapi by hand, honest or not. A client may be this process, or a child of it.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "core/config/topology.h"
#include "core/loop/poll_loop.h"
#include "rdma/client/server.h"
#include "rdma/network/fabric.h"
#include "rdma/nic/device.h"

namespace rocefs::test {

class ServerRig {
 public:
  explicit ServerRig(ClockMode mode = ClockMode::kReal) {
    auto created = Engine::create({mode, 1, 0}, loop);
    REQUIRE(created);
    engine = std::move(*created);
    fabric =
        std::make_unique<Fabric>(default_topology(), 1, engine->scheduler(), engine->outstanding());
    auto served = ClientServer::create(*engine, *fabric, loop,
                                       [this](std::string_view line) { log += line, log += '\n'; });
    REQUIRE(served);
    server = std::move(*served);
    Fd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    // The kernel finds it a name.
    sa_family_t family = AF_UNIX;
    REQUIRE(::bind(listener.get(), reinterpret_cast<sockaddr*>(&family), sizeof family) == 0);
    REQUIRE(::listen(listener.get(), 64) == 0);
    address_size = sizeof address;
    ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &address_size);
    server->listen(std::move(listener));
    engine->start();
    control = std::thread([this] { loop.run(); });
  }
  ~ServerRig() {
    loop.post([this] {
      server->close_listener();
      server->drop_all();
    });
    loop.stop();
    control.join();
    engine->stop();
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    bool settled = server->settle();
    while (!settled && std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
      settled = server->settle();
    }
    CHECK(settled);
  }

  // The log of the server, which writes it on the loop's thread.
  std::string logged() {
    std::promise<std::string> told;
    loop.post([&] { told.set_value(log); });
    return told.get_future().get();
  }
  // Runs `look` on the core.
  template <class Look>
  auto on_core(Look look) {
    using T = decltype(look());
    std::atomic<bool> done{false};
    T value{};
    Task task = [&] {
      value = look();
      done.store(true);
    };
    while (!engine->post(task)) std::this_thread::yield();
    while (!done.load()) std::this_thread::yield();
    return value;
  }
  // Until `holds` says so on the core; false after ten seconds.
  template <class Holds>
  bool wait_on_core(Holds holds) {
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (std::chrono::steady_clock::now() < end) {
      if (on_core(holds)) return true;
      ::usleep(1000);
    }
    return false;
  }

  PollLoop loop;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<Fabric> fabric;
  std::unique_ptr<ClientServer> server;
  std::string log;
  sockaddr_un address{};
  socklen_t address_size = 0;
  std::thread control;
};

// A mapping of a descriptor that the engine gave.
class Mapping {
 public:
  Mapping() = default;
  Mapping(Fd fd, size_t size, int protection, uint64_t offset = 0)
      : fd_(std::move(fd)), size_(size) {
    at_ = static_cast<uint8_t*>(
        ::mmap(nullptr, size_, protection, MAP_SHARED, fd_.get(), static_cast<off_t>(offset)));
    REQUIRE(at_ != MAP_FAILED);
  }
  Mapping(Mapping&& other) noexcept { *this = std::move(other); }
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(at_, other.at_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Mapping() {
    if (at_) ::munmap(at_, size_);
  }
  int fd() const { return fd_.get(); }
  template <class T>
  T* at(size_t offset = 0) const {
    return reinterpret_cast<T*>(at_ + offset);
  }

 private:
  Fd fd_;
  uint8_t* at_ = nullptr;
  size_t size_ = 0;
};

class TestClient {
 public:
  // A whole message and its descriptors; false at the end.
  static bool take(int socket, void* data, size_t size, std::vector<Fd>& fds) {
    iovec part{data, size};
    alignas(cmsghdr) char space[CMSG_SPACE(4 * sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = space;
    message.msg_controllen = sizeof space;
    ssize_t got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    if (header && header->cmsg_type == SCM_RIGHTS) {
      size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (size_t i = 0; i < count; ++i) {
        int fd;
        std::memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
        fds.emplace_back(fd);
      }
    }
    return got == static_cast<ssize_t>(size);
  }
  explicit TestClient(const ServerRig& rig, bool greet = true) {
    ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    socket_ = Fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    REQUIRE(::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&rig.address),
                      rig.address_size) == 0);
    if (greet) REQUIRE(greeted());
  }
  // Takes the greeting; false if it is refused.
  bool greeted() {
    rocefs_greeting greeting{};
    std::vector<Fd> own;
    if (!take(socket_.get(), &greeting, sizeof greeting, own)) return false;
    if (greeting.magic == ROCEFS_UAPI_REFUSAL) {
      refusal_ = static_cast<int>(greeting.version);
      return false;
    }
    socket_ = std::move(own.at(0));
    return greeting.magic == ROCEFS_UAPI_MAGIC;
  }

  // The errno of a refused greeting, or 0.
  int refusal() const { return refusal_; }

  struct Answer {
    rocefs_answer said{};
    std::vector<Fd> fds;
    bool closed = false;
  };

  void send(const rocefs_request& request, int attached = -1) {
    iovec part{const_cast<rocefs_request*>(&request), sizeof request};
    alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (attached >= 0) {
      message.msg_control = space;
      message.msg_controllen = sizeof space;
      auto* header = reinterpret_cast<cmsghdr*>(space);
      *header = {CMSG_LEN(sizeof attached), SOL_SOCKET, SCM_RIGHTS};
      std::memcpy(CMSG_DATA(header), &attached, sizeof attached);
    }
    (void)!::sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
  }
  Answer receive() {
    Answer answer;
    answer.closed = !take(socket_.get(), &answer.said, sizeof answer.said, answer.fds);
    if (answer.closed) answer.said.error = EPIPE;
    return answer;
  }
  Answer ask(const rocefs_request& request, int attached = -1) {
    send(request, attached);
    return receive();
  }

  // Says hello; the errno of the answer.
  int open(const char* device = "mb_0") {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
    events_ = Fd(ends[0]);
    Fd theirs(ends[1]);
    rocefs_request request{};
    request.op = ROCEFS_OP_HELLO;
    request.u.hello.magic = ROCEFS_UAPI_MAGIC;
    request.u.hello.version = ROCEFS_UAPI_VERSION;
    std::strcpy(request.u.hello.device, device);
    std::strcpy(request.u.hello.comm, "test");
    request.u.hello.probe = reinterpret_cast<uint64_t>(&probe_);
    Answer answer = ask(request, theirs.get());
    if (answer.said.error != 0) return answer.said.error;
    REQUIRE(answer.fds.size() == 3);
    engine_page_ = Mapping(std::move(answer.fds[0]), sizeof(rocefs_engine_page), PROT_READ);
    page_ = Mapping(std::move(answer.fds[1]), sizeof(rocefs_context_page), PROT_READ | PROT_WRITE);
    doorbell_ = std::move(answer.fds[2]);
    return 0;
  }
  uint32_t handle_of(uint32_t op, uint32_t handle = 0) {
    rocefs_request request{};
    request.op = op;
    request.u.handle = handle;
    Answer answer = ask(request);
    REQUIRE(answer.said.error == 0);
    return answer.said.u.handle;
  }
  Answer destroy(uint32_t op, uint32_t handle) {
    rocefs_request request{};
    request.op = op;
    request.u.handle = handle;
    return ask(request);
  }

  struct Region {
    int error = 0;
    uint32_t handle = 0, key = 0;
  };
  Region reg(uint32_t pd, const void* address, size_t length, uint32_t access = 15) {
    rocefs_request request{};
    request.op = ROCEFS_OP_REG_MR;
    auto at = reinterpret_cast<uint64_t>(address);
    request.u.reg_mr = {pd, access, at, length, at};
    Answer answer = ask(request);
    if (answer.said.error != 0) return {answer.said.error, 0, 0};
    return {0, answer.said.u.mr.handle, answer.said.u.mr.lkey};
  }

  // Pages of the engine's as a region, whose first byte is 0 for requests.
  Mapping share(uint32_t pd, size_t length, Region& made) {
    rocefs_request request{};
    request.op = ROCEFS_OP_SHARE_MR;
    request.u.reg_mr = {pd, 15, 0, length, 0};
    Answer answer = ask(request);
    REQUIRE(answer.said.error == 0);
    made = {0, answer.said.u.mr.handle, answer.said.u.mr.lkey};
    return Mapping(std::move(answer.fds.at(0)), length, PROT_READ | PROT_WRITE,
                   answer.said.u.mr.offset);
  }

  struct Cq {
    uint32_t handle = 0, entries = 0;
    Mapping memory;
    rocefs_cq_page* page() const { return memory.at<rocefs_cq_page>(); }
    // Takes one completion; false if there is none.
    bool poll(rocefs_cqe& out) {
      uint32_t at = page()->consumed;
      if (load_acquire(page()->produced) == at) return false;
      out = memory.at<rocefs_cqe>(ROCEFS_CQ_ENTRIES)[at & (entries - 1)];
      store_release(page()->consumed, at + 1);
      return true;
    }
    bool wait(rocefs_cqe& out, int milliseconds = 10000) {
      auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
      while (!poll(out)) {
        if (std::chrono::steady_clock::now() > end) return false;
        ::usleep(50);
      }
      return true;
    }
  };
  Cq create_cq(uint32_t entries) {
    rocefs_request request{};
    request.op = ROCEFS_OP_CREATE_CQ;
    request.u.create_cq = {42, 0, entries, 0};
    Answer answer = ask(request);
    REQUIRE(answer.said.error == 0);
    const rocefs_created& made = answer.said.u.created;
    return {made.handle, made.entries,
            Mapping(std::move(answer.fds.at(0)), made.size, PROT_READ | PROT_WRITE)};
  }

  struct Queue {
    rocefs_created made{};
    Mapping memory;
    rocefs_qp_page* page() const { return memory.at<rocefs_qp_page>(); }
    rocefs_send_wqe& send_slot(uint32_t at) const {
      return memory.at<rocefs_send_wqe>(made.send_offset)[at & (made.entries - 1)];
    }
    rocefs_receive_wqe& receive_slot(uint32_t at) const {
      return memory.at<rocefs_receive_wqe>(made.receive_offset)[at & (made.receive_entries - 1)];
    }
  };
  Queue create_qp(uint32_t pd, const Cq& cq, uint32_t type = 2, uint32_t depth = 16) {
    rocefs_request request{};
    request.op = ROCEFS_OP_CREATE_QP;
    request.u.create_qp = {7, pd, type, cq.handle, cq.handle, 0, depth, depth, 4, 4, 64, 0, 0};
    Answer answer = ask(request);
    REQUIRE(answer.said.error == 0);
    const rocefs_created& made = answer.said.u.created;
    return {made, Mapping(std::move(answer.fds.at(0)), made.size, PROT_READ | PROT_WRITE)};
  }

  int modify(rocefs_qp_attr attr) {
    rocefs_request request{};
    request.op = ROCEFS_OP_MODIFY_QP;
    request.u.qp = attr;
    return ask(request).said.error;
  }
  // To RTS, towards a queue pair of the device with that IPv4 address.
  void connect(const Queue& qp, const std::array<uint8_t, 4>& ip, uint32_t remote_qpn) {
    rocefs_qp_attr attr{};
    attr.handle = qp.made.handle;
    attr.mask = 1 << 0 | 1 << 3 | 1 << 4 | 1 << 5;
    attr.state = 1;
    attr.port = 1;
    attr.access = 15;
    REQUIRE(modify(attr) == 0);
    attr.mask = 1 << 0 | 1 << 7 | 1 << 8 | 1 << 20 | 1 << 12 | 1 << 17 | 1 << 15;
    attr.state = 2;
    attr.path.is_global = 1;
    attr.path.sgid_index = 1;
    attr.path.port = 1;
    attr.path.hop_limit = 1;
    Ip gid = mapped_ipv4(ip);
    std::copy(gid.begin(), gid.end(), attr.path.dgid);
    attr.path_mtu = 5;
    attr.remote_qpn = remote_qpn;
    attr.max_dest_rd_atomic = attr.max_rd_atomic = 16;
    attr.min_rnr_timer = 1;
    REQUIRE(modify(attr) == 0);
    attr.mask = 1 << 0 | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 16 | 1 << 13;
    attr.state = 3;
    attr.timeout = 14;
    attr.retry_count = 7;
    attr.rnr_retry = 7;
    REQUIRE(modify(attr) == 0);
  }

  void ring(uint32_t bell) {
    auto* page = page_.at<rocefs_context_page>();
    std::atomic_ref(page->doorbells[bell / 64]).fetch_or(uint64_t{1} << bell % 64);
    std::atomic_ref(page->rung).fetch_or(uint64_t{1} << bell / 64);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (engine_page_.at<rocefs_engine_page>()->asleep) knock();
  }
  void knock() {
    uint64_t one = 1;
    (void)!::write(doorbell_.get(), &one, sizeof one);
  }
  void post(Queue& qp, const rocefs_send_wqe& wqe) {
    uint32_t at = qp.page()->send.posted;
    qp.send_slot(at) = wqe;
    store_release(qp.page()->send.posted, at + 1);
    ring(qp.made.doorbell);
  }
  void post(Queue& qp, const rocefs_receive_wqe& wqe) {
    uint32_t at = qp.page()->receive.posted;
    qp.receive_slot(at) = wqe;
    store_release(qp.page()->receive.posted, at + 1);
    ring(qp.made.doorbell);
  }

  rocefs_context_page* page() const { return page_.at<rocefs_context_page>(); }
  int events() const { return events_.get(); }
  int doorbell() const { return doorbell_.get(); }
  const Mapping& engine_page() const { return engine_page_; }
  int page_fd() const { return page_.fd(); }
  int socket() const { return socket_.get(); }
  void close() { socket_.reset(); }

 private:
  Fd socket_, events_, doorbell_;
  int refusal_ = 0;
  Mapping engine_page_, page_;
  const uint32_t probe_ = ROCEFS_UAPI_MAGIC;
};

// A request that writes to, or reads from, far memory.
inline rocefs_send_wqe rdma_request(uint32_t opcode, const void* local, uint32_t length,
                                    uint32_t lkey, const void* remote, uint32_t rkey) {
  rocefs_send_wqe wqe{};
  wqe.wr_id = 1;
  wqe.opcode = opcode;
  wqe.flags = ROCEFS_SEND_SIGNALED;
  wqe.rkey = rkey;
  wqe.remote_address = reinterpret_cast<uint64_t>(remote);
  wqe.num_sge = 1;
  wqe.u.sges[0] = {reinterpret_cast<uint64_t>(local), length, lkey};
  return wqe;
}

// Two clients, one of mb_0 and one of mb_1, with a connected queue pair each and memory of their
// own.
struct Pair {
  explicit Pair(const ServerRig& rig, size_t bytes = 1 << 20)
      : near_memory(bytes), far_memory(bytes), near(rig), far(rig) {
    REQUIRE(near.open("mb_0") == 0);
    REQUIRE(far.open("mb_1") == 0);
    near_pd = near.handle_of(ROCEFS_OP_ALLOC_PD);
    far_pd = far.handle_of(ROCEFS_OP_ALLOC_PD);
    near_cq = near.create_cq(256);
    far_cq = far.create_cq(256);
    near_region = near.reg(near_pd, near_memory.data(), bytes);
    far_region = far.reg(far_pd, far_memory.data(), bytes);
    REQUIRE(near_region.error == 0);
    REQUIRE(far_region.error == 0);
    near_qp = near.create_qp(near_pd, near_cq);
    far_qp = far.create_qp(far_pd, far_cq);
    near.connect(near_qp, {10, 77, 0, 2}, far_qp.made.qpn);
    far.connect(far_qp, {10, 77, 0, 1}, near_qp.made.qpn);
  }
  rocefs_send_wqe write(uint32_t length) const {
    return rdma_request(ROCEFS_WR_RDMA_WRITE, near_memory.data(), length, near_region.key,
                        far_memory.data(), far_region.key);
  }

  std::vector<uint8_t> near_memory, far_memory;
  TestClient near, far;
  uint32_t near_pd = 0, far_pd = 0;
  TestClient::Cq near_cq, far_cq;
  TestClient::Region near_region, far_region;
  TestClient::Queue near_qp, far_qp;
};

}  // namespace rocefs::test
