// Bad attributes: the errno of each, and that nothing has changed.
#include "test/rdma/client/hostile.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

struct Row {
  const char* what;
  void (*spoil)(rocefs_request& request);
  int error;
};

// `good` is taken, each row's request is refused, and `good` is taken again afterwards.
template <size_t kRows, class Undo>
void check_rows(TestClient& client, const rocefs_request& good, const Row (&rows)[kRows],
                Undo undo) {
  auto take = [&] {
    TestClient::Answer answer = client.ask(good);
    REQUIRE(answer.said.error == 0);
    undo(answer.said);
  };
  take();
  for (const Row& row : rows) {
    INFO(row.what);
    rocefs_request request = good;
    row.spoil(request);
    TestClient::Answer answer = client.ask(request);
    CHECK(answer.said.error == row.error);
    CHECK(answer.fds.empty());
    CHECK(answer.said.u.reason[0] != 0);
    CHECK(std::memchr(answer.said.u.reason, 0, sizeof answer.said.u.reason) != nullptr);
  }
  take();
}

using Request = rocefs_request;

rocefs_request of(uint32_t op) {
  rocefs_request request{};
  request.op = op;
  return request;
}

// Same attributes, whatever was asked in between.
bool same(const rocefs_qp_attr& a, const rocefs_qp_attr& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

}  // namespace

TEST_CASE("attributes: an invalid queue is refused") {
  ServerRig rig;
  TestClient client(rig);
  REQUIRE(client.open() == 0);
  uint32_t pd = client.handle_of(ROCEFS_OP_ALLOC_PD);
  TestClient::Cq cq = client.create_cq(16);
  REQUIRE((pd == 1 && cq.handle == 1));
  auto destroy = [&](uint32_t op) {
    return [&client, op](const rocefs_answer& made) {
      CHECK(client.destroy(op, made.u.created.handle).said.error == 0);
    };
  };

  rocefs_request good = of(ROCEFS_OP_CREATE_CQ);
  good.u.create_cq = {1, 0, 16, 0};
  const Row cqs[] = {
      {"no entries", [](Request& r) { r.u.create_cq.entries = 0; }, EINVAL},
      {"too many", [](Request& r) { r.u.create_cq.entries = ROCEFS_MAX_CQE + 1; }, EINVAL},
      {"2^32-1 entries", [](Request& r) { r.u.create_cq.entries = ~0u; }, EINVAL},
      {"no such channel", [](Request& r) { r.u.create_cq.channel = 9; }, EINVAL},
  };
  check_rows(client, good, cqs, destroy(ROCEFS_OP_DESTROY_CQ));

  good = of(ROCEFS_OP_CREATE_SRQ);
  good.u.create_srq = {1, pd, 16, 4, 0, 0};
  const Row srqs[] = {
      {"no requests", [](Request& r) { r.u.create_srq.max_wr = 0; }, EINVAL},
      {"too many", [](Request& r) { r.u.create_srq.max_wr = ROCEFS_MAX_SRQ_WR + 1; }, EINVAL},
      {"2^32-1", [](Request& r) { r.u.create_srq.max_wr = ~0u; }, EINVAL},
      {"entries", [](Request& r) { r.u.create_srq.max_sge = ROCEFS_MAX_SGE + 1; }, EINVAL},
      {"no PD", [](Request& r) { r.u.create_srq.pd = 0; }, EINVAL},
      {"another PD", [](Request& r) { r.u.create_srq.pd = 2; }, EINVAL},
      {"no XRC domain", [](Request& r) { r.u.create_srq.xrcd = 1; }, EINVAL},
  };
  check_rows(client, good, srqs, destroy(ROCEFS_OP_DESTROY_SRQ));

  good = of(ROCEFS_OP_CREATE_QP);
  good.u.create_qp = {1, pd, 2, cq.handle, cq.handle, 0, 16, 16, 4, 4, 64, 0, 0};
  const Row qps[] = {
      {"no PD", [](Request& r) { r.u.create_qp.pd = 0; }, EINVAL},
      {"another PD", [](Request& r) { r.u.create_qp.pd = ~0u; }, EINVAL},
      {"no send CQ", [](Request& r) { r.u.create_qp.send_cq = 0; }, EINVAL},
      {"no receive CQ", [](Request& r) { r.u.create_qp.receive_cq = 2; }, EINVAL},
      {"no such SRQ", [](Request& r) { r.u.create_qp.srq = 1; }, EINVAL},
      {"sends", [](Request& r) { r.u.create_qp.max_send_wr = ROCEFS_MAX_QP_WR + 1; }, EINVAL},
      {"receives", [](Request& r) { r.u.create_qp.max_receive_wr = ~0u; }, EINVAL},
      {"gather", [](Request& r) { r.u.create_qp.max_send_sge = ROCEFS_MAX_SGE + 1; }, EINVAL},
      {"scatter", [](Request& r) { r.u.create_qp.max_receive_sge = ~0u; }, EINVAL},
      {"inline", [](Request& r) { r.u.create_qp.max_inline = ROCEFS_MAX_INLINE + 1; }, EINVAL},
      {"type 0", [](Request& r) { r.u.create_qp.type = 0; }, EOPNOTSUPP},
      {"raw packets", [](Request& r) { r.u.create_qp.type = 8; }, EOPNOTSUPP},
      {"no XRC domain", [](Request& r) { r.u.create_qp.type = 10; }, EINVAL},
      {"type 11", [](Request& r) { r.u.create_qp.type = 11; }, EOPNOTSUPP},
  };
  check_rows(client, good, qps, destroy(ROCEFS_OP_DESTROY_QP));

  // A refused request holds no reference to its objects.
  CHECK(client.destroy(ROCEFS_OP_DESTROY_CQ, cq.handle).said.error == 0);
  CHECK(client.destroy(ROCEFS_OP_DEALLOC_PD, pd).said.error == 0);
}

