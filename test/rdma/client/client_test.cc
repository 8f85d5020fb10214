// Services for an honest client.
#include "test/rdma/client/server_rig.h"
#include "test/rdma/world.h"

using namespace rocefs;
using namespace rocefs::test;

TEST_CASE("client: a WRITE of a megabyte arrives whole at another client") {
  ServerRig rig;
  Pair pair(rig);
  for (size_t i = 0; i < pair.near_memory.size(); ++i) {
    pair.near_memory[i] = static_cast<uint8_t>(i * 7 + i / 4096);
  }
  pair.near.post(pair.near_qp, pair.write(1 << 20));
  rocefs_cqe cqe;
  REQUIRE(pair.near_cq.wait(cqe));
  CHECK(cqe.status == 0);
  CHECK(cqe.opcode == 1);
  CHECK(cqe.qpn == pair.near_qp.made.qpn);
  CHECK(pair.near_memory == pair.far_memory);
  CHECK(load_acquire(pair.near_qp.page()->send.released) == 1);
}

TEST_CASE("client: a READ and an atomic return the contents of remote memory") {
  ServerRig rig;
  Pair pair(rig);
  pair.far_memory.assign(pair.far_memory.size(), 0x5a);
  pair.near.post(pair.near_qp,
                 rdma_request(ROCEFS_WR_RDMA_READ, pair.near_memory.data(), 100000,
                              pair.near_region.key, pair.far_memory.data(), pair.far_region.key));
  rocefs_cqe cqe;
  REQUIRE(pair.near_cq.wait(cqe));
  CHECK(cqe.status == 0);
  CHECK(cqe.byte_len == 100000);
  CHECK(pair.near_memory[99999] == 0x5a);
  CHECK(pair.near_memory[100000] == 0);
  auto* counter = reinterpret_cast<uint64_t*>(pair.far_memory.data());
  *counter = 41;
  rocefs_send_wqe add =
      rdma_request(ROCEFS_WR_ATOMIC_FETCH_AND_ADD, pair.near_memory.data(), 8, pair.near_region.key,
                   pair.far_memory.data(), pair.far_region.key);
  add.compare_add = 1;
  pair.near.post(pair.near_qp, add);
  REQUIRE(pair.near_cq.wait(cqe));
  CHECK(cqe.status == 0);
  CHECK(*counter == 42);
  CHECK(*reinterpret_cast<uint64_t*>(pair.near_memory.data()) == 41);
}

TEST_CASE("client: an ATOMIC WRITE stores eight octets at an aligned remote address") {
  ServerRig rig;
  Pair pair(rig);
  auto* number = reinterpret_cast<uint64_t*>(pair.far_memory.data());
  *reinterpret_cast<uint64_t*>(pair.near_memory.data()) = 0x1122334455667788;
  rocefs_send_wqe wqe = pair.write(8);
  wqe.opcode = ROCEFS_WR_ATOMIC_WRITE;
  pair.near.post(pair.near_qp, wqe);
  rocefs_cqe cqe;
  REQUIRE(pair.near_cq.wait(cqe));
  CHECK(cqe.status == 0);
  CHECK(cqe.opcode == ROCEFS_WC_ATOMIC_WRITE);
  CHECK(*number == 0x1122334455667788);
  CHECK(number[1] == 0);
  wqe.flags |= ROCEFS_SEND_INLINE;
  wqe.num_sge = 8;
  std::fill_n(wqe.u.inline_data, 8, 0x5a);
  pair.near.post(pair.near_qp, wqe);
  REQUIRE(pair.near_cq.wait(cqe));
  CHECK(cqe.status == 0);
  CHECK(*number == 0x5a5a5a5a5a5a5a5a);
  wqe.remote_address += 4;
  pair.near.post(pair.near_qp, wqe);
  REQUIRE(pair.near_cq.wait(cqe));
  CHECK(cqe.status == 9);  // IBV_WC_REM_INV_REQ_ERR
  CHECK(*number == 0x5a5a5a5a5a5a5a5a);
}

TEST_CASE("client: an inline SEND with immediate arrives in a receive buffer") {
  ServerRig rig;
  Pair pair(rig);
  rocefs_receive_wqe receive{};
  receive.wr_id = 9;
  receive.num_sge = 1;
  receive.sges[0] = {reinterpret_cast<uint64_t>(pair.far_memory.data()), 64, pair.far_region.key};
  pair.far.post(pair.far_qp, receive);
  rocefs_send_wqe send{};
  send.opcode = ROCEFS_WR_SEND_WITH_IMM;
  send.flags = ROCEFS_SEND_SIGNALED | ROCEFS_SEND_INLINE;
  send.immediate = 0xabcd;
  send.num_sge = 5;
  std::memcpy(send.u.inline_data, "hello", 5);
  pair.near.post(pair.near_qp, send);
  rocefs_cqe cqe;
  REQUIRE(pair.far_cq.wait(cqe));
  CHECK(cqe.wr_id == 9);
  CHECK(cqe.status == 0);
  CHECK(cqe.byte_len == 5);
  CHECK(cqe.flags == ROCEFS_WC_WITH_IMM);
  CHECK(cqe.immediate == 0xabcd);
  CHECK(std::memcmp(pair.far_memory.data(), "hello", 5) == 0);
  REQUIRE(pair.near_cq.wait(cqe));
  CHECK(cqe.status == 0);
}

