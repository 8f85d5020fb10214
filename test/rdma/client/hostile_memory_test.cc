// Clients whose memory is unmapped or unresponsive, and processes that fork, stop, die or exec.
#include "test/rdma/client/hostile.h"
#include "test/silent_file.h"
#include "test/skip.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

rocefs_send_wqe request_of(uint32_t opcode, const Pages& local, uint32_t lkey, const Pages& remote,
                           uint32_t rkey) {
  bool atomic = opcode == ROCEFS_WR_ATOMIC_FETCH_AND_ADD || opcode == ROCEFS_WR_ATOMIC_WRITE;
  return rdma_request(opcode, local.data(), atomic ? 8 : static_cast<uint32_t>(local.size()), lkey,
                      remote.data(), rkey);
}

constexpr size_t kMegabyte = 1 << 20;

// A pair with pages of its own on both sides, which can be taken away.
struct PagedPair : Pair {
  explicit PagedPair(const ServerRig& rig, int sharing = MAP_PRIVATE)
      : Pair(rig, 8192), near_pages(kMegabyte, sharing), far_pages(kMegabyte, sharing) {
    near_key = near.reg(near_pd, near_pages.data(), kMegabyte).key;
    far_key = far.reg(far_pd, far_pages.data(), kMegabyte).key;
    REQUIRE((near_key != 0 && far_key != 0));
  }
  // Memory goes after its regions, whose deregistration waits for moves: a WRITE may be on the wire
  // when the near end has failed, and these clients are the process that runs the test.
  ~PagedPair() {
    (void)near.destroy(ROCEFS_OP_DEREG_MR, near_region.handle);
    (void)far.destroy(ROCEFS_OP_DEREG_MR, far_region.handle);
  }
  PagedPair(const PagedPair&) = delete;
  PagedPair& operator=(const PagedPair&) = delete;
  rocefs_send_wqe paged(uint32_t opcode) const {
    return request_of(opcode, near_pages, near_key, far_pages, far_key);
  }
  Pages near_pages, far_pages;
  uint32_t near_key, far_key;
};

// Report of a child about its two queue pairs.
struct Told {
  std::atomic<uint32_t> near_qpn{0}, far_qpn{0};
  std::atomic<uint64_t> steps{0};
  std::atomic<int> order{0};
};

void tell(Told& told, const Pair& pair) {
  told.near_qpn = pair.near_qp.made.qpn;
  told.far_qpn = pair.far_qp.made.qpn;
}
bool pair_is_gone(ServerRig& rig, const Told& told) {
  return qp_is_gone(rig, "mb_0", told.near_qpn) && qp_is_gone(rig, "mb_1", told.far_qpn);
}

}  // namespace

