// Two hosts with a router between them that marks, loses and reorders.
#include <arpa/inet.h>

#include "test/each_loop.h"
#include "test/rdma/congested.h"
#include "test/rdma/uplink/relay.h"
#include "test/rdma/uplink/uplinked.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

Ip ip_of(const std::string& text) {
  std::array<uint8_t, 4> v4{};
  REQUIRE(::inet_pton(AF_INET, text.c_str(), v4.data()) == 1);
  return mapped_ipv4(v4);
}

struct Routed {
  Host near{loopback_address(12)}, far{loopback_address(13)};
  Ip between = ip_of(loopback_address(14));
  Relay relay;
  explicit Routed(const Relay::Odds& odds, QpAttributes attributes = {})
      : relay(between, near.gid(), far.gid(), odds) {
    near.connect_to(between, far.qp->number(), attributes);
    far.connect_to(between, near.qp->number(), attributes);
  }
};

}  // namespace

TEST_CASE("uplink: a mark from the network is answered by a CNP over the wire, which is obeyed") {
  ON_EACH_LOOP();
  Relay::Odds odds;
  odds.mark = true;
  Routed routed(odds);
  Host& near = routed.near;
  near.on_core([&] { set_ecn(near.device().port(), {{"roce_rp/enable/0", "1"}}); });
  fill(near.bytes(), 3);
  near.post(near.request(SendOp::kWrite, routed.far, 0, 0, 200'000));
  near.expect_success(1);
  CHECK(
      std::equal(near.bytes().begin(), near.bytes().begin() + 200'000, routed.far.bytes().begin()));
  CHECK(routed.far.counters().np_ecn_marked_roce_packets.get() >= 49);
  uint64_t sent = routed.far.counters().np_cnp_sent_ecn.get();
  CHECK(sent > 0);
  CHECK(routed.relay.cnps.load() == sent);
  TimeNs end = monotonic_ns() + 10 * kSecond;
  while (near.counters().rp_cnp_handled.get() < sent && monotonic_ns() < end) near.on_core([] {});
  CHECK(near.counters().rp_cnp_handled.get() == sent);
  CHECK(near.counters().rp_cnp_ignored.get() == 0);
  // Packets in the other direction are not marked.
  CHECK(near.counters().np_ecn_marked_roce_packets.get() == 0);
  CHECK(routed.relay.damaged.load() == 0);
}

TEST_CASE("uplink: loss, duplicates and reordering on the way lose and duplicate nothing") {
  ON_EACH_LOOP();
  QpAttributes attributes;
  attributes.timeout = 13;  // 34 ms; eight of them are longer than a thread goes without a CPU
  attributes.retry_count = 7;
  Routed routed({0.05, 0.02, 0.02, false}, attributes);
  Host &near = routed.near, &far = routed.far;
  fill(near.bytes(), 4);
  constexpr uint64_t kAdds = 40;
  for (uint64_t i = 0; i < kAdds; ++i) {
    uint64_t at = i * 10'000;
    near.post(near.request(SendOp::kWrite, far, at, at, 10'000));
    SendRequest add = near.request(SendOp::kFetchAdd, far, 900'000, 800'000, 8);
    add.swap_add = 1;
    near.post(add);
  }
  near.expect_success(2 * kAdds);
  CHECK(
      std::equal(near.bytes().begin(), near.bytes().begin() + kAdds * 10'000, far.bytes().begin()));
  uint64_t sum = 0;
  std::memcpy(&sum, far.bytes().data() + 800'000, sizeof sum);
  CHECK(sum == kAdds);
  CHECK(routed.relay.dropped.load() > 0);
  CHECK(routed.relay.overtaken.load() > 0);
}

TEST_CASE("uplink: a peer that stops answering ends a request after its retries") {
  ON_EACH_LOOP();
  QpAttributes attributes;
  attributes.timeout = 11;
  attributes.retry_count = 2;
  Routed routed({}, attributes);
  Host& near = routed.near;
  near.post(near.request(SendOp::kWrite, routed.far, 0, 0, 5000));
  near.expect_success(1);
  routed.relay.cut = true;
  uint64_t before =
      near.counters().local_ack_timeout_err.get();  // a slow machine's first WRITE may add some
  TimeNs begin = monotonic_ns();
  near.post(near.request(SendOp::kWrite, routed.far, 0, 0, 5000));
  std::vector<Completion> all = near.await(1);
  REQUIRE(all.size() == 1);
  CHECK(all[0].status == WcStatus::kRetryExceeded);
  // At least three time-outs as set; C9-140 allows up to four times that.
  CHECK(monotonic_ns() - begin >= 3 * 8 * kMillisecond);
  CHECK(near.counters().local_ack_timeout_err.get() == before + 3);
}