TEST_CASE("client: a device that leaves flushes posted requests that were not yet taken") {
  ServerRig rig;
  TestClient client(rig);
  REQUIRE(client.open("mb_0") == 0);
  uint32_t pd = client.handle_of(ROCEFS_OP_ALLOC_PD);
  constexpr uint32_t kDepth = 100;  // more than the core takes of a queue in one turn (64)
  TestClient::Cq cq = client.create_cq(2 * kDepth);
  TestClient::Queue qp = client.create_qp(pd, cq, 2, kDepth);
  client.connect(qp, {10, 77, 0, 1}, qp.made.qpn);
  rig.on_core([&] {
    for (uint32_t i = 0; i < kDepth; ++i) {
      rocefs_receive_wqe receive{};
      client.post(qp, receive);
      rocefs_send_wqe send{};
      send.opcode = ROCEFS_WR_SEND;
      send.flags = ROCEFS_SEND_SIGNALED;
      client.post(qp, send);
    }
    rig.fabric->device("mb_0")->leave();
    return 0;
  });
  CHECK(load_acquire(client.page()->gone) == 1);
  constexpr uint32_t kFlushed = 5;  // IBV_WC_WR_FLUSH_ERR
  uint32_t flushed = 0;
  for (rocefs_cqe cqe{}; cq.poll(cqe);) flushed += cqe.status == kFlushed;
  CHECK(flushed == 2 * kDepth);
}

TEST_CASE("client: data that is copied into a request is not read from memory") {
  ServerRig rig;
  Pair pair(rig);
  auto written = [&](uint32_t opcode, uint32_t length, uint32_t key) {
    rocefs_send_wqe wqe = pair.write(length);
    wqe.opcode = opcode;
    wqe.flags |= ROCEFS_SEND_COPIED;
    wqe.u.sges[0].lkey = key;
    std::fill_n(wqe.u.copied, sizeof wqe.u.copied, 'c');
    pair.near.post(pair.near_qp, wqe);
    rocefs_cqe cqe{};
    REQUIRE(pair.near_cq.wait(cqe));
    return cqe.status;
  };
  std::fill(pair.near_memory.begin(), pair.near_memory.end(), 'm');
  constexpr uint32_t kMaxCopied = ROCEFS_MAX_COPIED;
  CHECK(written(ROCEFS_WR_RDMA_WRITE, kMaxCopied, pair.near_region.key) == 0);
  CHECK(pair.far_memory[0] == 'c');
  CHECK(pair.far_memory[kMaxCopied - 1] == 'c');
  CHECK(pair.far_memory[kMaxCopied] == 0);
  // A claim that cannot be true, and one about a request that has no data of its own.
  CHECK(written(ROCEFS_WR_RDMA_WRITE, kMaxCopied + 1, pair.near_region.key) == 0);
  CHECK(pair.far_memory[0] == 'm');
  CHECK(written(ROCEFS_WR_RDMA_READ, 1, pair.near_region.key) == 0);
  // Copied data still needs the right to be read.
  constexpr uint32_t kLocalProtection = 4;  // IBV_WC_LOC_PROT_ERR
  CHECK(written(ROCEFS_WR_RDMA_WRITE, 8, pair.near_region.key ^ 0x100) == kLocalProtection);
  CHECK(pair.far_memory[0] == 'm');
}

TEST_CASE("client: the engine reads and writes a region of shared pages") {
  ServerRig rig;
  Pair pair(rig);
  TestClient::Region from, to;
  constexpr size_t kSize = 1 << 20;
  Mapping near = pair.near.share(pair.near_pd, kSize, from);
  Mapping far = pair.far.share(pair.far_pd, kSize, to);
  for (size_t i = 0; i < kSize; ++i) near.at<uint8_t>()[i] = static_cast<uint8_t>(i * 7 + i / 256);
  rocefs_cqe done;
  auto run = [&](const rocefs_send_wqe& request) {
    pair.near.post(pair.near_qp, request);
    REQUIRE(pair.near_cq.wait(done));
    CHECK(done.status == 0);
  };
  run(rdma_request(ROCEFS_WR_RDMA_WRITE, nullptr, kSize, from.key, nullptr, to.key));
  CHECK(std::memcmp(near.at<uint8_t>(), far.at<uint8_t>(), kSize) == 0);
  std::memset(near.at<uint8_t>(), 0, kSize);
  run(rdma_request(ROCEFS_WR_RDMA_READ, nullptr, kSize, from.key, nullptr, to.key));
  CHECK(std::memcmp(near.at<uint8_t>(), far.at<uint8_t>(), kSize) == 0);
  // Both may count at one place.
  auto& count = *far.at<uint64_t>(64);
  count = 0;
  rocefs_send_wqe add = rdma_request(ROCEFS_WR_ATOMIC_FETCH_AND_ADD, nullptr, 8, from.key,
                                     reinterpret_cast<void*>(64), to.key);
  add.compare_add = 1;
  constexpr uint64_t kTimes = 200;
  std::atomic<bool> enough{false};
  uint64_t own = 0;
  std::thread counter([&] {
    for (; !enough.load(); ++own) std::atomic_ref(count).fetch_add(1);
  });
  for (uint64_t i = 0; i < kTimes; ++i) run(add);
  enough.store(true);
  counter.join();
  CHECK(count == own + kTimes);
  CHECK(pair.near.destroy(ROCEFS_OP_DEREG_MR, from.handle).said.error == 0);
  pair.near.post(pair.near_qp,
                 rdma_request(ROCEFS_WR_RDMA_WRITE, nullptr, 64, from.key, nullptr, to.key));
  REQUIRE(pair.near_cq.wait(done));
  CHECK(done.status != 0);  // the key is invalid
}