TEST_CASE("hostile: unmapped or read-only memory fails the request that needs it") {
  ServerRig rig;
  Bystander bystander(rig, "memory that is gone");
  enum End { kNearEnd, kFarEnd };
  enum How { kUnmapped, kReadOnly };
  struct Row {
    uint32_t opcode;
    End end;
    How how;
    uint32_t status;
  };
  const Row rows[] = {
      {ROCEFS_WR_RDMA_WRITE, kNearEnd, kUnmapped, kProtectionError},
      {ROCEFS_WR_RDMA_WRITE, kNearEnd, kReadOnly, kSuccess},
      {ROCEFS_WR_RDMA_WRITE, kFarEnd, kUnmapped, kRemoteAccess},
      {ROCEFS_WR_RDMA_WRITE, kFarEnd, kReadOnly, kRemoteAccess},
      {ROCEFS_WR_RDMA_READ, kNearEnd, kUnmapped, kProtectionError},
      {ROCEFS_WR_RDMA_READ, kNearEnd, kReadOnly, kProtectionError},
      {ROCEFS_WR_RDMA_READ, kFarEnd, kUnmapped, kRemoteAccess},
      {ROCEFS_WR_RDMA_READ, kFarEnd, kReadOnly, kSuccess},
      {ROCEFS_WR_ATOMIC_FETCH_AND_ADD, kNearEnd, kReadOnly, kProtectionError},
      {ROCEFS_WR_ATOMIC_FETCH_AND_ADD, kFarEnd, kUnmapped, kRemoteAccess},
      {ROCEFS_WR_ATOMIC_FETCH_AND_ADD, kFarEnd, kReadOnly, kRemoteAccess},
      {ROCEFS_WR_ATOMIC_WRITE, kNearEnd, kUnmapped, kProtectionError},
      {ROCEFS_WR_ATOMIC_WRITE, kNearEnd, kReadOnly, kSuccess},
      {ROCEFS_WR_ATOMIC_WRITE, kFarEnd, kUnmapped, kRemoteAccess},
      {ROCEFS_WR_ATOMIC_WRITE, kFarEnd, kReadOnly, kRemoteAccess},
  };
  for (const Row& row : rows) {
    INFO("opcode " << row.opcode << " end " << row.end << " how " << row.how);
    PagedPair pair(rig, MAP_SHARED);
    Pages& pages = row.end == kNearEnd ? pair.near_pages : pair.far_pages;
    if (row.how == kUnmapped) pages.unmap();
    if (row.how == kReadOnly) pages.protect(PROT_READ);
    pair.near.post(pair.near_qp, pair.paged(row.opcode));
    pair.near.post(pair.near_qp, pair.write(64));
    CHECK(completion_of(pair.near_cq).status == row.status);
    CHECK(completion_of(pair.near_cq).status == (row.status ? kFlushed : kSuccess));
    if (row.status == kProtectionError) CHECK(state_of(pair.far, pair.far_qp) == kRts);
    if (row.how == kReadOnly && row.opcode != ROCEFS_WR_RDMA_READ) {
      CHECK(pages.data()[0] == 0x5a);
    }
  }
  PagedPair pair(rig);
  pair.far_pages.unmap();
  rocefs_receive_wqe receive{};
  receive.num_sge = 1;
  receive.sges[0] = {reinterpret_cast<uint64_t>(pair.far_pages.data()), 4096, pair.far_key};
  pair.far.post(pair.far_qp, receive);
  rocefs_send_wqe send = pair.write(64);
  send.opcode = ROCEFS_WR_SEND;
  pair.near.post(pair.near_qp, send);
  CHECK(completion_of(pair.far_cq).status == kProtectionError);
  CHECK(completion_of(pair.near_cq).status == kRemoteOperation);
}

TEST_CASE("hostile: memory unmapped amid WRITEs and READs fails one request and flushes the rest") {
  ServerRig rig;
  Bystander bystander(rig, "memory that goes under way");
  for (int round = 0; round < 24; ++round) {
    PagedPair pair(rig);
    bool near_end = round & 1, reads = round & 2;
    uint32_t opcode = reads ? ROCEFS_WR_RDMA_READ : ROCEFS_WR_RDMA_WRITE;
    for (int i = 0; i < 8; ++i) pair.near.post(pair.near_qp, pair.paged(opcode));
    // Between the first one and the last.
    rocefs_cqe cqe = completion_of(pair.near_cq);
    CHECK(cqe.status == kSuccess);
    (near_end ? pair.near_pages : pair.far_pages).unmap();
    // All the others may have ended before it went.
    pair.near.post(pair.near_qp, pair.paged(opcode));
    uint32_t failed = kSuccess;
    for (int i = 1; i < 9; ++i) {
      cqe = completion_of(pair.near_cq);
      if (failed != kSuccess) {
        CHECK(cqe.status == kFlushed);
      } else if (cqe.status != kSuccess) {
        failed = cqe.status;
        CHECK(failed == (near_end ? kProtectionError : kRemoteAccess));
      }
    }
    CHECK(failed != kSuccess);
  }
}

