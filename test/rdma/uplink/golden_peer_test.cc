// Conversations between two kernels' Soft-RoCE drivers, replayed: one end comes from the capture,
// the other is an engine with an uplink.
#include "test/each_loop.h"
#include "test/rdma/uplink/own_network.h"
#include "test/rdma/uplink/replayed.h"
#include "test/skip.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

// All of the capture but the datagrams of its connection manager (176 to 178, 191 and 192).
constexpr Conversation kConversations[] = {
    {"RC: SEND, WRITE, READ and atomics, one again", 0, 88},
    {"RC: SEND both ways", 89, 104},
    {"UC: SEND both ways", 105, 116, QpType::kUc},
    {"UD: SEND both ways", 117, 122, QpType::kUd},
    {"RC: three RNR NAKs", 123, 130},
    {"RC: a WRITE with a wrong key", 131, 134},
    {"RC: a READ without the right", 135, 136},
    {"RC: a PSN ahead of the expected one", 137, 139},
    {"RC over IPv6: SEND, WRITE, READ and atomics", 140, 157},
    {"RC over IPv6: SEND both ways", 158, 165},
    {"UC: SEND and WRITE, with immediate too", 166, 173, QpType::kUc},
    {"UD: with immediate too", 174, 175, QpType::kUd},
    {"RC: SEND, READ and WRITE, both ends asking", 179, 190},
};

// An address of either version.
Ip ip_of(const std::string& text) {
  return gids_of(uplink_topology(text)->devices[0].ports[0]).back();
}

void hold_conversations(const std::vector<Bytes>& golden, Host& host, const Ip& own, Peer& peer) {
  size_t heard = 0;
  for (const Conversation& which : kConversations) {
    for (bool opener : {true, false}) {
      INFO(which.name << "; the peer is the end that " << (opener ? "begins" : "is spoken to"));
      Replay replay(host, own, peer, lines_of(golden, which), which.type, opener);
      replay.run();
      heard += replay.heard();
    }
  }
  // Every packet once, but the five of the connection manager.
  CHECK(heard == golden.size() - 5);
  CHECK(host.uplink().counters().rx_packets.get() == peer.sent());
  CHECK(host.uplink().counters().rx_damaged.get() == 0);
  CHECK(host.counters().rx_icrc_encapsulated.get() == 0);
  CHECK(host.counters().rx_unknown_qp.get() == 0);
}

}  // namespace

TEST_CASE("uplink: each end of Soft-RoCE's conversations is answered as Soft-RoCE answered it") {
  ON_EACH_LOOP();
  std::vector<Bytes> golden = golden_packets();
  Host host(loopback_address(22));
  Peer peer(ip_of(loopback_address(23)), host.gid());
  hold_conversations(golden, host, host.gid(), peer);
  CHECK(host.uplink().counters().rx_ids_solved.get() == peer.sent());
}

TEST_CASE("uplink: the same conversations work over IPv6, in a network namespace") {
  ON_EACH_LOOP();
  OwnNetwork network({"fd00:22::11", "fd00:22::12"});
  if (!network.ready()) skip("only root makes a network namespace");
  std::vector<Bytes> golden = golden_packets();
  Host host("fd00:22::11");
  Ip own = ip_of("fd00:22::11");
  Peer peer(ip_of("fd00:22::12"), own);
  hold_conversations(golden, host, own, peer);
  CHECK(host.uplink().counters().rx_ids_solved.get() == 0);
}

namespace {

// A queue pair that expects, and begins with, the PSN of one packet of the capture, and has one of
// its regions.
struct Scene {
  static constexpr uint32_t kPeerQpn = 0x11;
  Host host{loopback_address(24)};
  Peer peer{ip_of(loopback_address(25)), host.gid()};
  std::vector<Bytes> golden;
  std::optional<End> end;
  const uint8_t bit;
  uint64_t captured_va = 0;