TEST_CASE("attributes: an invalid memory region or address handle is refused") {
  ServerRig rig;
  TestClient client(rig);
  REQUIRE(client.open() == 0);
  uint32_t pd = client.handle_of(ROCEFS_OP_ALLOC_PD);
  Pages pages(1 << 16);
  auto at = reinterpret_cast<uint64_t>(pages.data());
  rocefs_request good = of(ROCEFS_OP_REG_MR);
  good.u.reg_mr = {pd, 15, at, pages.size(), at};
  const Row regions[] = {
      {"no PD", [](Request& r) { r.u.reg_mr.pd = 7; }, EINVAL},
      {"write without local write", [](Request& r) { r.u.reg_mr.access = 2; }, EINVAL},
      {"atomic without local write", [](Request& r) { r.u.reg_mr.access = 8; }, EINVAL},
      {"a huge page", [](Request& r) { r.u.reg_mr.access |= 1 << 7; }, EINVAL},
      {"unknown rights", [](Request& r) { r.u.reg_mr.access |= 1u << 31; }, EINVAL},
      {"past the last address", [](Request& r) { r.u.reg_mr.length = ~0ull; }, EINVAL},
      {"names past the last one", [](Request& r) { r.u.reg_mr.iova = ~0ull; }, EINVAL},
      {"no memory", [](Request& r) { r.u.reg_mr.address = 4096; }, EFAULT},
      {"the kernel's", [](Request& r) { r.u.reg_mr.address = 0xffff888000000000; }, EFAULT},
      {"more than there is", [](Request& r) { r.u.reg_mr.length = 1ull << 46; }, EFAULT},
  };
  check_rows(client, good, regions, [&](const rocefs_answer& made) {
    CHECK(client.destroy(ROCEFS_OP_DEREG_MR, made.u.mr.handle).said.error == 0);
  });

  good.op = ROCEFS_OP_SHARE_MR;
  const Row shared[] = {
      {"no PD", [](Request& r) { r.u.reg_mr.pd = 7; }, EINVAL},
      {"write without local write", [](Request& r) { r.u.reg_mr.access = 2; }, EINVAL},
      {"nothing", [](Request& r) { r.u.reg_mr.length = 0; }, EINVAL},
      {"half a page", [](Request& r) { r.u.reg_mr.length = 6144; }, EINVAL},
      {"names past the last one", [](Request& r) { r.u.reg_mr.iova = ~0ull; }, EINVAL},
      {"more than a client may have", [](Request& r) { r.u.reg_mr.length = 5ull << 30; }, ENOMEM},
      {"more than there is", [](Request& r) { r.u.reg_mr.length = ~0xfffull; }, ENOMEM},
  };
  check_rows(client, good, shared, [&](const rocefs_answer& made) {
    CHECK(client.destroy(ROCEFS_OP_DEREG_MR, made.u.mr.handle).said.error == 0);
  });

  good = of(ROCEFS_OP_CHECK_ADDRESS);
  good.u.address.is_global = good.u.address.sgid_index = good.u.address.port = 1;
  Ip gid = mapped_ipv4(kFarIp);
  std::copy(gid.begin(), gid.end(), good.u.address.dgid);
  const Row addresses[] = {
      {"no GID", [](Request& r) { r.u.address.is_global = 0; }, EINVAL},
      {"port 0", [](Request& r) { r.u.address.port = 0; }, EINVAL},
      {"port 2", [](Request& r) { r.u.address.port = 2; }, EINVAL},
      {"port 255", [](Request& r) { r.u.address.port = 255; }, EINVAL},
      {"an empty entry", [](Request& r) { r.u.address.sgid_index = 7; }, EINVAL},
      {"past the table", [](Request& r) { r.u.address.sgid_index = 255; }, EINVAL},
      {"the other family", [](Request& r) { r.u.address.sgid_index = 0; }, EINVAL},
      {"no far GID", [](Request& r) { std::memset(r.u.address.dgid, 0, 16); }, EINVAL},
  };
  check_rows(client, good, addresses, [](const rocefs_answer&) {});
  CHECK(client.destroy(ROCEFS_OP_DEALLOC_PD, pd).said.error == 0);
}