TEST_CASE("hostile: memory that is replaced by an unresponsive file blocks only its owner") {
  ServerRig rig;
  SilentFile file;
  if (!file.open()) skip("a file that never answers cannot be mounted here");
  Bystander bystander(rig, "a file that nobody reads");
  for (bool closes_first : {true, false}) {
    for (uint32_t opcode : {ROCEFS_WR_RDMA_WRITE, ROCEFS_WR_RDMA_READ}) {
      Shared<Told> told;
      Child child([&] {
        PagedPair pair(rig);
        if (!file.cover(pair.near_pages.data(), kMegabyte)) return 3;
        tell(*told, pair);
        for (int i = 0; i < 4; ++i) pair.near.post(pair.near_qp, pair.paged(opcode));
        // Moves of other memory wait in the queue.
        pair.near.post(pair.near_qp, pair.write(64));
        pair.far.post(pair.far_qp, rdma_request(ROCEFS_WR_RDMA_WRITE, pair.far_memory.data(), 64,
                                                pair.far_region.key, pair.near_memory.data(),
                                                pair.near_region.key));
        told->steps = 1;
        while (told->order == 0) ::usleep(1000);
        pair.near.close();
        pair.far.close();
        told->steps = 2;
        for (;;) ::pause();
        return 0;
      });
      REQUIRE(await([&] { return told->steps == 1; }));
      bystander.expect();
      CHECK(rig.on_core(
          [&] { return rig.fabric->device("mb_0")->find_qp(told->near_qpn) != nullptr; }));
      if (closes_first) {
        told->order = 1;
        REQUIRE(await([&] { return told->steps == 2; }));
        CHECK(pair_is_gone(rig, *told));
        bystander.expect();
      }
      child.kill();
      CHECK(pair_is_gone(rig, *told));
    }
  }
  file.end();
  bystander.finish();
  CHECK(all_is_quiet(rig));
}

TEST_CASE("hostile: requests of a client with blocked memory do not accumulate") {
  ServerRig rig;
  SilentFile file;
  if (!file.open()) skip("a file that never answers cannot be mounted here");
  Bystander bystander(rig, "requests of a client that hangs");
  size_t before = open_descriptors();
  Shared<Told> told;
  Child child([&] {
    PagedPair pair(rig);
    if (!file.cover(pair.near_pages.data(), kMegabyte)) return 3;
    pair.near.post(pair.near_qp, pair.paged(ROCEFS_WR_RDMA_WRITE));
    tell(*told, pair);
    // Sockets that its copy thread cannot take or close any more.
    TestClient::Answer answer;
    for (int i = 0; i < 20000 && !answer.closed; ++i) {
      int ends[2];
      if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return 4;
      Fd ours(ends[0]), theirs(ends[1]);
      rocefs_request request{};
      request.op = ROCEFS_OP_CREATE_CHANNEL;
      request.u.channel = 1;
      answer = pair.near.ask(request, theirs.get());
    }
    told->steps = 1;
    for (;;) ::pause();
    return 0;
  });
  REQUIRE(await([&] { return told->steps == 1; }));
  CHECK(open_descriptors() < before + 1500);
  bystander.expect();
  child.kill();
  CHECK(pair_is_gone(rig, *told));
  file.end();
  CHECK(descriptors_are_back(rig, before));
}

TEST_CASE("hostile: events of a client with blocked memory do not accumulate") {
  ServerRig rig;
  SilentFile file;
  if (!file.open()) skip("a file that never answers cannot be mounted here");
  Bystander bystander(rig, "events of a client that hangs");
  constexpr uint64_t kEvents = 20000;
  Shared<Told> told;
  Child child([&] {
    PagedPair pair(rig);
    if (!file.cover(pair.near_pages.data(), kMegabyte)) return 3;
    pair.near.post(pair.near_qp, pair.paged(ROCEFS_WR_RDMA_WRITE));
    tell(*told, pair);
    rocefs_request request{};
    request.op = ROCEFS_OP_PUT_BACK_EVENT;
    for (; told->steps < kEvents; ++told->steps) {
      if (pair.near.ask(request).said.error != 0) return 4;
    }
    // When the memory answers it gets those that were kept.
    while (told->order == 0) ::usleep(1000);
    rocefs_async_event event;
    size_t came = 0;
    pollfd ready{pair.near.events(), POLLIN, 0};
    while (::poll(&ready, 1, 500) == 1 && ::recv(ready.fd, &event, sizeof event, 0) > 0) ++came;
    return came > 0 ? 0 : 5;
  });
  for (uint64_t seen = 0; (seen = told->steps) < kEvents;) {
    REQUIRE(await([&] { return told->steps > seen; }));
  }
  file.end();
  told->order = 1;
  CHECK(child.wait() == 0);
}

