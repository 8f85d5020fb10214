// Clauses: IBTA volume 1.
#include "mad_cc/net/mad_network.h"

#include <catch2/catch.hpp>

#include "mad_cc/port/mad_port.h"
#include "mad_cc/sa/sa.h"
#include "test/mad_cc/net/two_switches.h"

using namespace rocefs;

namespace {

constexpr uint8_t kVendor = 0x32;
constexpr uint16_t kPermissive = 0xffff, kNodeInfo = 0x11, kSmInfo = 0x20;

mad::Address smp_to(uint16_t lid) {
  return {.lid = lid, .qpn = 0};
}
mad::Address gmp_to(uint16_t lid) {
  return {.lid = lid, .qpn = 1, .qkey = mad::kQkey};
}

// Port and a program with an agent for Get of every class it needs.
struct Program final : MadUser {
  struct Heard {
    mad::Address from;
    mad::Mad mad;
    bool is_answer;
  };
  MadPort port;
  std::map<uint8_t, uint32_t> agents;
  std::vector<Heard> heard;
  uint64_t sends = 0;

  Program(MadNetwork& network, Scheduler& scheduler, Subnet::End at) : port(network, scheduler) {
    network.attach(at, port);
    for (uint8_t mgmt_class : {mad::kSubnLid, mad::kSubnDirected, mad::kSubnAdm, mad::kPerf,
                               static_cast<mad::Class>(kVendor)}) {
      MadRegistration registration;
      registration.qpn = mad::is_smp(mgmt_class) ? 0 : 1;
      registration.mgmt_class = mgmt_class;
      registration.class_version = mgmt_class == mad::kSubnAdm ? 2 : 1;
      registration.oui = mgmt_class == kVendor ? 0x1405 : 0;
      registration.methods.set(mad::kGet);
      agents[mgmt_class] = *port.add_agent(registration, *this);
    }
  }
  bool send(const mad::Address& to, const mad::Mad& mad, uint32_t timeout_ms = 10) {
    return bool(port.send(agents.at(mad.mgmt_class()),
                          MadSend{++sends, to, timeout_ms, 0, mad::message_of(mad)}));
  }
  void received(uint32_t, std::optional<uint64_t> request, const mad::Address& from,
                mad::Message message) override {
    heard.push_back({from, mad::first_mad(message), request.has_value()});
  }
  void ended(uint32_t, uint64_t, End) override {}
};

struct Net {
  Subnet subnet;
  SetState state{subnet};
  Scheduler scheduler;
  MadNetwork network{subnet, state, scheduler};
  SubnetAdministrator administrator{subnet, state, scheduler, 1, network};
  Program near{network, scheduler, {kMb0, 1}};
  Program far{network, scheduler, {kMb1, 1}};

  explicit Net(Subnet of = two_switches()) : subnet(std::move(of)) {
    network.attach_administrator(administrator);
  }

  // Returns nothing without an answer.
  std::optional<Program::Heard> ask(const mad::Address& to, const mad::Mad& mad) {
    size_t before = near.heard.size();
    REQUIRE(near.send(to, mad));
    CHECK(near.heard.size() == before);  // not from within
    scheduler.run_until(scheduler.now() + 20 * kMillisecond);
    if (near.heard.size() == before) return std::nullopt;
    CHECK(near.heard.back().is_answer);
    return near.heard.back();
  }
  // Returns the node that answers NodeInfo, by LID, as `GUID port`; `-` without an answer.
  std::string node_at(const mad::Address& to) {
    return said(ask(to, request_of(mad::kSubnLid, mad::kGet, kNodeInfo)));
  }
  static std::string said(const std::optional<Program::Heard>& heard) {
    if (!heard) return "-";
    if ((heard->mad.status() & 0x7fff) != mad::kOk) return "refused";
    return hex(heard->mad, 64 + 19, 1) + " " + std::to_string(heard->mad.bytes[64 + 36]);
  }
  void cut(size_t node, uint8_t port) { state.down.insert({node, port}); }
};

// Directed route from the sender; `lids` are DrSLID and DrDLID.
mad::Mad directed(std::initializer_list<uint8_t> hops,
                  std::pair<uint16_t, uint16_t> lids = {kPermissive, kPermissive}) {
  mad::Mad mad = request_of(mad::kSubnDirected, mad::kGet, kNodeInfo);
  mad.bytes[7] = static_cast<uint8_t>(hops.size());
  wire::store16(&mad.bytes[32], lids.first);
  wire::store16(&mad.bytes[34], lids.second);
  std::copy(hops.begin(), hops.end(), &mad.bytes[129]);
  return mad;
}

}  // namespace

