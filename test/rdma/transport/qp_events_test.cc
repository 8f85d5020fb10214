// Events for an owner of windows, telemetry of switches, and rates.
#include "rdma/transport/qp_events.h"

#include <catch2/catch.hpp>

#include "test/rdma/congested.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

constexpr uint64_t kMtu = 256, kRate = 10'000'000'000;
constexpr uint32_t kBoth = ROCEFS_WANTS_EVENTS | ROCEFS_WANTS_HOPS;

// A pair whose near end's windows have an owner that asks for events.
struct ToldPair {
  Pair pair;
  WindowTaker owner;
  Device& near = pair.world.device("mb_0");
  uint32_t qpn;

  explicit ToldPair(uint32_t wants) : qpn(pair.link.near->number()) {
    REQUIRE(owner.take(near));
    owner.line(qpn).wants = wants;
  }
  void set_rate(uint64_t bits_per_second) {
    uint64_t generation = near.registers().signals_of(qpn)->generation;
    owner.line(qpn).rate = generation << 32 | bits_per_second / ROCEFS_RATE_UNIT;
  }
  void stamp_at_switch() { set_switch({{"int/enable", "1"}}); }
  void set_switch(Settings settings) {
    Switch& sw = *pair.world.fabric.switches()[0];
    std::vector<KnobValue> values = values_with(kSwitchKnobs, settings);
    REQUIRE(sw.check(values));
    sw.apply(values);
  }
  void write(uint64_t length) {
    pair.link.post(pair.link.write(0, 0, length));
    pair.run();
  }
  std::vector<rocefs_qp_event> events() {
    auto& page = *near.registers().signals()->at<rocefs_signals_page>(0);
    std::vector<rocefs_qp_event> all;
    for (uint64_t n = 0; n < page.events_written; ++n) all.push_back(page.events[n]);
    return all;
  }
};

}  // namespace

TEST_CASE("events: each data packet is acknowledged, with the time from its sending") {
  ToldPair told(ROCEFS_WANTS_EVENTS);
  told.write(10 * kMtu);
  std::vector<rocefs_qp_event> events = told.events();
  REQUIRE(events.size() == 10);
  uint64_t acked = 0;
  for (const rocefs_qp_event& event : events) {
    CHECK(event.kind == ROCEFS_QP_ACK);
    CHECK(event.qpn == told.qpn);
    CHECK(event.generation == told.near.registers().signals_of(told.qpn)->generation);
    acked += event.bytes;
    CHECK(event.acked == acked);
    CHECK(event.sent == 10 * kMtu);
    CHECK(event.marked == 0);
    CHECK(event.hops == 0);
  }
  CHECK(acked == 10 * kMtu);
  // The first packet met no queue: two cables of 1 us each way, and serialisation of the packet
  // (RETH, 16 octets of options) and of the acknowledgement (AETH, options), at each of two hops.
  double data = kMtu + 20 + 8 + 12 + 16 + 4 + wire::kOptionsLen + kEthernetOverhead;
  double ack = 20 + 8 + 12 + 4 + 4 + wire::kOptionsLen + kEthernetOverhead;
  CHECK(static_cast<double>(events[0].rtt_ns) ==
        Approx(4000 + 2 * (data + ack) * 8e9 / kRate).margin(4));
}

TEST_CASE("events: none without an owner that asks, and packets without options") {
  ToldPair told(0);
  size_t with_options = 0;
  Watch watch(told.pair, "mb_0-sw_0", [&](const wire::Parsed&, Packet& packet) {
    with_options += packet.option_len > 0;
    return false;
  });
  told.write(10 * kMtu);
  CHECK(told.events().empty());
  CHECK(with_options == 0);
}

TEST_CASE("events: options are octets of the wire that the UDP length does not count") {
  ToldPair told(kBoth);
  size_t seen = 0;
  Watch watch(told.pair, "mb_0-sw_0", [&](const wire::Parsed& parsed, Packet& packet) {
    ++seen;
    size_t roce = parsed.header_len + parsed.payload_len + wire::kIcrcLen;
    CHECK(packet.wire_length() == roce + wire::kMaxOptionsLen);
    CHECK(parsed.headers.v4.total_length == packet.wire_length());
    CHECK(parsed.headers.udp.length == roce - wire::kIpv4Len);
    // The whole packet, as a capture has it.
    REQUIRE(materialize(packet));
    std::vector<uint8_t> bytes(packet.header_bytes().begin(), packet.header_bytes().end());
    bytes.insert(
        bytes.end(), packet.frame->bytes.begin(),
        packet.frame->bytes.begin() + static_cast<long>(packet.wire_length() - packet.header_len));
    wire::Parsed whole;
    REQUIRE(wire::parse(bytes, whole) == wire::ParseError::kNone);
    CHECK(wire::icrc_ok(bytes, whole));
    CHECK(whole.payload_len == parsed.payload_len);
    return false;
  });
  told.write(4 * kMtu);
  CHECK(seen == 4);
  CHECK(told.events().size() == 4);
}