TEST_CASE("hostile: registering unresponsive memory is never answered, and blocks nobody else") {
  ServerRig rig;
  SilentFile file;
  if (!file.open()) skip("a file that never answers cannot be mounted here");
  Bystander bystander(rig, "a registration that hangs");
  Shared<Told> told;
  Child child([&] {
    Pages pages(kMegabyte);
    if (!file.cover(pages.data(), kMegabyte)) return 3;
    TestClient client(rig), busy(rig);
    if (client.open() != 0 || busy.open() != 0) return 4;
    uint32_t pd = client.handle_of(ROCEFS_OP_ALLOC_PD);
    rocefs_request request{};
    request.op = ROCEFS_OP_REG_MR;
    auto at = reinterpret_cast<uint64_t>(pages.data());
    request.u.reg_mr = {pd, 15, at, kMegabyte, at};
    client.send(request);
    pollfd ready{client.socket(), POLLIN, 0};
    if (::poll(&ready, 1, 200) != 0) return 5;
    // A client that sends a second request before the answer is dropped.
    client.send(request);
    if (!client.receive().closed) return 6;
    request.u.reg_mr.pd = busy.handle_of(ROCEFS_OP_ALLOC_PD);
    busy.send(request);
    told->steps = 1;
    for (;;) ::pause();
    return 0;
  });
  CHECK(await([&] { return told->steps == 1; }));
  bystander.expect();
  child.kill();
  bystander.expect();
  file.end();
}

TEST_CASE("hostile: memory of an unresponsive file blocks only its owner") {
  ServerRig rig;
  Bystander bystander(rig, "a mapped file that never answers");
  SilentFile file;
  if (!file.open()) skip("a file that never answers cannot be mounted here");
  Shared<Told> told;
  Child child([&] {
    Pair pair(rig, 8192);
    void* at = ::mmap(nullptr, SilentFile::kSize, PROT_READ, MAP_SHARED, file.fd(), 0);
    if (at == MAP_FAILED) return 3;
    tell(*told, pair);
    rocefs_request request{};
    request.op = ROCEFS_OP_REG_MR;
    auto address = reinterpret_cast<uint64_t>(at);
    request.u.reg_mr = {pair.near_pd, 0, address, SilentFile::kSize, address};
    pair.near.send(request);
    pair.near.post(pair.near_qp, pair.write(64));
    told->steps = 1;
    for (;;) ::pause();
    return 0;
  });
  REQUIRE(await([&] { return told->steps == 1 && file.was_read(); }));
  bystander.expect();
  child.signal(SIGKILL);
  CHECK(pair_is_gone(rig, *told));
  bystander.expect();
  file.end();
  bystander.finish();
  CHECK(all_is_quiet(rig));
}

TEST_CASE("hostile: a child that holds a dead client's socket gets nothing") {
  ServerRig rig;
  Bystander bystander(rig, "a child that keeps the socket");
  Shared<Told> told;
  std::optional<Child> client;
  client.emplace([&] {
    Pair pair(rig, 8192);
    tell(*told, pair);
    pid_t parent = ::getpid();
    if (::fork() > 0) {
      while (told->order == 0) ::usleep(1000);
      ::_exit(0);
    }
    ::prctl(PR_SET_PDEATHSIG, 0);
    while (::getppid() == parent) ::usleep(1000);
    // The client has the rings and both sockets; but both are closed at their other ends.
    rocefs_request request{};
    request.op = ROCEFS_OP_QUERY_PORT;
    request.u.handle = 1;
    told->steps = 1;
    bool closed = await([&] { return pair.near.ask(request).closed; });
    for (int i = 0; i < 1000; ++i) pair.near.post(pair.near_qp, pair.write(64));
    told->steps = closed ? 2 : 3;
    return 0;
  });
  REQUIRE(await([&] { return told->far_qpn != 0; }));
  told->order = 1;
  CHECK(client->wait() == 0);
  CHECK(pair_is_gone(rig, *told));
  CHECK(await([&] { return told->steps >= 2; }));
  CHECK(told->steps == 2);
}

