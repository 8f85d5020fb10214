// Selective retransmission: one loss makes one retransmission, wherever it is.
#include <map>
#include <set>

#include "rdma/wire/aeth.h"
#include "test/rdma/transport/pair.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

constexpr uint32_t kMtu = 256;
constexpr uint32_t kPackets = 100;
constexpr uint32_t kLength = kPackets * kMtu;

QpAttributes wide() {
  QpAttributes attributes = quick_attributes();
  attributes.window = 512;
  attributes.timeout = 8;  // 1 ms
  attributes.max_rd_atomic = attributes.max_dest_rd_atomic = 4;
  return attributes;
}

// Pair that agrees, with the number of transmissions of each packet of requests and of responses.
struct Agreed : Pair {
  std::map<uint32_t, int> requests, responses;  // by PSN, without acknowledgements
  std::map<uint32_t, int> naks;                 // by the PSN that they name
  // Fate of a packet, by its direction, its PSN and the number of its transmissions: true drops it.
  std::function<bool(const wire::Parsed&, Packet&, uint32_t, int)> forth_fate, back_fate, nak_fate;
  Watch forth, back;

  explicit Agreed(const QpAttributes& attributes = wide(), uint64_t window = 64)
      : Pair(attributes),
        forth(*this, "sw_0-mb_1",
              [this](const wire::Parsed& parsed, Packet& packet) {
                uint32_t psn = parsed.headers.bth.psn;
                int time = ++requests[psn];
                return forth_fate && forth_fate(parsed, packet, psn, time);
              }),
        back(*this, "sw_0-mb_0", [this](const wire::Parsed& parsed, Packet& packet) {
          uint32_t psn = parsed.headers.bth.psn;
          if (parsed.headers.bth.opcode != wire::Opcode::kRcAck) {
            int time = ++responses[psn];
            return back_fate && back_fate(parsed, packet, psn, time);
          }
          if (parsed.headers.aeth.syndrome != 0x60) return false;
          CHECK((parsed.headers.bth.reserved7 & kSelectiveNak));
          uint32_t named = parsed.headers.aeth.msn;
          int time = ++naks[named];
          return nak_fate && nak_fate(parsed, packet, named, time);
        }) {
    set_sr(link.near_device, true, window);
    set_sr(link.far_device, true, window);
  }
  // Retransmissions of request packets, in all.
  int again() const { return again(requests); }
  static int again(const std::map<uint32_t, int>& times) {
    int more = 0;
    for (const auto& [psn, count] : times) more += count - 1;
    return more;
  }
};

// Loses the request packets with these PSNs `times` times each.
auto lose(std::set<uint32_t> psns, int times = 1) {
  return [psns, times](const wire::Parsed&, Packet&, uint32_t psn, int time) {
    return psns.contains(psn) && time <= times;
  };
}
auto damage(std::set<uint32_t> psns, Agreed& pair) {
  return [psns, &pair](const wire::Parsed&, Packet& packet, uint32_t psn, int time) {
    if (psns.contains(psn) && time == 1) {
      REQUIRE(materialize(packet));
      packet.frame->bytes[5] ^= 0x20;
    }
    return false;
  };
}

struct Loss {
  const char* what;
  std::set<uint32_t> psns;
  int losses;  // losses of each packet
};
const Loss kLosses[] = {{"the first packet", {0}, 1},
                        {"one in the middle", {50}, 1},
                        {"one near the end", {kPackets - 3}, 1},
                        {"the last packet", {kPackets - 1}, 1},
                        {"two holes", {20, 60}, 1},
                        {"two in a row", {20, 21}, 1},
                        {"the first and the last packet", {0, kPackets - 1}, 1},
                        {"the last two packets", {kPackets - 2, kPackets - 1}, 1},
                        {"a packet and its retransmission", {50}, 2},
                        {"the last packet and its retransmission", {kPackets - 1}, 2},
                        {"many", {1, 5, 6, 7, 30, 31, 50, 70, 90, 98}, 1}};

}  // namespace