TEST_CASE("events: a packet that loses its options is as one that had none") {
  for (bool sealed : {false, true}) {
    for (bool damaged : {false, true}) {
      if (damaged && !sealed) continue;
      INFO((sealed ? "sealed" : "by reference") << (damaged ? ", damaged" : ""));
      ToldPair told(kBoth);
      Watch watch(told.pair, "mb_0-sw_0", [&](const wire::Parsed&, Packet& packet) {
        if (sealed) REQUIRE(materialize(packet));
        if (damaged) packet.frame->bytes[0] ^= 1;
        drop_options(packet);
        CHECK(packet.option_len == 0);
        wire::Parsed parsed;
        REQUIRE(wire::parse_headers(packet.header_bytes(), packet.payload.length, parsed) ==
                wire::ParseError::kNone);
        CHECK(parsed.headers.v4.total_length == packet.wire_length());
        return false;
      });
      told.pair.link.post(told.pair.link.write(0, 0, 2 * kMtu));
      told.pair.world.scheduler.run_until(kMillisecond / 20);
      // The acknowledgements tell octets alone.
      CHECK(told.events().size() == (damaged ? 0 : 2));
      for (const rocefs_qp_event& event : told.events()) CHECK(event.rtt_ns == 0);
      CHECK(told.pair.far().rx_icrc_encapsulated.get() == (damaged ? 2 : 0));
    }
  }
}

TEST_CASE("events: switches tell of the queue that a packet left") {
  ToldPair told(kBoth);
  told.stamp_at_switch();
  LinkParameters slow = told.pair.world.link("sw_0-mb_1").parameters();
  slow.rate_bps = kRate / 10;
  set(told.pair.world.link("sw_0-mb_1"), slow);
  told.write(20 * kMtu);
  std::vector<rocefs_qp_event> events = told.events();
  REQUIRE(events.size() == 20);
  uint32_t deepest = 0;
  for (size_t i = 0; i < events.size(); ++i) {
    const rocefs_qp_hop& hop = events[i].hop[0];
    REQUIRE(events[i].hops == 1);
    CHECK(hop.rate_mbps == 1000);
    deepest = std::max(deepest, hop.queue * 16);
    if (i == 0) continue;
    // A packet that is not the first has RETH no more; ten times as fast in as out.
    const rocefs_qp_hop& before = events[i - 1].hop[0];
    double octets = kMtu + 20 + 8 + 12 + 4 + wire::kMaxOptionsLen + kEthernetOverhead;
    CHECK(static_cast<double>((hop.sent - before.sent) * 64) == Approx(octets).margin(64));
    CHECK(static_cast<double>(hop.time_ns - before.time_ns) == Approx(octets * 8).margin(200));
  }
  // Nine of ten packets stay: 18 of 20 at most.
  CHECK(deepest > 15 * kMtu);
  CHECK(deepest < 20 * (kMtu + 150));
  CHECK(events.back().hop[0].queue == 0);
}

TEST_CASE("events: switches behind those that a packet has room for are counted") {
  for (uint8_t further : {0, 1, 4, 5, 6}) {
    ToldPair told(kBoth);
    told.stamp_at_switch();
    Watch watch(told.pair, "mb_0-sw_0", [&](const wire::Parsed&, Packet& packet) {
      for (uint8_t i = 0; i < further; ++i) wire::Telemetry(packet.options()).stamp({.queue = 32});
      return false;
    });
    told.write(kMtu);
    REQUIRE(told.events().size() == 1);
    CHECK(told.events()[0].hops == further + 1);
    const rocefs_qp_event event = told.events()[0];
    for (int i = 0; i < std::min<int>(further, ROCEFS_MAX_HOPS); ++i)
      CHECK(event.hop[i].queue == 2);
  }
}

TEST_CASE("events: marks come back with the acknowledgement") {
  ToldPair told(ROCEFS_WANTS_EVENTS);
  size_t packets = 0;
  Watch watch(told.pair, "sw_0-mb_1", [&](const wire::Parsed& parsed, Packet& packet) {
    if (is_data(parsed) && ++packets % 2 == 0) mark(packet);
    return false;
  });
  told.write(10 * kMtu);
  uint32_t marked = 0;
  for (const rocefs_qp_event& event : told.events()) marked += event.marked;
  CHECK(packets == 10);
  CHECK(marked == 5);
}