TEST_CASE("network: an SMP by LID is answered by the agent of the port where it arrives") {
  Net net;
  CHECK(net.node_at(smp_to(kLidOfMb1)) == "b0 1");
  CHECK(net.node_at(smp_to(kLidOfSw0)) == "c0 1");
  CHECK(net.node_at(smp_to(kLidOfSw1)) == "d0 1");  // by the lower of two ways
  CHECK(net.near.heard.back().from == mad::Address{.lid = kLidOfSw1, .qpn = 0});
  CHECK(net.node_at(smp_to(5)) == "-");
}

TEST_CASE("network: SMPs follow the linear forwarding tables, around failed cables") {
  Net net;
  net.cut(kUpperSwitch, 2);
  CHECK(net.node_at(smp_to(kLidOfSw1)) == "d0 2");
  CHECK(net.node_at(smp_to(kLidOfMb1)) == "b0 1");
  net.cut(kUpperSwitch, 3);
  CHECK(net.node_at(smp_to(kLidOfSw1)) == "-");
  CHECK(net.node_at(smp_to(kLidOfMb1)) == "-");
  CHECK(net.node_at(smp_to(kLidOfSw0)) == "c0 1");
}

TEST_CASE(
    "network: with its cable down a port reaches itself by LID 0, permissive and its own LID") {
  Net net;
  net.cut(kMb0, 1);
  for (uint16_t lid : {uint16_t{0}, kPermissive, kLidOfMb0}) {
    CHECK(net.node_at(smp_to(lid)) == "a0 1");
  }
  CHECK(Net::said(net.ask(smp_to(kPermissive), directed({}))) == "a0 1");
  CHECK(net.node_at(smp_to(kLidOfSw0)) == "-");
  CHECK(net.ask(gmp_to(kLidOfMb0), request_of(mad::kPerf, mad::kGet, 0x01)));
  CHECK_FALSE(net.ask(gmp_to(0), request_of(mad::kPerf, mad::kGet, 0x01)));
  CHECK_FALSE(net.ask(gmp_to(kPermissive), request_of(mad::kPerf, mad::kGet, 0x01)));
}

TEST_CASE("network: a directed route is followed hop by hop and leads back (14.2.2)") {
  Net net;
  auto answer = net.ask(smp_to(kPermissive), directed({1, 3, 3}));
  CHECK(Net::said(answer) == "b0 1");
  const mad::Mad& mad = answer->mad;
  CHECK(mad.method() == mad::kGetResp);
  CHECK(mad.status() == 0x8000);  // D: on its way back
  CHECK(mad.bytes[6] == 0);       // hop pointer
  CHECK(mad.bytes[7] == 3);
  CHECK(hex(mad, 32, 4) == "ffffffff");
  CHECK(hex(mad, 128, 5) == "0001030300");
  CHECK(hex(mad, 192, 5) == "0001020100");  // by which ports it came in
  CHECK(answer->from == mad::Address{.lid = kPermissive, .qpn = 0});
  CHECK(Net::said(net.ask(smp_to(kPermissive), directed({1}))) == "c0 1");
  CHECK(Net::said(net.ask(smp_to(kPermissive), directed({1, 2}))) == "d0 1");
  CHECK(Net::said(net.ask(smp_to(kPermissive), directed({1, 2, 2, 1}))) == "a0 1");
}

TEST_CASE("network: an error on a directed route keeps the direction bit") {
  Net net;
  mad::Mad request = directed({1});
  request.set_method(mad::kSet);
  CHECK(net.ask(smp_to(kPermissive), request)->mad.status() == (0x8000 | mad::kBadMethodAttribute));
}

