// Clients that write invalid values to the memory shared with the engine harm only themselves.
#include "test/rdma/client/hostile.h"

#include <linux/falloc.h>
#include <linux/futex.h>
#include <sys/syscall.h>

using namespace rocefs;
using namespace rocefs::test;

namespace {

// Threads that repeat `work` until they are destroyed.
class Again {
 public:
  template <class Work>
  explicit Again(Work work)
      : thread_([this, work]() mutable {
          while (!stop_.load()) work();
        }) {}
  ~Again() {
    stop_.store(true);
    thread_.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

uint32_t next_event(TestClient& client) {
  pollfd ready{client.events(), POLLIN, 0};
  rocefs_async_event event{};
  bool came = ::poll(&ready, 1, 10000) == 1 &&
              ::recv(client.events(), &event, sizeof event, 0) == sizeof event;
  return came ? event.type : ~0u;
}

}  // namespace

TEST_CASE("hostile: an invalid posted counter puts its queue pair in error, and no other") {
  ServerRig rig;
  Bystander bystander(rig, "posted counters that lie");
  std::mt19937 random(1);
  for (int round = 0; round < 40; ++round) {
    Pair pair(rig, 8192);
    check_works(pair);
    bool sends = round & 1;
    rocefs_queue& queue = sends ? pair.near_qp.page()->send : pair.near_qp.page()->receive;
    uint32_t posted = queue.posted;
    uint32_t lies[] = {posted + 17, posted - 1, posted + (1u << 31),
                       posted + 17 + static_cast<uint32_t>(random() % 100000)};
    uint32_t lie = lies[round / 2 % 4];
    INFO("posted " << posted << " becomes " << lie << (sends ? ", send" : ", receive"));
    store_release(queue.posted, lie);
    pair.near.ring(pair.near_qp.made.doorbell);
    CHECK(await([&] { return state_of(pair.near, pair.near_qp) == kError; }));
    CHECK(state_of(pair.far, pair.far_qp) == kRts);
    rocefs_cqe none;
    CHECK_FALSE(pair.near_cq.poll(none));
    connect_again(pair);  // a reset takes the counter as it is
    check_works(pair);
  }
}

TEST_CASE("hostile: a shared receive queue with an invalid counter gives no receives") {
  ServerRig rig;
  Bystander bystander(rig, "an SRQ's counter that lies");
  Pair pair(rig, 8192);
  rocefs_request request{};
  request.op = ROCEFS_OP_CREATE_SRQ;
  request.u.create_srq = {1, pair.far_pd, 16, 1, 0, 0};
  TestClient::Answer made = pair.far.ask(request);
  REQUIRE(made.said.error == 0);
  Mapping srq(std::move(made.fds.at(0)), made.said.u.created.size, PROT_READ | PROT_WRITE);
  request = {};
  request.op = ROCEFS_OP_CREATE_QP;
  request.u.create_qp = {1,
                         pair.far_pd,
                         2,
                         pair.far_cq.handle,
                         pair.far_cq.handle,
                         made.said.u.created.handle,
                         4,
                         0,
                         1,
                         0,
                         0,
                         0,
                         0};
  TestClient::Answer qp = pair.far.ask(request);
  REQUIRE(qp.said.error == 0);
  for (uint32_t lie : {17u, ~0u, 1u << 31}) {
    store_release(srq.at<rocefs_queue>()->posted, lie);
    pair.far.ring(made.said.u.created.doorbell);
    pair.far.ring(qp.said.u.created.doorbell);
    bystander.expect(20);
    CHECK(load_acquire(srq.at<rocefs_queue>()->released) == 0);
  }
  check_works(pair);
}

TEST_CASE("hostile: an invalid work request completes with the matching status") {
  ServerRig rig;
  Bystander bystander(rig, "work requests that make no sense");
  Pages more(1 << 20);
  struct Row {
    const char* what;
    void (*spoil)(rocefs_send_wqe& wqe, const Pair& pair, uint32_t read_only);
    uint32_t status;
  };
  using Wqe = rocefs_send_wqe;
  const Row rows[] = {
      {"one entry too many", [](Wqe& w, const Pair&, uint32_t) { w.num_sge = 5; },
       kQpOperationError},
      {"more entries than there is room", [](Wqe& w, const Pair&, uint32_t) { w.num_sge = 9; },
       kQpOperationError},
      {"2^32-1 entries", [](Wqe& w, const Pair&, uint32_t) { w.num_sge = ~0u; }, kQpOperationError},
      {"the opcode of a bind", [](Wqe& w, const Pair&, uint32_t) { w.opcode = 8; }, kBindError},
      {"opcode 10", [](Wqe& w, const Pair&, uint32_t) { w.opcode = 10; }, kQpOperationError},
      {"opcode 2^32-1", [](Wqe& w, const Pair&, uint32_t) { w.opcode = ~0u; }, kQpOperationError},
      {"257 bytes inline",
       [](Wqe& w, const Pair&, uint32_t) { w.flags |= ROCEFS_SEND_INLINE, w.num_sge = 257; },
       kQpOperationError},
      {"2^32-1 bytes inline",
       [](Wqe& w, const Pair&, uint32_t) { w.flags |= ROCEFS_SEND_INLINE, w.num_sge = ~0u; },
       kQpOperationError},
      {"a READ into inline data",
       [](Wqe& w, const Pair&, uint32_t) {
         w.opcode = ROCEFS_WR_RDMA_READ;
         w.flags |= ROCEFS_SEND_INLINE;
         w.num_sge = 64;
       },
       kProtectionError},
      {"lkey 0", [](Wqe& w, const Pair&, uint32_t) { w.u.sges[0].lkey = 0; }, kProtectionError},
      {"lkey 2^32-1", [](Wqe& w, const Pair&, uint32_t) { w.u.sges[0].lkey = ~0u; },
       kProtectionError},
      {"another generation's lkey", [](Wqe& w, const Pair&, uint32_t) { ++w.u.sges[0].lkey; },
       kProtectionError},
      {"a byte past the region",
       [](Wqe& w, const Pair& p, uint32_t) {
         w.u.sges[0].length = static_cast<uint32_t>(p.near_memory.size()) + 1;
       },
       kProtectionError},
      {"a byte before the region", [](Wqe& w, const Pair&, uint32_t) { --w.u.sges[0].address; },
       kProtectionError},
      {"past the last address", [](Wqe& w, const Pair&, uint32_t) { w.u.sges[0].address = ~0ull; },
       kProtectionError},
      {"the second entry's lkey",
       [](Wqe& w, const Pair&, uint32_t) {
         w.num_sge = 2;
         w.u.sges[1] = {w.u.sges[0].address, 64, 0x1234};
       },
       kProtectionError},
      {"4 GiB in one", [](Wqe& w, const Pair&, uint32_t) { w.u.sges[0].length = ~0u; },
       kLengthError},
      {"16 GiB in four",
       [](Wqe& w, const Pair&, uint32_t) {
         w.num_sge = 4;
         for (auto& sge : w.u.sges) sge = w.u.sges[0], sge.length = ~0u;
       },
       kLengthError},
      {"an atomic of 4 bytes",
       [](Wqe& w, const Pair&, uint32_t) {
         w.opcode = ROCEFS_WR_ATOMIC_FETCH_AND_ADD;
         w.u.sges[0].length = 4;
       },
       kLengthError},
      {"a READ into read-only memory",
       [](Wqe& w, const Pair&, uint32_t read_only) {
         w.opcode = ROCEFS_WR_RDMA_READ;
         w.u.sges[0].lkey = read_only;
       },
       kProtectionError},
      {"an invalidation of a region",
       [](Wqe& w, const Pair& p, uint32_t) {
         w.opcode = ROCEFS_WR_LOCAL_INV;
         w.immediate = p.near_region.key;
       },
       kBindError},
      {"no such rkey", [](Wqe& w, const Pair&, uint32_t) { w.rkey = ~0u; }, kRemoteAccess},
      {"past the far region",
       [](Wqe& w, const Pair& p, uint32_t) { w.remote_address += p.far_memory.size() - 63; },
       kRemoteAccess},
      {"an atomic that is not aligned",
       [](Wqe& w, const Pair&, uint32_t) {
         w.opcode = ROCEFS_WR_ATOMIC_CMP_AND_SWP;
         w.u.sges[0].length = 8;
         w.remote_address += 4;
       },
       kRemoteInvalid},
  };
  for (const Row& row : rows) {
    INFO(row.what);
    Pair pair(rig, 8192);
    TestClient::Region read_only = pair.near.reg(pair.near_pd, pair.near_memory.data(), 8192, 0);
    REQUIRE(read_only.error == 0);
    std::vector<uint8_t> before = pair.far_memory;
    rocefs_send_wqe bad = pair.write(64), good = pair.write(64);
    row.spoil(bad, pair, read_only.key);
    bad.wr_id = 77;
    good.wr_id = 78;
    uint32_t at = pair.near_qp.page()->send.posted;
    pair.near_qp.send_slot(at) = bad;
    pair.near_qp.send_slot(at + 1) = good;
    store_release(pair.near_qp.page()->send.posted, at + 2);
    pair.near.ring(pair.near_qp.made.doorbell);
    rocefs_cqe first = completion_of(pair.near_cq);
    CHECK(first.status == row.status);
    CHECK(first.wr_id == 77);
    rocefs_cqe second = completion_of(pair.near_cq);
    CHECK(second.status == kFlushed);
    CHECK(second.wr_id == 78);
    CHECK(state_of(pair.near, pair.near_qp) == kError);
    bool at_far_end = row.status >= kRemoteInvalid;
    CHECK(state_of(pair.far, pair.far_qp) == (at_far_end ? kError : kRts));
    CHECK(pair.far_memory == before);
  }
}

TEST_CASE("hostile: an invalid datagram stops only the send queue") {
  ServerRig rig;
  Bystander bystander(rig, "datagrams that make no sense");
  Pair pair(rig, 8192);
  for (int which = 0; which < 5; ++which) {
    INFO("case " << which);
    TestClient::Queue qp = pair.near.create_qp(pair.near_pd, pair.near_cq, 4);
    rocefs_qp_attr attr{};
    attr.handle = qp.made.handle;
    attr.mask = 1 | 1 << 4 | 1 << 5 | 1 << 6;
    attr.state = kInit;
    attr.port = 1;
    REQUIRE(pair.near.modify(attr) == 0);
    REQUIRE(to_state(pair.near, qp, kRtr) == 0);
    attr.mask = 1 | 1 << 16;
    attr.state = kRts;
    REQUIRE(pair.near.modify(attr) == 0);
    rocefs_send_wqe wqe = pair.write(64);
    wqe.opcode = ROCEFS_WR_SEND;
    wqe.path.is_global = wqe.path.port = wqe.path.sgid_index = 1;
    Ip gid = mapped_ipv4(kFarIp);
    std::copy(gid.begin(), gid.end(), wqe.path.dgid);
    if (which == 0) wqe.opcode = ROCEFS_WR_RDMA_WRITE;
    if (which == 1) wqe.path.sgid_index = 255;
    if (which == 2) wqe.path.port = 2;
    if (which == 3) std::memset(wqe.path.dgid, 0, sizeof wqe.path.dgid);
    if (which == 4) wqe.u.sges[0].length = 8192;
    pair.near.post(qp, wqe);
    CHECK(completion_of(pair.near_cq).status == (which == 4 ? kLengthError : kQpOperationError));
    CHECK(state_of(pair.near, qp) == kSqe);
    CHECK(pair.near.destroy(ROCEFS_OP_DESTROY_QP, qp.made.handle).said.error == 0);
  }
  check_works(pair);
}

TEST_CASE("hostile: an invalid receive request fails the message that takes it") {
  ServerRig rig;
  Bystander bystander(rig, "receive requests that make no sense");
  for (uint32_t entries : {5u, 9u, ~0u}) {
    Pair pair(rig, 8192);
    rocefs_receive_wqe receive{};
    receive.wr_id = 5;
    receive.num_sge = entries;
    for (auto& sge : receive.sges) {
      sge = {reinterpret_cast<uint64_t>(pair.far_memory.data()), 64, pair.far_region.key};
    }
    pair.far.post(pair.far_qp, receive);
    rocefs_send_wqe send = pair.write(64);
    send.opcode = ROCEFS_WR_SEND;
    pair.near.post(pair.near_qp, send);
    CHECK(completion_of(pair.far_cq).status == kProtectionError);
    CHECK(completion_of(pair.near_cq).status == kRemoteOperation);
    CHECK(state_of(pair.far, pair.far_qp) == kError);
  }
}

TEST_CASE("hostile: an invalid consumed counter overruns its completion queue") {
  ServerRig rig;
  Bystander bystander(rig, "consumed counters that lie");
  for (uint32_t lie : {1000u, ~0u - 256, 1u << 31}) {
    Pair pair(rig, 8192);
    check_works(pair);
    store_release(pair.near_cq.page()->consumed, lie);
    uint32_t produced = load_acquire(pair.near_cq.page()->produced);
    pair.near.post(pair.near_qp, pair.write(64));
    CHECK(next_event(pair.near) == 0);  // IBV_EVENT_CQ_ERR
    CHECK(state_of(pair.near, pair.near_qp) == kError);
    CHECK(load_acquire(pair.near_cq.page()->produced) == produced);
    CHECK(state_of(pair.far, pair.far_qp) == kRts);
  }
}

TEST_CASE("hostile: doorbells of unknown queues and an eventfd that is always ready do no harm") {
  ServerRig rig;
  Bystander bystander(rig, "doorbells of queues that are not there");
  Pair pair(rig, 8192);
  rocefs_context_page* page = pair.near.page();
  {
    Again bells([&] {
      for (auto& word : page->doorbells) std::atomic_ref(word).store(~uint64_t{0});
      std::atomic_ref(page->rung).store(~uint64_t{0});
    });
    Again knocks([&] { pair.near.knock(); });
    bystander.expect(300);
    check_works(pair);
  }
  uint64_t full = ~uint64_t{0} - 1;  // the counter's last value
  ::fcntl(pair.near.doorbell(), F_SETFL, O_NONBLOCK);
  (void)!::write(pair.near.doorbell(), &full, sizeof full);
  bystander.expect();
}

TEST_CASE("hostile: a thousand threads that wait for completions hold up nobody") {
  ServerRig rig;
  Bystander bystander(rig, "a thousand waiting threads");
  Pair pair(rig, 8192);
  rocefs_context_page* page = pair.near.page();
  std::atomic<bool> stop{false};
  std::vector<std::thread> waiting;
  for (int i = 0; i < 1000; ++i) {
    waiting.emplace_back([&] {
      while (!stop.load()) {
        std::atomic_ref(page->waiters).store(1);
        uint32_t seen = load_acquire(page->completions);
        if (!stop.load()) {
          ::syscall(SYS_futex, &page->completions, FUTEX_WAIT, seen, nullptr, nullptr, 0);
        }
      }
    });
  }
  for (int i = 0; i < 50; ++i) check_works(pair);
  bystander.expect();
  stop.store(true);
  for (auto& thread : waiting) {
    std::atomic<bool> joined{false};
    std::thread waker([&] {
      while (!joined.load()) {
        ::syscall(SYS_futex, &page->completions, FUTEX_WAKE, 1000, nullptr, nullptr, 0);
        ::usleep(100);
      }
    });
    thread.join();
    joined.store(true);
    waker.join();
  }
}

TEST_CASE("hostile: random bytes in all shared memory harm nobody else") {
  ServerRig rig;
  Bystander bystander(rig, "random bytes over all that is shared");
  Pair pair(rig, 8192);
  auto scribble = [random = std::mt19937(7)](Mapping& over, size_t size) mutable {
    for (int i = 0; i < 64; ++i) {
      uint32_t* word = over.at<uint32_t>(random() % (size / 4) * 4);
      // Half of them small, so that some are valid.
      std::atomic_ref(*word).store(static_cast<uint32_t>(random() & 1 ? random() : random() % 8),
                                   std::memory_order_relaxed);
    }
  };
  Mapping context(Fd(::dup(pair.near.page_fd())), sizeof(rocefs_context_page),
                  PROT_READ | PROT_WRITE);
  size_t cq_size = ROCEFS_CQ_ENTRIES + pair.near_cq.entries * sizeof(rocefs_cqe);
  {
    Again scribbling([&] {
      scribble(context, sizeof(rocefs_context_page));
      scribble(pair.near_qp.memory, pair.near_qp.made.size);
      scribble(pair.near_cq.memory, cq_size);
      scribble(pair.near_qp.memory, 4096);
      pair.near.knock();
    });
    for (int round = 0; round < 300; ++round) {
      // Requests are honest, and refused if its queue pair has failed meanwhile.
      for (uint32_t state : {kReset, kInit, kRtr, kRts}) {
        rocefs_qp_attr attr{};
        attr.handle = pair.near_qp.made.handle;
        attr.state = state;
        attr.mask = state == kReset  ? 1
                    : state == kInit ? 1 | 1 << 3 | 1 << 4 | 1 << 5
                    : state == kRtr  ? 1 | 1 << 7 | 1 << 8 | 1 << 20 | 1 << 12 | 1 << 17 | 1 << 15
                                     : 1 | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 16 | 1 << 13;
        attr.port = attr.path.port = attr.path.is_global = attr.path.sgid_index = 1;
        attr.access = 15;
        attr.path_mtu = 5;
        attr.remote_qpn = pair.far_qp.made.qpn;
        attr.max_rd_atomic = attr.max_dest_rd_atomic = 16;
        attr.timeout = 14;
        Ip gid = mapped_ipv4(kFarIp);
        std::copy(gid.begin(), gid.end(), attr.path.dgid);
        int error = pair.near.modify(attr);
        REQUIRE((error == 0 || error == EINVAL));
      }
    }
    bystander.expect(500);
  }
  CHECK(pair.near.destroy(ROCEFS_OP_DESTROY_QP, pair.near_qp.made.handle).said.error == 0);
  CHECK(pair.near.destroy(ROCEFS_OP_DESTROY_CQ, pair.near_cq.handle).said.error == 0);
}

TEST_CASE("hostile: shared memory can be emptied, but not resized, sealed or taken over") {
  ServerRig rig;
  Bystander bystander(rig, "holes in what is shared");
  Pair pair(rig, 8192);
  TestClient::Region region;
  Mapping lent = pair.near.share(pair.near_pd, 1 << 20, region);
  int shared[] = {pair.near.page_fd(), pair.near_qp.memory.fd(), pair.near_cq.memory.fd(),
                  lent.fd(), pair.near.engine_page().fd()};
  for (int fd : shared) {
    CHECK((::ftruncate(fd, 0) == -1 && errno == EPERM));
    CHECK((::ftruncate(fd, 1 << 24) == -1 && errno == EPERM));
    if (fd != lent.fd()) CHECK((::fallocate(fd, 0, 0, 1 << 24) == -1 && errno == EPERM));
    CHECK((::fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) == -1 && errno == EPERM));
  }
  int engine = pair.near.engine_page().fd();
  uint64_t one = 1;
  std::string path = "/proc/self/fd/" + std::to_string(engine);
  Fd reopened(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  for (int fd : {engine, reopened.get()}) {
    CHECK((::pwrite(fd, &one, sizeof one, 0) == -1));
    CHECK(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
    CHECK(::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) == -1);
  }
  CHECK(::mprotect(pair.near.engine_page().at<uint8_t>(), 4096, PROT_READ | PROT_WRITE) == -1);
  {
    Again punching([&] {
      for (int fd : {shared[0], shared[1], shared[2], shared[3]}) {
        ::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 1 << 20);
      }
      ::madvise(pair.near_qp.memory.at<uint8_t>(), 4096, MADV_REMOVE);
      std::memset(lent.at<uint8_t>(), 0xa5, 8192);
    });
    for (int i = 0; i < 200; ++i) {
      rocefs_send_wqe shared_write = rdma_request(ROCEFS_WR_RDMA_WRITE, nullptr, 8192, region.key,
                                                  pair.far_memory.data(), pair.far_region.key);
      pair.near.post(pair.near_qp, i % 2 ? shared_write : pair.write(4096));
      (void)state_of(pair.near, pair.near_qp);
    }
    bystander.expect(300);
  }
  CHECK(to_state(pair.near, pair.near_qp, kError) == 0);
  CHECK(pair.near.destroy(ROCEFS_OP_DESTROY_QP, pair.near_qp.made.handle).said.error == 0);
}