TEST_CASE("hostile: a client may be stopped or killed amid its traffic") {
  ServerRig rig;
  Bystander bystander(rig, "clients that are stopped and killed");
  std::mt19937 random(3);
  for (int round = 0; round < 10; ++round) {
    Shared<Told> told;
    Child child([&] {
      Pair pair(rig);
      tell(*told, pair);
      for (;; ++told->steps) {
        for (uint32_t opcode : {ROCEFS_WR_RDMA_WRITE, ROCEFS_WR_RDMA_READ}) {
          rocefs_send_wqe wqe = pair.write(1 << 20);
          wqe.opcode = opcode;
          pair.near.post(pair.near_qp, wqe);
        }
        for (int i = 0; i < 2; ++i) {
          rocefs_cqe cqe;
          if (!pair.near_cq.wait(cqe) || cqe.status != 0) return 2;
        }
      }
      return 0;
    });
    uint64_t until = random() % 8;
    REQUIRE(await([&] { return told->steps > until; }));
    if (round & 1) {
      child.signal(SIGSTOP);
      bystander.expect(50);
      child.signal(SIGCONT);
      until = told->steps + 2;
      CHECK(await([&] { return told->steps > until; }));
      child.signal(SIGSTOP);
    }
    child.kill();
    CHECK(pair_is_gone(rig, *told));
  }
  bystander.finish();
  CHECK(all_is_quiet(rig));
}

TEST_CASE("hostile: the peer of a killed client gets an error completion") {
  ServerRig rig;
  Bystander bystander(rig, "a far end that is killed");
  Shared<Told> told;
  TestClient near(rig);
  REQUIRE(near.open("mb_0") == 0);
  Pages pages(kMegabyte);
  uint32_t pd = near.handle_of(ROCEFS_OP_ALLOC_PD);
  TestClient::Cq cq = near.create_cq(64);
  TestClient::Region region = near.reg(pd, pages.data(), kMegabyte);
  TestClient::Queue qp = near.create_qp(pd, cq);
  Child child([&] {
    TestClient far(rig);
    if (far.open("mb_1") != 0) return 3;
    uint32_t far_pd = far.handle_of(ROCEFS_OP_ALLOC_PD);
    TestClient::Cq far_cq = far.create_cq(64);
    TestClient::Region far_region = far.reg(far_pd, pages.data(), kMegabyte);
    TestClient::Queue far_qp = far.create_qp(far_pd, far_cq);
    far.connect(far_qp, kNearIp, qp.made.qpn);
    told->steps = far_region.key;
    told->far_qpn = far_qp.made.qpn;
    for (;;) ::pause();
    return 0;
  });
  REQUIRE(await([&] { return told->far_qpn != 0; }));
  near.connect(qp, kFarIp, told->far_qpn);
  auto key = static_cast<uint32_t>(told->steps);
  // The same address in both processes.
  rocefs_send_wqe wqe =
      rdma_request(ROCEFS_WR_RDMA_WRITE, pages.data(), kMegabyte, region.key, pages.data(), key);
  for (int i = 0; i < 8; ++i) near.post(qp, wqe);
  CHECK(completion_of(cq).status == kSuccess);
  child.kill();
  uint32_t status = kSuccess;
  for (int i = 1; i < 8 && status == kSuccess; ++i) status = completion_of(cq).status;
  if (status == kSuccess) {
    near.post(qp, wqe);
    status = completion_of(cq).status;
  }
  // Dead before its queue pair has gone, or after.
  CHECK((status == kRemoteAccess || status == kRetryExceeded));
}