// ENOENT is of requests to destroy, as the kernel answers them (uobj_get_destroy).
TEST_CASE("attributes: an unknown handle is EINVAL or ENOENT, and one that is in use is EBUSY") {
  ServerRig rig;
  Pair pair(rig, 8192);
  auto check = [&](std::initializer_list<uint32_t> operations, int wanted) {
    for (uint32_t op : operations) {
      for (uint32_t handle : {0u, 2u, 1000u, ~0u}) {
        INFO("operation " << op << " handle " << handle);
        CHECK(pair.near.destroy(op, handle).said.error == wanted);
      }
    }
  };
  check({ROCEFS_OP_QUERY_PORT, ROCEFS_OP_MODIFY_SRQ, ROCEFS_OP_QUERY_SRQ, ROCEFS_OP_MODIFY_QP,
         ROCEFS_OP_QUERY_QP},
        EINVAL);
  check({ROCEFS_OP_DEALLOC_PD, ROCEFS_OP_DEREG_MR, ROCEFS_OP_DESTROY_CQ, ROCEFS_OP_DESTROY_SRQ,
         ROCEFS_OP_DESTROY_QP},
        ENOENT);
  CHECK(pair.near.destroy(ROCEFS_OP_DEALLOC_PD, pair.near_pd).said.error == EBUSY);
  CHECK(pair.near.destroy(ROCEFS_OP_DESTROY_CQ, pair.near_cq.handle).said.error == EBUSY);
  check_works(pair);
}