TEST_CASE("network: a directed route does not pass failed cables or channel adapters") {
  Net net;
  net.cut(kLowerSwitch, 2);
  CHECK(Net::said(net.ask(smp_to(kPermissive), directed({1, 3}))) == "-");
  CHECK(Net::said(net.ask(smp_to(kPermissive), directed({1, 2, 3, 1}))) == "-");  // through mb_1
  CHECK(Net::said(net.ask(smp_to(kPermissive), directed({1, 4}))) == "-");        // no cable
  CHECK(Net::said(net.ask(smp_to(kPermissive), directed({1, 5}))) == "-");        // no port
  CHECK(Net::said(net.ask(smp_to(kPermissive), directed({1, 0}))) == "-");
  CHECK(Net::said(net.ask(smp_to(kPermissive), directed({2}))) == "-");  // not the sender's port
  CHECK(Net::said(net.ask(smp_to(kPermissive), directed({1, 2, 3}))) == "b0 1");
  net.state.absent.insert(kMb1);
  CHECK(Net::said(net.ask(smp_to(kPermissive), directed({1, 2, 3}))) == "-");
}

TEST_CASE("network: invalid directed routes are discarded (14.2.2.2)") {
  Net net;
  auto silent = [&](size_t octet, uint8_t value) {
    mad::Mad request = directed({1});
    request.bytes[octet] = value;
    return !net.ask(smp_to(kPermissive), request);
  };
  CHECK(silent(6, 1));   // the hop pointer is the sender's to begin with
  CHECK(silent(7, 64));  // more hops than a path has
  CHECK(silent(7, 255));
  CHECK(silent(4, 0x80));  // comes back, and never went
  CHECK_FALSE(silent(5, 1));
  mad::Mad longest = directed({1});
  longest.bytes[7] = 63;
  for (size_t hop = 2; hop <= 63; ++hop) longest.bytes[128 + hop] = hop % 2 ? 1 : 2;
  CHECK(Net::said(net.ask(smp_to(kPermissive), longest)) == "c0 2");
  CHECK(net.near.heard.back().mad.bytes[192 + 63] == 2);
}

TEST_CASE("network: a directed route may begin and end by LID (14.2.2.1)") {
  Net net;
  CHECK(Net::said(net.ask(smp_to(kLidOfSw1), directed({3}, {kLidOfMb0, kPermissive}))) == "b0 1");
  CHECK(net.near.heard.back().from.lid == kLidOfSw1);
  CHECK(hex(net.near.heard.back().mad, 192, 3) == "000100");
  CHECK(Net::said(net.ask(smp_to(kPermissive), directed({1}, {kPermissive, kLidOfMb1}))) == "b0 1");
  CHECK(Net::said(net.ask(smp_to(kLidOfMb1), directed({}, {kLidOfMb0, kPermissive}))) == "b0 1");
  // Dropped: by a channel adapter, for another sender, to an unused LID.
  CHECK(Net::said(net.ask(smp_to(kLidOfMb1), directed({1}, {kLidOfMb0, kPermissive}))) == "-");
  CHECK(Net::said(net.ask(smp_to(kLidOfSw1), directed({3}, {kLidOfMb1, kPermissive}))) == "-");
  CHECK(Net::said(net.ask(smp_to(9), directed({3}, {kLidOfMb0, kPermissive}))) == "-");
  CHECK(Net::said(net.ask(smp_to(kPermissive), directed({1}, {kPermissive, 9}))) == "-");
  CHECK(Net::said(net.ask(smp_to(kPermissive), directed({}, {kPermissive, kLidOfMb1}))) == "-");
}

TEST_CASE("network: a directed route records its return path") {
  Net net;
  mad::Mad request = directed({1});
  std::fill_n(&request.bytes[192], 64, uint8_t{0xee});
  auto answer = net.ask(smp_to(kPermissive), request);
  REQUIRE(answer);
  CHECK(hex(answer->mad, 192, 3) == "ee01ee");  // it fills in what is its own
}