TEST_CASE("selective: one loss costs one retransmission, at every position of WRITEs and SENDs") {
  for (bool send : {false, true}) {
    for (const Loss& loss : kLosses) {
      for (bool damaged : {false, true}) {
        if (damaged && loss.losses > 1) continue;
        INFO((send ? "send: " : "write: ") << loss.what << (damaged ? ", damaged" : ""));
        Agreed pair;
        pair.forth_fate = damaged ? decltype(pair.forth_fate)(damage(loss.psns, pair))
                                  : lose(loss.psns, loss.losses);
        pair.link.post(pair.link.receive(7, 0, kLength));
        auto request = send ? pair.link.send(1, 0, kLength) : pair.link.write(1, 0, kLength);
        REQUIRE(pair.outcome(request) == WcStatus::kSuccess);
        CHECK(pair.same(0, 0, kLength));
        // A lost tail is found by a time-out, after which the oldest unanswered packet is sent,
        // too.
        bool tail = loss.psns.contains(kPackets - 1);
        int expected = static_cast<int>(loss.psns.size()) * loss.losses + tail;
        CHECK(pair.again() == expected);
        CHECK(pair.near().sr_retrans.get() == static_cast<uint64_t>(expected));
        CHECK(pair.link.near->requester().packets_resent() == static_cast<uint64_t>(expected));
        CHECK(pair.far().duplicate_request.get() == tail);
        if (damaged) CHECK(pair.far().rx_icrc_encapsulated.get() == loss.psns.size());
        CHECK((pair.near().local_ack_timeout_err.get() > 0) == tail);
      }
    }
  }
}

TEST_CASE("selective: a duplicate of a kept packet is counted, and changes nothing") {
  Agreed pair;
  pair.forth_fate = [&](const wire::Parsed&, Packet& packet, uint32_t psn, int time) {
    if (psn == 5 && time == 1) {
      PacketPtr twin = copy_of(packet);
      pair.link.far_device.port().receive(twin.release(), pair.world.scheduler.now());
    }
    return psn == 3 && time == 1;
  };
  REQUIRE(pair.outcome(pair.link.write(1, 0, kLength)) == WcStatus::kSuccess);
  CHECK(pair.same(0, 0, kLength));
  CHECK(pair.again() == 1);
  CHECK(pair.far().duplicate_request.get() == 1);
}

TEST_CASE("selective: the only packet of a message is sent again once, for every operation") {
  struct Case {
    const char* what;
    std::function<SendRequest(Pair&)> make;
  };
  const Case cases[] = {
      {"write", [](Pair& p) { return p.link.write(1, 0, 100); }},
      {"empty write", [](Pair& p) { return p.link.write(1, 0, 0); }},
      {"send", [](Pair& p) { return p.link.send(1, 0, 100); }},
      {"read", [](Pair& p) { return p.link.read(1, 0, 100); }},
      {"long read", [](Pair& p) { return p.link.read(1, 0, kLength); }},
      {"atomic", [](Pair& p) { return p.link.fetch_add(1, 0, 5, 800); }},
      {"atomic write",
       [](Pair& p) {
         SendRequest request = p.link.write(1, 0, 8);
         request.op = SendOp::kAtomicWrite;
         return request;
       }},
  };
  for (const Case& one : cases) {
    for (bool with_more : {false, true}) {  // alone: a time-out; with more behind it: a NAK
      INFO(one.what << (with_more ? " with more behind it" : ""));
      Agreed pair;
      pair.forth_fate = lose({0});
      pair.link.post(pair.link.receive(7, 0, 1000));
      pair.link.post(one.make(pair));
      if (with_more) pair.link.post(pair.link.write(2, 30000, kLength));
      pair.run();
      for (const Completion& done : pair.sent()) CHECK(done.status == WcStatus::kSuccess);
      CHECK(pair.again() == 1);
      CHECK(pair.again(pair.responses) == 0);
      CHECK(pair.near().sr_retrans.get() == 1);
      CHECK(pair.near().local_ack_timeout_err.get() == (with_more ? 0 : 1));
    }
  }
}

TEST_CASE("selective: a lost response alone is requested again, at every position") {
  for (const Loss& loss : kLosses) {
    INFO(loss.what);
    Agreed pair;
    fill(pair.far_bytes(), 3);
    pair.back_fate = lose(loss.psns, loss.losses);
    REQUIRE(pair.outcome(pair.link.read(1, 0, kLength)) == WcStatus::kSuccess);
    CHECK(pair.same(0, 0, kLength));
    CHECK(pair.again(pair.responses) == static_cast<int>(loss.psns.size()) * loss.losses);
    CHECK(pair.far().rx_read_requests.get() == 1);
  }
}

TEST_CASE("selective: an atomic whose answer is lost is sent again, and executed once") {
  Agreed pair;
  pair.back_fate = lose({0});
  pair.link.post(pair.link.fetch_add(1, 0, 5, 800));
  pair.link.post(pair.link.fetch_add(2, 0, 5, 808));
  pair.link.post(pair.link.write(3, 10000, 3000));
  pair.run();
  CHECK(pair.sent().size() == 3);
  CHECK(pair.word(pair.far_bytes(), 0) == 10);
  CHECK(pair.word(pair.near_bytes(), 800) == 0);
  CHECK(pair.word(pair.near_bytes(), 808) == 5);
  CHECK(pair.near().sr_retrans.get() == 1);
  CHECK(pair.again() == 1);
}

