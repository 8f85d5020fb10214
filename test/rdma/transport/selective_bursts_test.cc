// Selective retransmission on long links: large windows and bursts of losses cost what was lost and
// a few round trips.
#include <map>
#include <set>

#include "test/rdma/transport/lone.h"
#include "test/rdma/transport/pair.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

constexpr uint32_t kMtu = 256;
constexpr TimeNs kRoundTrip = 1 * kMillisecond;

// A connection over links of 100 Gb/s and a quarter of a millisecond, with the number of
// transmissions of each packet.
struct LongPath {
  World world;
  uint32_t packets;
  Connection link;
  std::map<uint32_t, int> requests, responses, naks;  // by PSN
  std::function<bool(uint32_t psn, int time)> forth_fate = [](uint32_t, int) { return false; };
  std::function<bool(uint32_t psn, int time)> back_fate = forth_fate;
  Meddler forth, back;

  LongPath(uint32_t n, uint32_t window)
      : packets(n),
        link(world, uint64_t{n} * kMtu, attributes(window)),
        forth(world, world.link("sw_0-mb_1"), 1, {}),
        back(world, world.link("sw_0-mb_0"), 1, {}) {
    for (const auto& one : world.fabric.links()) {
      LinkParameters parameters = one->parameters();
      parameters.delay_ns = kRoundTrip / 4;
      parameters.rate_bps = 100'000'000'000;
      set(*one, parameters);
    }
    set_sr(link.near_device, true);
    set_sr(link.far_device, true);
    forth.script = [this](const wire::Parsed& parsed, Packet&) {
      uint32_t psn = parsed.headers.bth.psn;
      return forth_fate(psn, ++requests[psn]);
    };
    back.script = [this](const wire::Parsed& parsed, Packet&) {
      uint32_t psn = parsed.headers.bth.psn;
      if (parsed.headers.bth.opcode != wire::Opcode::kRcAck)
        return back_fate(psn, ++responses[psn]);
      if (parsed.headers.aeth.syndrome == aeth::kNakSequence) ++naks[parsed.headers.aeth.msn];
      return false;
    };
  }
  static QpAttributes attributes(uint32_t window) {
    QpAttributes attributes;
    attributes.path_mtu = kMtu;
    attributes.window = window;
    attributes.timeout = 12;  // 17 ms
    return attributes;
  }
  static int again(const std::map<uint32_t, int>& times) {
    int more = 0;
    for (const auto& [psn, count] : times) more += count - 1;
    return more;
  }
  // Posts the request, runs, and returns the round trips beyond the time that the link needs.
  double run(SendRequest request) {
    bool read = request.op == SendOp::kRead;
    auto near = bytes_of(*link.near_memory), far = bytes_of(*link.far_memory);
    fill(read ? far : near, 4);
    TimeNs start = world.scheduler.now();
    link.post(request);
    REQUIRE(world.run_idle(2 * kSecond));
    REQUIRE(Connection::poll(link.near_cq).at(0).status == WcStatus::kSuccess);
    CHECK(std::equal(near.begin(), near.end(), far.begin()));
    CHECK(world.counters("mb_0").local_ack_timeout_err.get() == 0);
    double packet_ns = world.link("mb_0-sw_0").serialization_ns(kMtu + 44);
    double took = static_cast<double>(world.scheduler.now() - start);
    return (took - packets * packet_ns) / static_cast<double>(kRoundTrip);
  }
  double write() { return run(link.write(1, 0, packets * kMtu)); }
  double read() { return run(link.read(1, 0, packets * kMtu)); }
};

}  // namespace

TEST_CASE("selective: one loss in a large window costs one retransmission and a round trip") {
  for (uint32_t window : {4096u, 16384u, 60000u}) {
    INFO(window);
    LongPath path(window, window);
    path.forth_fate = [](uint32_t psn, int time) { return psn == 1000 && time == 1; };
    CHECK(path.write() < 2.5);
    CHECK(path.again(path.requests) == 1);
    CHECK(path.naks == std::map<uint32_t, int>{{1000, 1}});
  }
}

TEST_CASE("selective: a burst of losses costs as many retransmissions and a round trip") {
  for (uint32_t burst : {200u, 1100u, 2500u, 9000u}) {
    INFO(burst);
    LongPath path(16384, 16384);
    path.forth_fate = [&](uint32_t psn, int time) {
      return psn >= 1000 && psn < 1000 + burst && time == 1;
    };
    CHECK(path.write() < 2.5);
    CHECK(path.again(path.requests) == static_cast<int>(burst));
    CHECK(path.again(path.naks) == 0);
  }
}