TEST_CASE("network: Perf requests are answered by the node itself") {
  Net net;
  net.state.counted[{kMb1, 1}].xmit_packets = 77;
  mad::Mad request = request_of(mad::kPerf, mad::kGet, 0x1d);
  request.bytes[65] = 1;
  auto answer = net.ask(gmp_to(kLidOfMb1), request);
  REQUIRE(answer);
  CHECK(wire::load64(&answer->mad.bytes[88]) == 77);
  CHECK(answer->from == gmp_to(kLidOfMb1));
  CHECK(net.far.heard.empty());
  request.bytes[65] = 2;
  CHECK(net.ask(gmp_to(kLidOfSw1), request)->mad.status() == mad::kOk);
}

TEST_CASE("network: other classes go to the programs, and their answers return") {
  Net net;
  mad::Mad ping = request_of(kVendor, mad::kGet, 0x0);
  wire::store32(&ping.bytes[36], 0x1405);
  CHECK_FALSE(net.ask(gmp_to(kLidOfMb1), ping));
  REQUIRE(net.far.heard.size() == 1);
  CHECK_FALSE(net.far.heard[0].is_answer);
  CHECK(net.far.heard[0].from == gmp_to(kLidOfMb0));
  // A switch has no agent for it, and refuses.
  CHECK(net.ask(gmp_to(kLidOfSw0), ping)->mad.status() == mad::kBadMethodAttribute);
  REQUIRE(net.near.send(gmp_to(kLidOfMb1), ping));
  net.scheduler.run_until(net.scheduler.now());
  REQUIRE(net.far.heard.size() == 2);
  mad::Mad pong = net.far.heard[1].mad;
  pong.set_method(mad::kGetResp);
  REQUIRE(net.far.send(net.far.heard[1].from, pong, 0));
  net.scheduler.run_until(net.scheduler.now());
  REQUIRE(net.near.heard.size() == 2);
  CHECK(net.near.heard[1].is_answer);
}

TEST_CASE("network: a GMP with the wrong queue pair, Q_Key or P_Key is dropped (10.2.5)") {
  Net net;
  auto arrives = [&](auto change) {
    mad::Address to = gmp_to(kLidOfMb1);
    change(to);
    return net.ask(to, request_of(mad::kPerf, mad::kGet, 0x01)).has_value();
  };
  CHECK(arrives([](mad::Address&) {}));
  CHECK(arrives([](mad::Address& to) { to.qkey = 0x80000000; }));  // the queue pair's own
  CHECK_FALSE(arrives([](mad::Address& to) { to.qkey = 0; }));
  CHECK_FALSE(arrives([](mad::Address& to) { to.qkey = 0x00010000; }));
  CHECK_FALSE(arrives([](mad::Address& to) { to.qpn = 0; }));
  CHECK_FALSE(arrives([](mad::Address& to) { to.qpn = 2; }));
  CHECK_FALSE(arrives([](mad::Address& to) { to.pkey_index = 1; }));
  mad::Address smp = smp_to(kLidOfMb1);
  smp.qpn = 1;
  CHECK(net.node_at(smp) == "-");
}

TEST_CASE("network: a device without its driver neither receives nor answers") {
  Net net;
  net.state.absent.insert(kMb1);
  CHECK(net.node_at(smp_to(kLidOfMb1)) == "-");
  mad::Mad ping = request_of(kVendor, mad::kGet, 0x0);
  wire::store32(&ping.bytes[36], 0x1405);
  CHECK_FALSE(net.ask(gmp_to(kLidOfMb1), ping));
  CHECK(net.far.heard.empty());
  net.state.absent.clear();
  CHECK(net.node_at(smp_to(kLidOfMb1)) == "b0 1");
}

TEST_CASE("network: the administrator answers requests to the manager's port") {
  Net net;
  mad::Mad request = request_of(mad::kSubnAdm, mad::kGet, 0x01);
  auto answer = net.ask(gmp_to(kLidOfSw0), request);
  REQUIRE(answer);
  CHECK(answer->mad.status() == mad::kOk);
  CHECK(answer->from == gmp_to(kLidOfSw0));
  CHECK(net.ask(gmp_to(kLidOfSw1), request)->mad.status() == mad::kBadMethodAttribute);
  CHECK_FALSE(net.ask(gmp_to(kLidOfMb1), request));
  CHECK(net.far.heard.size() == 1);  // a program may administer too
  net.administrator.configure({.delay_ns = 5 * kMillisecond});
  REQUIRE(net.near.send(gmp_to(kLidOfSw0), request));
  net.scheduler.run_until(net.scheduler.now() + kMillisecond);
  CHECK(net.administrator.pending() == 1);
  net.cut(kMb0, 1);  // before the answer is out
  size_t before = net.near.heard.size();
  net.scheduler.run_until(net.scheduler.now() + 20 * kMillisecond);
  CHECK(net.near.heard.size() == before);
}