TEST_CASE("selective: a lost NAK is repeated, and costs no retransmission") {
  for (uint32_t lost : {20u, 60u}) {
    INFO(lost);
    Agreed pair;
    pair.forth_fate = lose({20, 60});
    pair.nak_fate = lose({lost});
    REQUIRE(pair.outcome(pair.link.write(1, 0, kLength)) == WcStatus::kSuccess);
    CHECK(pair.same(0, 0, kLength));
    CHECK(pair.naks == std::map<uint32_t, int>{{20, lost == 20 ? 2 : 1}, {60, lost == 60 ? 2 : 1}});
    CHECK(pair.again() == 2);
    CHECK(pair.near().local_ack_timeout_err.get() == 0);
  }
}

TEST_CASE(
    "selective: a WRITE's data is placed before an earlier missing packet, and completes later") {
  Agreed pair;
  pair.forth_fate = lose({10});
  pair.link.post(pair.link.write(1, 0, kLength));
  while (pair.far().sr_ooo_placed.get() < 30) REQUIRE(pair.world.scheduler.run_one(kSecond));
  CHECK(pair.same(11 * kMtu, 11 * kMtu, 20 * kMtu));
  CHECK_FALSE(pair.same(10 * kMtu, 10 * kMtu, kMtu));
  CHECK(pair.sent().empty());
  pair.run();
  CHECK(pair.sent().size() == 1);
  CHECK(pair.same(0, 0, kLength));
}

TEST_CASE("selective: a lost RNR NAK, or packet after the wait for one, costs one retry") {
  for (bool nak : {true, false}) {
    INFO((nak ? "the NAK" : "the packet"));
    QpAttributes attributes = wide();
    attributes.retry_count = 1;
    Agreed pair(attributes);
    int refusals = 0;
    Watch rnr(pair, "sw_0-mb_0", [&](const wire::Parsed& parsed, Packet&) {
      bool refusal = aeth::kind_of(parsed.headers.aeth.syndrome) == aeth::Kind::kRnr;
      if (refusal) pair.link.post(pair.link.receive(7, 0, kLength));
      return refusal && ++refusals == 1 && nak;
    });
    pair.link.post(pair.link.write(1, 0, 100));  // the ends agree
    pair.run();
    CHECK(pair.sent().size() == 1);
    if (!nak)
      pair.forth_fate = [](const auto&, auto&, uint32_t psn, int time) {
        return psn == 1 && time == 2;
      };
    REQUIRE(pair.outcome(pair.link.send(2, 0, 12 * kMtu)) == WcStatus::kSuccess);
    CHECK(refusals == 1);
    CHECK(pair.near().local_ack_timeout_err.get() == 1);
  }
}

TEST_CASE("selective: without agreement of both ends a loss is repaired by go-back-N") {
  for (bool near : {false, true}) {
    INFO((near ? "only the requester has it enabled" : "only the responder has it enabled"));
    Pair pair(wide());
    set_sr(near ? pair.link.near_device : pair.link.far_device, true);
    int lost = 0;
    Watch forth(pair, "sw_0-mb_1", [&](const wire::Parsed& parsed, Packet&) {
      return parsed.headers.bth.psn == 20 && lost++ == 0;
    });
    REQUIRE(pair.outcome(pair.link.write(1, 0, kLength)) == WcStatus::kSuccess);
    CHECK(pair.same(0, 0, kLength));
    CHECK(pair.near().sr_retrans.get() == 0);
    CHECK(pair.far().sr_ooo_placed.get() == 0);
    CHECK(pair.near().packet_seq_err.get() == 1);
    CHECK(pair.link.near->requester().packets_resent() > 1);
  }
}

TEST_CASE("selective: while it is off, no packet carries its bits") {
  Pair pair(wide());
  auto plain = [](const wire::Parsed& parsed, Packet&) {
    CHECK(parsed.headers.bth.reserved6 == 0);
    CHECK(parsed.headers.bth.reserved7 == 0);
    return false;
  };
  int packets = 0;
  Watch forth(pair, "sw_0-mb_1", [&](const wire::Parsed& parsed, Packet& packet) {
    return plain(parsed, packet) || ++packets == 20;
  });
  Watch back(pair, "sw_0-mb_0", plain);
  pair.link.post(pair.link.write(1, 0, kLength));
  pair.link.post(pair.link.read(2, 0, kLength));
  pair.link.post(pair.link.fetch_add(3, 0, 1, 60000));
  pair.run();
  CHECK(pair.sent().size() == 3);
}
