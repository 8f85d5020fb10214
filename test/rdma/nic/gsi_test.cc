// Queue pair 1: valid datagrams, and counters of refused ones.
#include "rdma/nic/gsi.h"

#include "rdma/nic/port.h"
#include "rdma/packet/datagram.h"
#include "test/rdma/star.h"

using namespace rocefs;
using namespace rocefs::test;

namespace {

struct Agent final : MadAgent {
  int taken = 0;
  bool receive_mad(PortBase&, const AddressVector&, std::span<const uint8_t> mad) override {
    taken += mad[0] != 0;
    return mad[0] != 0;
  }
};

// Two hosts; a test may change what h1 sends to h2's queue pair 1.
struct Mads {
  World world{1, star(2)};
  Port& from = world.device("h1").port();
  Port& to = world.device("h2").port();
  AddressVector path{gids_of(from.spec())[1], gids_of(to.spec())[1]};
  Agent agent;

  Mads() { to.gsi().set_agent(&agent); }
  ~Mads() { to.gsi().set_agent(nullptr); }
  void send(const std::function<void(wire::Headers&)>& change, uint8_t first = 1) {
    wire::Headers headers = headers_on(path, 0);
    headers.udp.src_port = 0xc000;
    headers.bth.opcode = wire::Opcode::kUdSendOnly;
    headers.bth.pkey = 0xffff;
    headers.bth.dest_qpn = kGsiQpn;
    headers.deth.qkey = kGsiQkey;
    headers.deth.src_qpn = kGsiQpn;
    change(headers);
    wire::finish_lengths(headers, 256);
    PacketPtr packet = world.fabric.pool().acquire();
    packet->header_len = static_cast<uint16_t>(wire::emit(headers, packet->header));
    packet->payload.kind = Payload::Kind::kFrame;
    packet->payload.length = 256;
    std::fill_n(world.fabric.pool().attach_frame(*packet)->bytes.begin(), 256, first);
    to.receive(packet.release(), world.scheduler.now());
  }
};

}  // namespace

TEST_CASE(
    "gsi: QP 1 takes only UD SENDs of the default partition with its Q_Key, and counts others") {
  Mads mads;
  struct Row {
    const char* what;
    std::function<void(wire::Headers&)> change;
    Counter& (*counter)(PortCounters&);
  };
  auto unknown = [](PortCounters& all) -> Counter& { return all.rx_unknown_qp; };
  auto pkey = [](PortCounters& all) -> Counter& { return all.rx_wrong_pkey; };
  const Row rows[] = {
      {"an RC SEND", [](auto& h) { h.bth.opcode = wire::Opcode::kRcSendOnly; }, unknown},
      {"with immediate", [](auto& h) { h.bth.opcode = wire::Opcode::kUdSendOnlyImm; }, unknown},
      {"a Q_Key of others", [](auto& h) { h.deth.qkey = 0x80010001; }, unknown},
      {"another partition", [](auto& h) { h.bth.pkey = 0x8001; }, pkey},
  };
  for (const Row& row : rows) {
    INFO(row.what);
    uint64_t before = row.counter(mads.to.counters()).get();
    mads.send(row.change);
    CHECK(row.counter(mads.to.counters()).get() == before + 1);
  }
  CHECK(mads.agent.taken == 0);
  CHECK(mads.to.counters().rx_mads_discarded.get() == 0);
  mads.send([](auto& h) { h.bth.pkey = 0x7fff; });  // limited member
  CHECK(mads.agent.taken == 1);
  mads.send([](auto&) {}, 0);  // unknown to the agent
  CHECK(mads.to.counters().rx_mads_discarded.get() == 1);
}

TEST_CASE("gsi: the number of waiting datagrams is limited, and the excess is counted") {
  Mads mads;
  uint8_t mad[256] = {1};
  for (size_t i = 0; i < Gsi::kMaxWaiting + 5; ++i) mads.from.gsi().send(mads.path, mad);
  CHECK(mads.from.counters().port_xmit_discards.get() == 5);  // no packet leaves before time passes
  REQUIRE(mads.world.run_idle());
  mads.from.gsi().send(mads.path, mad);
  REQUIRE(mads.world.run_idle());
  CHECK(mads.from.counters().port_xmit_discards.get() == 5);
  CHECK(mads.agent.taken == Gsi::kMaxWaiting + 1);
}