TEST_CASE("network: back to back, both ports reach the first port's manager") {
  Subnet subnet = two_switches();
  subnet.nodes.resize(2);
  subnet.nodes[kMb0].ports[1].peer = kMb1;
  subnet.nodes[kMb0].ports[1].peer_port = 1;
  subnet.nodes[kMb1].ports[1].peer = kMb0;
  subnet.nodes[kMb1].ports[1].peer_port = 1;
  subnet.manager = {kMb0, 1};
  subnet.by_lid = {{kMb0, 1}, {kMb1, 1}};
  subnet.nodes[kMb0].ports[1].lid = 1;
  subnet.nodes[kMb1].ports[1].lid = 2;
  Net net(subnet);
  CHECK(net.node_at(smp_to(2)) == "b0 1");
  CHECK(net.ask(smp_to(1), request_of(mad::kSubnLid, mad::kGet, kSmInfo))->mad.status() == 0);
  CHECK(net.ask(smp_to(2), request_of(mad::kSubnLid, mad::kGet, kSmInfo))->mad.status() ==
        mad::kBadMethodAttribute);
  CHECK(Net::said(net.ask(smp_to(kPermissive), directed({1}))) == "b0 1");
  CHECK(Net::said(net.ask(smp_to(kPermissive), directed({1, 1}))) == "-");
  CHECK(net.ask(gmp_to(1), request_of(mad::kSubnAdm, mad::kGet, 0x01)));
  REQUIRE(net.far.send(gmp_to(1), request_of(mad::kSubnAdm, mad::kGet, 0x01)));
  net.scheduler.run_until(net.scheduler.now() + kMillisecond);
  CHECK(net.far.heard.size() == 1);
  net.cut(kMb0, 1);
  CHECK(net.node_at(smp_to(2)) == "-");
  CHECK(net.ask(gmp_to(1), request_of(mad::kSubnAdm, mad::kGet, 0x01)));
}

TEST_CASE("network: a reset drops the MADs in flight, whose number is limited") {
  Net net;
  mad::Mad report = request_of(mad::kPerf, mad::kGet, 0x01);
  REQUIRE(net.near.send(gmp_to(kLidOfSw0), request_of(mad::kSubnAdm, mad::kGet, 0x01)));
  net.administrator.configure({.delay_ns = kMillisecond});
  net.scheduler.run_until(net.scheduler.now());
  REQUIRE(net.administrator.pending() == 1);
  REQUIRE(net.near.send(gmp_to(kLidOfMb1), report));
  net.network.reset();
  net.administrator.reset();
  CHECK(net.administrator.pending() == 0);
  net.scheduler.run_until(net.scheduler.now() + 20 * kMillisecond);
  CHECK(net.near.heard.empty());
  mad::Mad ping = request_of(kVendor, mad::kGet, 0x0);
  wire::store32(&ping.bytes[36], 0x1405);
  for (size_t i = 0; i < MadNetwork::kMaxOnTheWay + 7; ++i) {
    net.network.transmit(net.near.port, gmp_to(kLidOfMb0), ping);
  }
  CHECK(net.near.heard.empty());
  net.scheduler.run_until(net.scheduler.now());
  CHECK(net.near.heard.size() == MadNetwork::kMaxOnTheWay);
}