TEST_CASE("attributes: an invalid change of a queue pair is refused and changes nothing") {
  ServerRig rig;
  Pair pair(rig, 8192);
  constexpr uint32_t kState = 1, kAccess = 1 << 3, kPkey = 1 << 4, kPort = 1 << 5, kQkey = 1 << 6,
                     kPath = 1 << 7, kMtu = 1 << 8, kTimeout = 1 << 9, kRetries = 1 << 10,
                     kRnr = 1 << 11, kReceivePsn = 1 << 12, kReads = 1 << 13, kMinRnr = 1 << 15,
                     kSendPsn = 1 << 16, kFarReads = 1 << 17, kAlternate = 1 << 14,
                     kCapabilities = 1 << 19, kFarQpn = 1 << 20;
  constexpr uint32_t kToInit = kState | kAccess | kPkey | kPort;
  constexpr uint32_t kToRtr = kState | kPath | kMtu | kFarQpn | kReceivePsn | kFarReads | kMinRnr;
  constexpr uint32_t kToRts = kState | kTimeout | kRetries | kRnr | kSendPsn | kReads;
  struct Change {
    const char* what;
    uint32_t from, mask;
    void (*set)(rocefs_qp_attr& attr);
  };
  using Attr = rocefs_qp_attr;
  const Change changes[] = {
      {"no such state", kReset, kToInit, [](Attr& a) { a.state = 7; }},
      {"state 2^32-1", kReset, kToInit, [](Attr& a) { a.state = ~0u; }},
      {"RESET to RTR", kReset, kToRtr, [](Attr& a) { a.state = kRtr; }},
      {"RESET to RTS", kReset, kToRts, [](Attr& a) { a.state = kRts; }},
      {"no port", kReset, kToInit & ~kPort, [](Attr& a) { a.state = kInit; }},
      {"no P_Key", kReset, kToInit & ~kPkey, [](Attr& a) { a.state = kInit; }},
      {"no access", kReset, kToInit & ~kAccess, [](Attr& a) { a.state = kInit; }},
      {"a Q_Key", kReset, kToInit | kQkey, [](Attr& a) { a.state = kInit; }},
      {"port 0", kReset, kToInit, [](Attr& a) { a.state = kInit, a.port = 0; }},
      {"port 2", kReset, kToInit, [](Attr& a) { a.state = kInit, a.port = 2; }},
      {"port 257", kReset, kToInit, [](Attr& a) { a.state = kInit, a.port = 257; }},
      {"P_Key 1", kReset, kToInit, [](Attr& a) { a.state = kInit, a.pkey_index = 1; }},
      {"P_Key 65536", kReset, kToInit, [](Attr& a) { a.state = kInit, a.pkey_index = 65536; }},
      {"unknown access", kReset, kToInit, [](Attr& a) { a.state = kInit, a.access = 1 << 10; }},
      {"an unknown bit", kReset, kToInit | 1u << 31, [](Attr& a) { a.state = kInit; }},
      {"an alternate path", kReset, kToInit | kAlternate, [](Attr& a) { a.state = kInit; }},
      {"capabilities", kReset, kToInit | kCapabilities, [](Attr& a) { a.state = kInit; }},
      {"another current state", kReset, kToInit | 2,
       [](Attr& a) { a.state = kInit, a.current_state = kRts; }},
      {"INIT to RTS", kInit, kToRts, [](Attr& a) { a.state = kRts; }},
      {"no path", kInit, kToRtr & ~kPath, [](Attr& a) { a.state = kRtr; }},
      {"no PSN", kInit, kToRtr & ~kReceivePsn, [](Attr& a) { a.state = kRtr; }},
      {"MTU 0", kInit, kToRtr, [](Attr& a) { a.state = kRtr, a.path_mtu = 0; }},
      {"MTU 6", kInit, kToRtr, [](Attr& a) { a.state = kRtr, a.path_mtu = 6; }},
      {"MTU 2^32-1", kInit, kToRtr, [](Attr& a) { a.state = kRtr, a.path_mtu = ~0u; }},
      {"no GID", kInit, kToRtr, [](Attr& a) { a.state = kRtr, a.path.is_global = 0; }},
      {"GID 255", kInit, kToRtr, [](Attr& a) { a.state = kRtr, a.path.sgid_index = 255; }},
      {"path port 9", kInit, kToRtr, [](Attr& a) { a.state = kRtr, a.path.port = 9; }},
      {"QPN 2^24", kInit, kToRtr, [](Attr& a) { a.state = kRtr, a.remote_qpn = 1 << 24; }},
      {"129 far READs", kInit, kToRtr, [](Attr& a) { a.state = kRtr, a.max_dest_rd_atomic = 129; }},
      {"256 far READs", kInit, kToRtr, [](Attr& a) { a.state = kRtr, a.max_dest_rd_atomic = 256; }},
      {"RNR timer 32", kInit, kToRtr, [](Attr& a) { a.state = kRtr, a.min_rnr_timer = 32; }},
      {"a timeout too early", kInit, kToRtr | kTimeout, [](Attr& a) { a.state = kRtr; }},
      {"no timeout", kRtr, kToRts & ~kTimeout, [](Attr& a) { a.state = kRts; }},
      {"timeout 32", kRtr, kToRts, [](Attr& a) { a.state = kRts, a.timeout = 32; }},
      {"8 retries", kRtr, kToRts, [](Attr& a) { a.state = kRts, a.retry_count = 8; }},
      {"264 retries", kRtr, kToRts, [](Attr& a) { a.state = kRts, a.retry_count = 264; }},
      {"8 RNR retries", kRtr, kToRts, [](Attr& a) { a.state = kRts, a.rnr_retry = 8; }},
      {"129 READs", kRtr, kToRts, [](Attr& a) { a.state = kRts, a.max_rd_atomic = 129; }},
      {"back to INIT", kRts, kToInit, [](Attr& a) { a.state = kInit; }},
      {"a path amid traffic", kRts, kState | kPath, [](Attr& a) { a.state = kRts; }},
      {"RTS to SQE", kRts, kState, [](Attr& a) { a.state = kSqe; }},
      {"ERR to RTS", kError, kState, [](Attr& a) { a.state = kRts; }},
      {"to ERR with attributes", kRts, kState | kTimeout, [](Attr& a) { a.state = kError; }},
  };
  Attr good{};
  good.handle = pair.near_qp.made.handle;
  good.port = good.path.port = good.path.is_global = good.path.sgid_index = 1;
  good.access = 15;
  Ip gid = mapped_ipv4(kFarIp);
  std::copy(gid.begin(), gid.end(), good.path.dgid);
  good.path_mtu = 5;
  good.remote_qpn = pair.far_qp.made.qpn;
  good.max_rd_atomic = good.max_dest_rd_atomic = 16;
  good.timeout = 14;
  for (const Change& change : changes) {
    INFO(change.what);
    REQUIRE(to_state(pair.near, pair.near_qp, kReset) == 0);
    const uint32_t masks[] = {0, kToInit, kToRtr, kToRts};
    uint32_t steps = change.from == kError ? 0 : change.from;
    for (uint32_t state = kInit; state <= steps; ++state) {
      Attr step = good;
      step.state = state;
      step.mask = masks[state];
      REQUIRE(pair.near.modify(step) == 0);
    }
    if (change.from == kError) REQUIRE(to_state(pair.near, pair.near_qp, kError) == 0);
    rocefs_qp_attr before = query(pair.near, pair.near_qp);
    CHECK(before.state == change.from);
    Attr bad = good;
    bad.mask = change.mask;
    change.set(bad);
    CHECK(pair.near.modify(bad) == EINVAL);
    CHECK(same(before, query(pair.near, pair.near_qp)));
  }
  connect_again(pair);
  check_works(pair);
}