TEST_CASE("selective: losses all over a large window cost as many retransmissions") {
  LongPath path(16384, 16384);
  int lost = 0;
  path.forth_fate = [&](uint32_t psn, int time) {
    bool gone = psn % 3 == 0 && psn > 0 && psn < 16000 && time == 1;
    lost += gone;
    return gone;
  };
  CHECK(path.write() < 3);
  CHECK(lost > 5000);
  CHECK(path.again(path.requests) == lost);
}

TEST_CASE("selective: responses lost far before others are requested again alone") {
  for (uint32_t burst : {1u, 2500u}) {
    INFO(burst);
    LongPath path(16384, 128);
    path.back_fate = [&](uint32_t psn, int time) {
      return psn >= 1000 && psn < 1000 + burst && time == 1;
    };
    CHECK(path.read() < 2.5);
    CHECK(path.again(path.responses) == static_cast<int>(burst));
    CHECK(path.world.counters("mb_0").sr_retrans.get() == 1);
  }
}

TEST_CASE("selective: responses lost all over a long READ are each requested again once") {
  LongPath path(16384, 128);
  int lost = 0;
  path.back_fate = [&](uint32_t psn, int time) {
    bool gone = psn % 20 == 0 && psn > 0 && psn < 16000 && time == 1;
    lost += gone;
    return gone;
  };
  CHECK(path.read() < 3);
  CHECK(lost > 700);
  CHECK(path.again(path.responses) == lost);
}

TEST_CASE("selective: a lost READ of many PSNs is asked for by few NAKs") {
  LongPath path(16384, 16384);
  set_sr(path.link.near_device, true);
  path.forth_fate = [](uint32_t psn, int time) { return psn == 0 && time == 1; };
  path.link.post(path.link.read(1, 0, 12000 * kMtu));
  path.link.post(path.link.write(2, 12000 * kMtu, kMtu));
  for (const auto& one : path.world.fabric.links()) {
    LinkParameters parameters = one->parameters();
    parameters.delay_ns = 1 * kMicrosecond;
    set(*one, parameters);
  }
  REQUIRE(path.world.run_idle());
  auto sent = Connection::poll(path.link.near_cq);
  REQUIRE(sent.size() == 2);
  CHECK(sent[0].status == WcStatus::kSuccess);
  CHECK(path.requests[0] == 2);
  CHECK(path.again(path.responses) == 0);
  CHECK(path.naks.size() < 400);
}

TEST_CASE("selective: a requester has no more in flight than its far end keeps") {
  constexpr uint32_t kPackets = 70000;
  LongPath path(kPackets, kPackets);
  uint32_t highest = 0;
  TimeNs open = 20 * kRoundTrip;
  path.forth_fate = [&](uint32_t psn, int) {
    bool shut = path.world.scheduler.now() < open;
    if (psn == 5 && shut) return true;
    if (shut) highest = std::max(highest, psn);
    return false;
  };
  path.link.post(path.link.write(1, 0, kPackets * kMtu));
  REQUIRE(path.world.run_idle());
  CHECK(Connection::poll(path.link.near_cq).at(0).status == WcStatus::kSuccess);
  CHECK(highest == 5 + kMaxOutOfOrder - 1);
  path.requests.erase(5);
  CHECK(path.again(path.requests) <= 2);  // time-outs, which packet 5 uses, look for others
}

TEST_CASE("selective: after NAKs in vain the responder drops what it keeps and asks for all") {
  Lone lone(256);
  lone.near.host.selective().apply(std::vector<KnobValue>{uint64_t{1}, uint64_t{64}});
  lone.far.host.selective().apply(std::vector<KnobValue>{uint64_t{1}, uint64_t{64}});
  std::vector<PacketPtr> first;
  for (uint8_t i = 0; i < 4; ++i) lone.write(i + 1, i);
  for (int i = 0; i < 4; ++i) first.push_back(lone.near.data());
  PacketPtr late = copy_of(*first[3]);
  for (int i = 1; i < 3; ++i) lone.request(std::move(first[i]));
  CHECK(lone.outstanding.packets > 2);
  int selective = 0, standard = 0;
  while (standard == 0) {
    REQUIRE(lone.scheduler.run_one(10 * kSecond));
    while (PacketPtr nak = lone.far.qp.responder().emit_acknowledge()) {
      wire::Headers headers = Lone::headers_of(*nak);
      REQUIRE(headers.aeth.syndrome == aeth::kNakSequence);
      ++(headers.bth.reserved7 & kSelectiveNak ? selective : standard);
      CHECK(headers.bth.psn == 0);
    }
  }
  CHECK(selective == MissingPsns::kMaxTries);
  // Packets behind are dropped until the one that was asked for comes, as without an agreement.
  lone.request(std::move(late));
  while (lone.scheduler.run_one(20 * kSecond)) continue;
  CHECK_FALSE(lone.far.qp.responder().emit_acknowledge());
  lone.request(std::move(first[0]));
  CHECK(lone.far.qp.responder().expected() % (1 << 24) == 1);
}