TEST_CASE("client: an atomic on shared pages changes exactly its octets, aligned or not") {
  PollLoop loop;
  auto engine = Engine::create({}, loop);
  REQUIRE(engine);
  auto process =
      Process::create_threadless({::getpid(), ::getuid(), ::getgid()}, Fd(::dup(0)), **engine);
  auto pages = SharedMemory::create("rocefs-test", 4096, SharedMemory::Others::kWrite);
  REQUIRE(pages);
  SharedClientMemory memory(process, std::make_shared<SharedMemory>(std::move(*pages)), 0);
  struct : MemoryListener {
    void memory_done(uint64_t, bool) override { FAIL("it has answered at once"); }
  } nobody;
  for (size_t offset : {8, 11, 61}) {  // the last lies in two cache lines
    INFO("at " << offset);
    uint64_t number = 41, original = 0;
    std::fill_n(memory.direct(), 128, 0xee);
    std::memcpy(memory.direct() + offset, &number, sizeof number);
    auto gives = [&](const AtomicOperation& operation, uint64_t before, uint64_t after) {
      using Outcome = Memory::Outcome;
      CHECK(memory.atomic(offset, operation, original, nobody, 0) == Outcome::kDone);
      std::memcpy(&number, memory.direct() + offset, sizeof number);
      CHECK(original == before);
      CHECK(number == after);
    };
    using Kind = AtomicOperation::Kind;
    gives({Kind::kFetchAdd, 1, 0}, 41, 42);
    gives({Kind::kWrite, 42, 0}, 42, 42);
    gives({Kind::kCompareSwap, 7, 41}, 42, 42);  // the compared value has changed
    gives({Kind::kCompareSwap, 7, 42}, 42, 7);
    CHECK(memory.direct()[offset - 1] == 0xee);
    CHECK(memory.direct()[offset + sizeof number] == 0xee);
  }
}

namespace {

// Sends `count` datagrams to mb_1 over a cable on which each takes a millisecond, destroys their
// queue pair, and returns how many the port has sent by then.
uint64_t sent_before_destruction(ServerRig& rig, uint32_t count) {
  rig.on_core([&] {
    LinkParameters slow;
    slow.rate_bps = 10'000'000;
    set(*rig.fabric->link("mb_0-sw_0"), slow);
    return 0;
  });
  Pair pair(rig, 8192);
  TestClient::Queue qp = pair.near.create_qp(pair.near_pd, pair.near_cq, 4);
  rocefs_qp_attr attr{};
  attr.handle = qp.made.handle;
  attr.port = 1;
  attr.mask = 1 | 1 << 4 | 1 << 5 | 1 << 6;
  attr.state = 1;
  REQUIRE(pair.near.modify(attr) == 0);
  attr.mask = 1;
  attr.state = 2;
  REQUIRE(pair.near.modify(attr) == 0);
  attr.mask = 1 | 1 << 16;
  attr.state = 3;
  REQUIRE(pair.near.modify(attr) == 0);
  rocefs_send_wqe wqe = pair.write(1024);
  wqe.opcode = ROCEFS_WR_SEND;
  wqe.path.is_global = wqe.path.port = wqe.path.sgid_index = 1;
  Ip gid = mapped_ipv4({10, 77, 0, 2});
  std::copy(gid.begin(), gid.end(), wqe.path.dgid);
  auto sent = [&] {
    return rig.on_core(
        [&] { return rig.fabric->device("mb_0")->port().counters().unicast_xmit_packets.get(); });
  };
  uint64_t before = sent();
  for (uint32_t i = 0; i < count; ++i) pair.near.post(qp, wqe);
  CHECK(pair.near.destroy(ROCEFS_OP_DESTROY_QP, qp.made.handle).said.error == 0);
  return sent() - before;
}

}  // namespace

// libfabric's rxd destroys its queue pair behind an acknowledgement, without which the far end
// repeated a message for ever.
TEST_CASE("client: datagrams posted before their queue pair is destroyed are sent") {
  ServerRig rig;
  CHECK(sent_before_destruction(rig, 15) == 15);
}

TEST_CASE("client: no device can be opened under the virtual clock") {
  ServerRig rig(ClockMode::kVirtual);
  TestClient client(rig);
  CHECK(client.open() == EOPNOTSUPP);
}