  // `selective`: our end would retransmit selectively, with a peer that agrees.
  Scene(std::vector<Bytes> packets, size_t first, bool selective = false)
      : golden(std::move(packets)), bit(selective ? wire::kSrCapable : 0) {
    if (selective) host.on_core([this] { set_sr(host.device(), true); });
    Spoken begin = spoken_of(golden.at(first));
    captured_va = begin.info().has_reth ? begin.headers.reth.va : begin.headers.atomic.va;
    QpAttributes attributes;
    attributes.remote_qpn = kPeerQpn;
    attributes.send_psn = attributes.receive_psn = begin.headers.bth.psn;
    attributes.timeout = 14;
    end.emplace(host, host.gid(), peer.address(), QpType::kRc, attributes);
  }
  Spoken captured(size_t index) const {
    Spoken spoken = spoken_of(golden.at(index));
    wire::Headers& headers = spoken.headers;
    headers.bth.dest_qpn = end->number();
    if (spoken.info().request) {
      headers.reth.va = headers.atomic.va = Host::kAddress + End::kTargets;
      headers.reth.rkey = headers.atomic.rkey = host.key;
    }
    return spoken;
  }
  void say(size_t index) { peer.send(captured(index)); }
  Spoken hear() {
    std::optional<Spoken> heard = peer.hear(10 * kSecond);
    REQUIRE(heard);
    return *heard;
  }
  void expect_acknowledge(uint8_t syndrome, uint32_t psn, uint32_t msn) {
    Spoken heard = hear();
    CHECK(heard.info().name == wire::opcode_info(wire::Opcode::kRcAck).name);
    CHECK(heard.headers.aeth.syndrome == syndrome);
    CHECK(heard.headers.bth.psn == psn);
    CHECK(heard.headers.aeth.msn == msn);
  }
  // Expects no answer to the packets sent.
  void expect_silence() {
    for (TimeNs until = monotonic_ns() + 10 * kSecond; monotonic_ns() < until;) {
      if (host.counters().port_rcv_packets.get() >= peer.sent()) break;
      std::this_thread::yield();
    }
    CHECK_FALSE(peer.hear(10 * kMillisecond));
  }
  // As request `index` of the capture, with what the packets up to `last` carry.
  SendRequest request(SendOp op, size_t index, size_t last, uint32_t length) {
    Bytes data;
    for (size_t i = index; i <= last && op != SendOp::kRead; ++i) {
      Bytes payload = spoken_of(golden.at(i)).payload;
      data.insert(data.end(), payload.begin(), payload.end());
    }
    end->put(0, data);
    SendRequest request;
    request.op = op;
    request.sges = end->part(0, length);
    request.remote_address = captured_va;
    request.rkey = spoken_of(golden.at(index)).headers.reth.rkey;
    return request;
  }
  // As in the capture, addressed to this scene's peer.
  Spoken wanted(size_t index) const {
    Spoken spoken = spoken_of(golden.at(index));
    spoken.headers.bth.dest_qpn = kPeerQpn;
    spoken.headers.bth.mig_req = true;
    spoken.headers.bth.reserved6 = bit;
    return spoken;
  }
  void expect_captured(size_t index) {
    INFO("packet " << index << " of the capture");
    CHECK(hear().transport() == wanted(index).transport());
  }
};

// In the capture: WRITE of 4100 octets, in five packets; READ of as many; FETCH_ADD.
constexpr size_t kWrite = 28, kWriteEnd = 32, kRead = 46, kReadEnd = 51, kAdd = 66;
constexpr uint32_t kLength = 4100;

Bytes payload_of(const std::vector<Bytes>& golden, size_t first, size_t last) {
  Bytes all;
  for (size_t i = first; i <= last; ++i) {
    Bytes payload = spoken_of(golden.at(i)).payload;
    all.insert(all.end(), payload.begin(), payload.end());
  }
  return all;
}

}  // namespace

TEST_CASE("uplink: a packet that Soft-RoCE loses gets one NAK, and no other until it arrives") {
  ON_EACH_LOOP();
  std::vector<Bytes> golden = golden_packets();
  bool selective = GENERATE(false, true);
  Scene scene(golden, kWrite, selective);
  uint32_t psn = spoken_of(golden[kWrite]).headers.bth.psn;
  scene.say(kWrite);
  for (size_t i = kWrite + 2; i <= kWriteEnd; ++i) scene.say(i);
  scene.expect_acknowledge(aeth::kNakSequence, psn + 1, 0);
  for (size_t i = kWrite + 2; i <= kWriteEnd; ++i) scene.say(i);
  scene.expect_silence();
  for (size_t i = kWrite + 1; i <= kWriteEnd; ++i) scene.say(i);
  scene.expect_acknowledge(aeth::kAckUnlimited, psn + 4, 1);
  CHECK(scene.end->holds(End::kTargets, payload_of(golden, kWrite, kWriteEnd)));
  CHECK(scene.host.counters().out_of_sequence.get() == 6);
  CHECK(scene.host.counters().sr_ooo_placed.get() == 0);
}

