// Counters that no other test reads. test/mutations/counters shows that deleting any increment
// makes a test fail.
#include "test/rdma/transport/pair.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

// Connection into memory that answers late.
struct Slow {
  World world;
  std::shared_ptr<SlowMemory> memory = std::make_shared<SlowMemory>(world, kPairArea, 3);
  Connection link{world, kPairArea, quick_attributes(), nullptr, memory};
  PortCounters& far() { return world.counters("mb_1"); }
  void run_until_asked() {
    while (memory->asked == 0) REQUIRE(world.scheduler.run_one(kSecond));
  }
};

// Drops the first packet, after `meddle` has changed it.
template <class Meddle>
Watch::Script once(Meddle meddle) {
  return [meddle, done = false](const wire::Parsed& parsed, Packet& packet) mutable {
    if (!std::exchange(done, true)) meddle(parsed, packet);
    return false;
  };
}

void set_buffer(Link& link, uint64_t bytes) {
  LinkParameters parameters = link.parameters();
  parameters.buffer_bytes = parameters.ingress_buffer_bytes = bytes;
  set(link, parameters);
}

}  // namespace

TEST_CASE("counters: a message and its acknowledgement count in packets and octets everywhere") {
  Pair pair;
  CHECK(pair.outcome(pair.link.write(1, 0, 100)) == WcStatus::kSuccess);
  constexpr uint64_t kWrite = 20 + 8 + 12 + 16 + 100 + 4, kAck = 20 + 8 + 12 + 4 + 4;
  struct End {
    PortCounters& counters;
    uint64_t sent, received;
  };
  for (const End& end : {End{pair.near(), kWrite, kAck}, End{pair.far(), kAck, kWrite}}) {
    CHECK(end.counters.port_xmit_packets.get() == 1);
    CHECK(end.counters.port_rcv_packets.get() == 1);
    CHECK(end.counters.unicast_xmit_packets.get() == 1);
    CHECK(end.counters.unicast_rcv_packets.get() == 1);
    CHECK(end.counters.port_xmit_data.get() == end.sent);
    CHECK(end.counters.port_rcv_data.get() == end.received);
  }
  for (auto [name, octets] : {std::pair{"mb_0-sw_0", kWrite}, std::pair{"sw_0-mb_1", kWrite},
                              std::pair{"mb_1-sw_0", kAck}, std::pair{"sw_0-mb_0", kAck}}) {
    CHECK(pair.world.link(name).counters().packets.get() == 1);
    CHECK(pair.world.link(name).counters().bytes.get() == octets);
  }
}

TEST_CASE("counters: an invalid packet and an unknown acknowledgement are receive errors") {
  Pair pair;
  pair.world.device("mb_1").port().receive_bytes(std::vector<uint8_t>{1, 2, 3}, 0);
  CHECK(pair.far().port_rcv_errors.get() == 1);
  Watch watch(pair, "sw_0-mb_0", once([](const wire::Parsed&, Packet& packet) {
                constexpr size_t kSyndrome = 20 + 8 + 12;
                packet.header[kSyndrome] = 0x40;  // reserved (IBTA table 43)
              }));
  CHECK(pair.outcome(pair.link.write(1, 0, 8)) == WcStatus::kSuccess);
  CHECK(pair.near().port_rcv_errors.get() == 1);
}

TEST_CASE("counters: a damaged packet is an ICRC error") {
  Pair pair;
  Watch watch(pair, "mb_0-sw_0", once([&](const wire::Parsed&, Packet& packet) {
                REQUIRE(materialize(packet));
                packet.frame->bytes[3] ^= 1;
              }));
  CHECK(pair.outcome(pair.link.write(1, 0, 8)) == WcStatus::kSuccess);
  CHECK(pair.far().rx_icrc_encapsulated.get() == 1);
}

TEST_CASE("counters: a packet without a route is counted as unroutable") {
  Pair pair;
  Watch watch(pair, "mb_0-sw_0", once([](const wire::Parsed&, Packet& packet) {
                packet.header[19] ^= 0x80;  // the last octet of the destination
              }));
  CHECK(pair.outcome(pair.link.write(1, 0, 8)) == WcStatus::kSuccess);
  CHECK(pair.world.fabric.counters().unroutable.get() == 1);
}

TEST_CASE("counters: a link that goes down counts the packets under way as lost") {
  Pair pair;
  Link& link = pair.world.link("sw_0-mb_1");
  pair.link.post(pair.link.write(1, 0, 8));
  while (link.counters().packets.get() == 0) REQUIRE(pair.world.scheduler.run_one(kSecond));
  LinkParameters parameters = link.parameters();
  parameters.up = false;
  set(link, parameters);
  CHECK(link.losses().lost.get() == 1);
  CHECK(link.losses().lost_bytes.get() == 20 + 8 + 12 + 16 + 8 + 4);
}

TEST_CASE("counters: a full buffer is counted at the incoming or at the outgoing link") {
  for (const char* name : {"mb_0-sw_0", "sw_0-mb_1"}) {
    Pair pair;
    Link& link = pair.world.link(name);
    set_buffer(link, 0);
    pair.link.post(pair.link.write(1, 0, 8));
    while (link.losses().overflowed.get() == 0) {
      REQUIRE(pair.world.scheduler.run_one(100 * kMicrosecond));
    }
    set_buffer(link, 1 << 20);
    pair.run();
    CHECK(link.losses().overflowed.get() == 1);
    CHECK(pair.sent().at(0).status == WcStatus::kSuccess);
  }
}

TEST_CASE("counters: a receive that memory still works on is flushed when its queue pair fails") {
  Slow slow;
  slow.link.post(slow.link.receive(1, 0, 64));
  slow.link.post(slow.link.send(1, 0, 64));
  slow.run_until_asked();
  REQUIRE(slow.link.far->modify(QpState::kError));
  REQUIRE(slow.world.run_idle());
  CHECK(slow.far().resp_cqe_flush_error.get() == 1);
  CHECK(Connection::poll(slow.link.far_cq).at(0).status == WcStatus::kFlushed);
}

TEST_CASE("counters: failing memory under a WRITE or a READ is a remote access error") {
  for (bool reads : {false, true}) {
    Slow slow;
    slow.memory->failing = true;
    slow.link.post(reads ? slow.link.read(1, 0, 64) : slow.link.write(1, 0, 64));
    REQUIRE(slow.world.run_idle());
    CHECK(slow.far().resp_remote_access_errors.get() == 1);
    CHECK(Connection::poll(slow.link.near_cq).at(0).status == WcStatus::kRemoteAccessError);
  }
}

TEST_CASE("counters: a SEND that invalidates an unknown key is a remote access error, unanswered") {
  Pair pair;
  pair.link.post(pair.link.receive(1, 0, 64));
  SendRequest request = pair.link.send(1, 0, 8);
  request.op = SendOp::kSendInvalidate;
  request.rkey = 0xdead00;
  CHECK(pair.outcome(request) == WcStatus::kRetryExceeded);
  CHECK(pair.far().resp_remote_access_errors.get() == 1);
}