TEST_CASE("network: MADs follow the forwarding tables that a manager has written") {
  Net net;
  SubnetSettings::Octets table;
  table.fill(255);
  table[kLidOfMb1] = 3;
  net.state.settings.write(kUpperSwitch, 0x19, 0, table);
  CHECK(net.node_at(smp_to(kLidOfMb1)) == "b0 1");
  CHECK(net.node_at(smp_to(kLidOfSw1)) == "-");  // 255
  net.cut(kUpperSwitch, 3);
  CHECK(net.node_at(smp_to(kLidOfMb1)) == "-");  // the other cable is in no table
  for (uint8_t out : {0, 1, 4, 5, 254}) {        // to itself, back, no cable, no port
    table[kLidOfMb1] = out;
    net.state.settings.write(kUpperSwitch, 0x19, 0, table);
    CHECK(net.node_at(smp_to(kLidOfMb1)) == "-");
  }
}

TEST_CASE("network: a loop in written forwarding tables ends") {
  Net net;
  SubnetSettings::Octets table;
  table.fill(2);
  net.state.settings.write(kUpperSwitch, 0x19, 0, table);
  table.fill(1);
  net.state.settings.write(kLowerSwitch, 0x19, 0, table);
  CHECK(net.node_at(smp_to(kLidOfMb1)) == "-");
}

TEST_CASE("network: a program that is the subnet manager takes the subnet over until it leaves") {
  Net net;
  mad::Mad info = request_of(mad::kSubnAdm, mad::kGet, 0x01);
  mad::Mad smi = request_of(mad::kSubnLid, mad::kGet, kSmInfo);
  net.network.set_manager({kMb1, 1}, true);
  REQUIRE(net.near.send(smp_to(kLidOfMb1), smi));
  net.scheduler.run_until(net.scheduler.now());
  REQUIRE(net.far.heard.size() == 1);  // not the agent's
  CHECK(net.ask(gmp_to(kLidOfSw0), info)->mad.status() == mad::kBadMethodAttribute);
  auto state_change = [&] {
    mad::Mad get = request_of(mad::kSubnLid, mad::kGet, 0x12);
    return net.ask(smp_to(kLidOfSw0), get)->mad.bytes[64 + 11] >> 2 & 1;
  };
  CHECK(state_change() == 0);
  net.cut(kUpperSwitch, 2);
  CHECK(state_change() == 1);
  net.state.settings.write(kUpperSwitch, 0x19, 0, {});
  net.network.set_manager({kMb1, 1}, false);
  CHECK(state_change() == 0);
  CHECK_FALSE(net.state.settings.find(kUpperSwitch, 0x19, 0));
  CHECK(net.state.manager_lids.at({kMb0, 1}) == kLidOfSw0);
  CHECK(net.ask(gmp_to(kLidOfSw0), info)->mad.status() == mad::kOk);
  CHECK(net.ask(smp_to(kLidOfMb1), smi)->mad.status() == mad::kBadMethodAttribute);
}

TEST_CASE("network: a program's response takes the directed route back (14.2.2.2)") {
  Net net;
  net.network.set_manager({kMb1, 1}, true);
  mad::Mad request = directed({1, 3, 3});
  wire::store16(&request.bytes[16], kSmInfo);
  REQUIRE(net.near.send(smp_to(kPermissive), request));
  net.scheduler.run_until(net.scheduler.now());
  REQUIRE(net.far.heard.size() == 1);
  mad::Mad response = net.far.heard[0].mad;
  CHECK(hex(response, 192, 4) == "00010201");
  response.set_method(mad::kGetResp);
  auto answers = [&](uint16_t status, uint8_t out) {
    mad::Mad back = response;
    back.set_status(status);
    back.bytes[194] = out;
    size_t before = net.near.heard.size();
    REQUIRE(net.far.send(smp_to(kPermissive), back, 0));
    net.scheduler.run_until(net.scheduler.now());
    return net.near.heard.size() - before;
  };
  CHECK(answers(0, 2) == 0);       // without the direction bit
  CHECK(answers(0x8000, 9) == 0);  // no such port
  CHECK(answers(0x8000, 2) == 1);
  CHECK(net.near.heard.back().is_answer);
}

TEST_CASE("network: a switch refuses a GMP class that it does not have (13.4.7)") {
  Net net;
  CHECK(net.ask(gmp_to(kLidOfSw1), request_of(kVendor, mad::kGet, 1))->mad.status() ==
        mad::kBadMethodAttribute);
}