TEST_CASE("uplink: retransmissions of Soft-RoCE are answered again and not executed again") {
  ON_EACH_LOOP();
  std::vector<Bytes> golden = golden_packets();
  SECTION("WRITE: the newest PSN") {
    Scene scene(golden, 26);  // 64 octets, PSN 1107398; the one of 4100 octets follows
    scene.say(26);
    scene.expect_acknowledge(aeth::kAckUnlimited, 1107398, 1);
    for (size_t i = kWrite; i <= kWriteEnd; ++i) scene.say(i);
    scene.expect_acknowledge(aeth::kAckUnlimited, 1107403, 2);
    Bytes zeros(64);
    scene.end->put(End::kTargets, zeros);
    scene.say(26);
    scene.expect_acknowledge(aeth::kAckUnlimited, 1107403, 2);
    CHECK(scene.end->bytes(End::kTargets, zeros.size()) == zeros);
  }
  SECTION("READ: all of its response, or the end of it") {
    Scene scene(golden, kRead);
    Bytes data = payload_of(golden, kRead + 1, kReadEnd);
    scene.end->put(End::kTargets, data);
    for (int round = 0; round < 2; ++round) {
      scene.say(kRead);
      for (size_t i = kRead + 1; i <= kReadEnd; ++i) {
        Spoken wanted = scene.wanted(i);
        if (wanted.info().has_aeth) wanted.headers.aeth.msn = 1;
        CHECK(scene.hear().transport() == wanted.transport());
      }
    }
    Spoken rest = scene.captured(kRead);
    rest.headers.bth.psn += 3;
    rest.headers.reth.va += 3 * End::kMtu;
    rest.headers.reth.dma_len -= 3 * End::kMtu;
    scene.peer.send(rest);
    Spoken first = scene.hear(), last = scene.hear();
    CHECK(first.headers.bth.opcode == wire::Opcode::kRcReadResponseFirst);
    CHECK(first.headers.bth.psn == rest.headers.bth.psn);
    CHECK(last.headers.bth.opcode == wire::Opcode::kRcReadResponseLast);
    first.payload.insert(first.payload.end(), last.payload.begin(), last.payload.end());
    CHECK(first.payload == Bytes(data.begin() + 3 * End::kMtu, data.end()));
  }
  SECTION("atomics: the original values") {
    Scene scene(golden, kAdd);
    Spoken add = scene.captured(kAdd);
    for (int round = 0; round < 3; ++round) {
      scene.peer.send(add);
      Spoken heard = scene.hear();
      CHECK(heard.headers.bth.opcode == wire::Opcode::kRcAtomicAck);
      CHECK(heard.headers.bth.psn == add.headers.bth.psn);
      CHECK(heard.headers.aeth == wire::Aeth{aeth::kAckUnlimited, 1});
      CHECK(heard.headers.atomic_ack.original == 0);
    }
    Bytes sum(8);
    std::memcpy(sum.data(), &add.headers.atomic.swap_add, sum.size());
    CHECK(scene.end->bytes(End::kTargets, 8) == sum);
  }
}

TEST_CASE("uplink: after a sequence NAK of Soft-RoCE a message continues in its middle") {
  ON_EACH_LOOP();
  std::vector<Bytes> golden = golden_packets();
  bool selective = GENERATE(false, true);
  Scene scene(golden, kWrite, selective);
  scene.end->post(scene.request(SendOp::kWrite, kWrite, kWriteEnd, kLength));
  for (size_t i = kWrite; i <= kWriteEnd; ++i) scene.expect_captured(i);
  Spoken nak = scene.captured(kWriteEnd + 1);
  nak.headers.bth.psn = spoken_of(golden[kWrite + 2]).headers.bth.psn;
  nak.headers.aeth = {aeth::kNakSequence, 0};
  scene.peer.send(nak);
  for (size_t i = kWrite + 2; i <= kWriteEnd; ++i) scene.expect_captured(i);
  scene.say(kWriteEnd + 1);
  std::vector<Completion> all = scene.end->sent(1);
  REQUIRE(all.size() == 1);
  CHECK(all[0].status == WcStatus::kSuccess);
  scene.expect_silence();
  CHECK(scene.host.counters().sr_retrans.get() == 0);
}

TEST_CASE("uplink: a READ that Soft-RoCE answers in part is requested for its rest") {
  ON_EACH_LOOP();
  std::vector<Bytes> golden = golden_packets();
  bool selective = GENERATE(false, true);
  Scene scene(golden, kRead, selective);
  scene.end->post(scene.request(SendOp::kRead, kRead, kRead, kLength));
  scene.expect_captured(kRead);
  scene.say(kRead + 1);
  scene.say(kRead + 2);
  Spoken wanted = spoken_of(golden[kRead]), heard = scene.hear();
  CHECK(heard.headers.bth.opcode == wire::Opcode::kRcReadRequest);
  CHECK(heard.headers.bth.psn == wanted.headers.bth.psn + 2);
  CHECK(heard.headers.reth.va == wanted.headers.reth.va + 2 * End::kMtu);
  CHECK(heard.headers.reth.dma_len == kLength - 2 * End::kMtu);
  Spoken first = scene.captured(kRead + 1);
  first.headers.bth.psn += 2;
  first.payload = spoken_of(golden[kRead + 3]).payload;
  scene.peer.send(first);
  scene.say(kRead + 4);
  scene.say(kReadEnd);
  std::vector<Completion> all = scene.end->sent(1);
  REQUIRE(all.size() == 1);
  CHECK(all[0].status == WcStatus::kSuccess);
  CHECK(scene.end->bytes(0, kLength) == payload_of(golden, kRead + 1, kReadEnd));
}