TEST_CASE("attributes: only a privileged user may set a controlled Q_Key (IBTA 3.5.3, 10.2.5)") {
  struct Setting {
    bool nobody;
    uint32_t qkey;
    int error;
  };
  const Setting settings[] = {{false, 0x80000000, 0},
                              {true, 0x7fffffff, 0},
                              {true, 0x80000000, EPERM},
                              {true, 0xffffffff, EPERM}};
  for (const Setting& setting : settings) {
    if (setting.nobody && ::geteuid() != 0) continue;  // all users here are the daemon's
    ServerRig rig;
    Shared<int> error;
    Child child([&] {
      if (setting.nobody && !become_nobody()) return 2;
      TestClient client(rig);
      REQUIRE(client.open() == 0);
      auto cq = client.create_cq(16);
      auto qp = client.create_qp(client.handle_of(ROCEFS_OP_ALLOC_PD), cq, 4);
      rocefs_qp_attr attr = query(client, qp), before = attr;
      attr.mask = 1 << 0 | 1 << 4 | 1 << 5 | 1 << 6;  // the state, P_Key, port and Q_Key
      attr.state = attr.port = 1;
      attr.qkey = setting.qkey;
      *error = client.modify(attr);
      rocefs_qp_attr after = query(client, qp);
      bool right = *error ? same(before, after) : after.qkey == setting.qkey;
      return right ? 0 : 3;
    });
    INFO((setting.nobody ? "nobody's " : "the user's own ") << std::hex << setting.qkey);
    CHECK(child.wait() == 0);
    CHECK(*error == setting.error);
  }
}

TEST_CASE("attributes: memory is shared with programs of the daemon's user alone") {
  for (bool nobody : {false, true}) {
    if (nobody && ::geteuid() != 0) continue;  // all users here are the daemon's
    ServerRig rig;
    Shared<int> error;
    Child child([&] {
      if (nobody && !become_nobody()) return 2;
      TestClient client(rig);
      REQUIRE(client.open() == 0);
      rocefs_request request = of(ROCEFS_OP_SHARE_MR);
      request.u.reg_mr = {client.handle_of(ROCEFS_OP_ALLOC_PD), 15, 0, 4096, 0};
      *error = client.ask(request).said.error;
      return 0;
    });
    INFO((nobody ? "nobody's" : "the user's own"));
    CHECK(child.wait() == 0);
    CHECK(*error == (nobody ? EPERM : 0));
  }
}