TEST_CASE("events: a lost packet is a NACK, a lost end is a time-out") {
  ToldPair told(ROCEFS_WANTS_EVENTS);
  size_t packets = 0, lost_at = 3;
  Watch watch(told.pair, "mb_0-sw_0",
              [&](const wire::Parsed&, Packet&) { return ++packets == lost_at; });
  told.write(8 * kMtu);
  auto count = [&](uint16_t kind) {
    size_t found = 0;
    for (const rocefs_qp_event& event : told.events()) found += event.kind == kind;
    return found;
  };
  CHECK(packets > 8);
  CHECK(count(ROCEFS_QP_NACK) == 1);
  CHECK(count(ROCEFS_QP_TIMEOUT) == 0);
  CHECK(told.events().back().acked == 8 * kMtu);
  lost_at = packets + 2;
  told.write(2 * kMtu);
  CHECK(count(ROCEFS_QP_TIMEOUT) == 1);
  CHECK(told.events().back().acked == 10 * kMtu);
}

TEST_CASE("events: the ring goes on when it is full") {
  ToldPair told(ROCEFS_WANTS_EVENTS);
  const uint64_t writes = ROCEFS_EVENT_ENTRIES / 64 + 2;
  for (uint64_t i = 0; i < writes; ++i) told.write(64 * kMtu);
  auto& page = *told.near.registers().signals()->at<rocefs_signals_page>(0);
  CHECK(page.events_written == writes * 64);
  uint64_t newest = page.events_written - 1;
  CHECK(page.events[newest % ROCEFS_EVENT_ENTRIES].acked == writes * 64 * kMtu);
}

TEST_CASE("rate: an owner's rate paces requests, framing included, beside the window") {
  for (uint64_t rate : {kRate / 10, kRate / 100}) {
    INFO("rate " << rate);
    ToldPair told(0);
    told.set_rate(rate);
    std::vector<TimeNs> left;
    Watch watch(told.pair, "mb_0-sw_0", [&](const wire::Parsed&, Packet&) {
      left.push_back(told.pair.world.scheduler.now());
      return false;
    });
    told.write(100 * kMtu);
    REQUIRE(left.size() == 100);
    double octets = kMtu + 20 + 8 + 12 + 4 + kEthernetOverhead;
    auto span = static_cast<double>(left.back() - left.front());
    // The first packet's RETH is 16 octets more; a turn of the link may be caught up, 33 KB at the
    // link's rate.
    CHECK(span == Approx(99 * octets * 8e9 / static_cast<double>(rate)).epsilon(0.01));
  }
}

TEST_CASE("rate: of an earlier queue pair, or none, does not limit") {
  ToldPair told(0);
  uint64_t generation = told.near.registers().signals_of(told.qpn)->generation;
  told.owner.line(told.qpn).rate = (generation + 2) << 32 | 1;
  told.write(100 * kMtu);
  CHECK(told.pair.world.scheduler.now() < kMillisecond / 20);
}

TEST_CASE("rate: one that ends is no longer shown, and limits no more") {
  ToldPair told(0);
  const rocefs_qp_signals& line = *told.near.registers().signals_of(told.qpn);
  told.set_rate(kRate / 2);
  told.write(20 * kMtu);
  CHECK(line.rate_bps == kRate / 2);
  told.set_rate(0);
  told.write(2 * kMtu);
  CHECK(line.rate_bps == kRate);
}

TEST_CASE("events: octets that a response tells of without an event come with the next one") {
  ToldPair told(ROCEFS_WANTS_EVENTS);
  Pair& pair = told.pair;
  // A READ behind WRITEs: its response acknowledges those whose acknowledgement is lost.
  size_t acknowledgements = 0;
  Watch watch(pair, "mb_1-sw_0", [&](const wire::Parsed& parsed, Packet&) {
    return parsed.headers.bth.opcode == wire::Opcode::kRcAck && ++acknowledgements <= 2;
  });
  pair.link.post(pair.link.write(0, 0, 2 * kMtu));
  pair.link.post(pair.link.read(1, 0, kMtu));
  pair.run();
  told.write(kMtu);
  uint64_t octets = 0;
  for (const rocefs_qp_event& event : told.events()) octets += event.bytes;
  CHECK(acknowledgements > 2);
  CHECK(octets == 3 * kMtu);
  CHECK(told.events().back().acked == 3 * kMtu);
}