TEST_CASE("attributes: an invalid re-registration, window or multicast group is refused") {
  ServerRig rig;
  TestClient client(rig);
  REQUIRE(client.open() == 0);
  uint32_t pd = client.handle_of(ROCEFS_OP_ALLOC_PD);
  Pages pages(1 << 16);
  auto at = reinterpret_cast<uint64_t>(pages.data());
  TestClient::Region region = client.reg(pd, pages.data(), 4096);
  rocefs_request good = of(ROCEFS_OP_REREG_MR);
  good.u.rereg_mr = {region.handle, 7, {pd, 15, at + 4096, 4096, at + 4096}};
  const Row changes[] = {
      {"no region", [](Request& r) { r.u.rereg_mr.handle = 9; }, EINVAL},
      {"no change", [](Request& r) { r.u.rereg_mr.flags = 0; }, EINVAL},
      {"unknown changes", [](Request& r) { r.u.rereg_mr.flags = 8; }, EINVAL},
      {"no PD", [](Request& r) { r.u.rereg_mr.mr.pd = 7; }, EINVAL},
      {"write without local write", [](Request& r) { r.u.rereg_mr.mr.access = 2; }, EINVAL},
      {"past the last address", [](Request& r) { r.u.rereg_mr.mr.length = ~0ull; }, EINVAL},
      {"names past the last one", [](Request& r) { r.u.rereg_mr.mr.iova = ~0ull; }, EINVAL},
      {"no memory", [](Request& r) { r.u.rereg_mr.mr.address = 4096; }, EFAULT},
  };
  check_rows(client, good, changes, [&](const rocefs_answer& made) {
    CHECK(made.u.mr.handle == region.handle);
    CHECK(made.u.mr.lkey != region.key);
  });

  auto cq = client.create_cq(16);
  good = of(ROCEFS_OP_RESIZE_CQ);
  good.u.resize_cq = {cq.handle, 32};
  const Row sizes[] = {
      {"no queue", [](Request& r) { r.u.resize_cq.handle = 9; }, EINVAL},
      {"no entries", [](Request& r) { r.u.resize_cq.entries = 0; }, EINVAL},
      {"too many", [](Request& r) { r.u.resize_cq.entries = ROCEFS_MAX_CQE + 1; }, EINVAL},
      {"2^32-1", [](Request& r) { r.u.resize_cq.entries = ~0u; }, EINVAL},
  };
  cq.page()->consumed = 77;  // claims to have consumed more
  CHECK(client.ask(good).said.error == EINVAL);
  cq.page()->consumed = 0;
  check_rows(client, good, sizes,
             [](const rocefs_answer& made) { CHECK(made.u.created.entries == 32); });

  good = of(ROCEFS_OP_ALLOC_MW);
  good.u.alloc_mw = {pd, 2};
  const Row windows[] = {
      {"no PD", [](Request& r) { r.u.alloc_mw.pd = 7; }, EINVAL},
      {"type 0", [](Request& r) { r.u.alloc_mw.type = 0; }, EINVAL},
      {"type 3", [](Request& r) { r.u.alloc_mw.type = 3; }, EINVAL},
  };
  check_rows(client, good, windows, [&](const rocefs_answer& made) {
    CHECK(client.destroy(ROCEFS_OP_DEALLOC_MW, made.u.mr.handle + 1).said.error == ENOENT);
    CHECK(client.destroy(ROCEFS_OP_DEALLOC_MW, made.u.mr.handle).said.error == 0);
  });

  auto ud = client.create_qp(pd, cq, 4);
  auto rc = client.create_qp(pd, cq, 2);
  REQUIRE(rc.made.handle == 2);
  good = of(ROCEFS_OP_ATTACH_MCAST);
  good.u.multicast.qp = ud.made.handle;
  good.u.multicast.gid[0] = 0xff;
  const Row groups[] = {
      {"no queue pair", [](Request& r) { r.u.multicast.qp = 99; }, EINVAL},
      {"RC", [](Request& r) { r.u.multicast.qp = 2; }, EINVAL},
      {"no group's", [](Request& r) { r.u.multicast.gid[0] = 0xfe; }, EINVAL},
  };
  check_rows(client, good, groups, [&](const rocefs_answer&) {
    CHECK(client.destroy(ROCEFS_OP_DESTROY_QP, ud.made.handle).said.error == EBUSY);
    rocefs_request detach = good;
    detach.op = ROCEFS_OP_DETACH_MCAST;
    CHECK(client.ask(detach).said.error == 0);
    CHECK(client.ask(detach).said.error == EINVAL);
  });
  for (uint32_t handle : {ud.made.handle, rc.made.handle}) {
    CHECK(client.destroy(ROCEFS_OP_DESTROY_QP, handle).said.error == 0);
  }
}
