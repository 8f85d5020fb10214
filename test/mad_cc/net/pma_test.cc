// Clauses: IBTA volume 1.
#include "mad_cc/net/pma.h"

#include <catch2/catch.hpp>

#include "test/mad_cc/net/two_switches.h"

using namespace rocefs;

namespace {

constexpr uint16_t kPortCounters = 0x12, kExtended = 0x1d;

mad::Mad perf(uint8_t method, uint16_t attribute, uint8_t port, uint16_t select = 0) {
  mad::Mad mad = request_of(mad::kPerf, method, attribute);
  mad.bytes[65] = port;
  wire::store16(&mad.bytes[66], select);
  return mad;
}

struct Asked {
  Subnet subnet = two_switches();
  SetState state{subnet};
  PerformanceAgent agent{subnet, state};

  mad::Mad ask(size_t node, const mad::Mad& request) const {
    auto answer = agent.answer({node, 1}, request);
    REQUIRE(answer);
    CHECK(answer->tid() == request.tid());
    CHECK(answer->method() == mad::kGetResp);
    return *answer;
  }
  uint16_t status(size_t node, const mad::Mad& request) const {
    return ask(node, request).status();
  }
  // Distinct values.
  PerfCounters& count(size_t node, uint8_t port) {
    return state.counted[{node, port}] = PerfCounters{.symbol_errors = 0x101,
                                                      .link_recoveries = 0x2,
                                                      .link_downed = 0x3,
                                                      .rcv_errors = 0x404,
                                                      .rcv_remote_physical_errors = 0x505,
                                                      .rcv_switch_relay_errors = 0x606,
                                                      .xmit_discards = 0x707,
                                                      .xmit_constraint_errors = 0x8,
                                                      .rcv_constraint_errors = 0x9,
                                                      .local_link_integrity = 0xa,
                                                      .buffer_overruns = 0xb,
                                                      .vl15_dropped = 0xc0c,
                                                      .xmit_wait = 0x1d1d1d1d,
                                                      .xmit_data = 0x11111111,
                                                      .rcv_data = 0x22222222,
                                                      .xmit_packets = 0x33333333,
                                                      .rcv_packets = 0x44444444,
                                                      .unicast_xmit = 0x55555555,
                                                      .unicast_rcv = 0x66666666,
                                                      .multicast_xmit = 0x77777777,
                                                      .multicast_rcv = 0x88888888};
  }
};

}  // namespace

TEST_CASE("pma: ClassPortInfo offers all-port selection, 64 bits and PortXmitWait (16.1.3.1)") {
  Asked asked;
  mad::Mad answer = asked.ask(kMb0, perf(mad::kGet, 0x01, 0));
  CHECK(answer.status() == mad::kOk);
  CHECK(hex(answer, 64, 8) == "0101130000000012");
  CHECK(hex(answer, 72, 8) == "0000000000000000");
  CHECK(asked.status(kMb0, perf(mad::kSet, 0x01, 0)) == mad::kBadMethodAttribute);
}

TEST_CASE("pma: PortCounters has the standard's layout, octet for octet (16.1.3.5)") {
  Asked asked;
  asked.count(kMb0, 1);
  mad::Mad answer = asked.ask(kMb0, perf(mad::kGet, kPortCounters, 1));
  CHECK(answer.status() == mad::kOk);
  CHECK(hex(answer, 64, 44) ==
        "00010000"          // PortSelect, CounterSelect
        "010102030404"      // symbols, recoveries, downs, receive errors
        "050506060707"      // remote physical, relay, discards
        "0809"              // constraints
        "00ab00000c0c"      // CounterSelect2, integrity and overruns, VL 15
        "1111111122222222"  // data
        "3333333344444444"  // packets
        "1d1d1d1d");        // waiting
  CHECK(hex(answer, 108, 4) == "00000000");
}

TEST_CASE("pma: PortCounters saturate at the maximum of their fields (16.1.3.5)") {
  Asked asked;
  PerfCounters& all = asked.count(kMb0, 1);
  all.symbol_errors = 0x10000;
  all.link_downed = 256;
  all.local_link_integrity = 16;
  all.buffer_overruns = 15;
  all.xmit_data = 0x100000000;
  all.rcv_data = 0xffffffff;
  mad::Mad answer = asked.ask(kMb0, perf(mad::kGet, kPortCounters, 1));
  CHECK(hex(answer, 68, 4) == "ffff02ff");
  CHECK(answer.bytes[64 + 19] == 0xff);
  CHECK(hex(answer, 88, 8) == "ffffffffffffffff");
}

TEST_CASE("pma: PortCountersExtended has the standard's layout, octet for octet (16.1.4.11)") {
  Asked asked;
  asked.count(kMb0, 1).xmit_data = 0x123456789abcdef0;
  mad::Mad answer = asked.ask(kMb0, perf(mad::kGet, kExtended, 1));
  CHECK(hex(answer, 64, 8) == "0001000000000000");
  CHECK(hex(answer, 72, 16) == "123456789abcdef00000000022222222");
  CHECK(hex(answer, 88, 16) == "00000000333333330000000044444444");
  CHECK(hex(answer, 104, 16) == "00000000555555550000000066666666");
  CHECK(hex(answer, 120, 16) == "00000000777777770000000088888888");
  CHECK(hex(answer, 136, 4) == "00000000");
}

TEST_CASE("pma: port 255 is the saturating sum of all ports") {
  Asked asked;
  asked.state.counted[{kUpperSwitch, 1}].xmit_packets = 5;
  asked.state.counted[{kUpperSwitch, 4}].xmit_packets = 6;
  asked.state.counted[{kUpperSwitch, 0}].xmit_packets = 100;
  asked.state.counted[{kUpperSwitch, 1}].rcv_data = UINT64_MAX;
  asked.state.counted[{kUpperSwitch, 2}].rcv_data = 2;
  mad::Mad answer = asked.ask(kUpperSwitch, perf(mad::kGet, kExtended, 255));
  CHECK(answer.bytes[65] == 255);
  CHECK(wire::load64(&answer.bytes[88]) == 11);
  CHECK(wire::load64(&answer.bytes[80]) == UINT64_MAX);
}

TEST_CASE("pma: a port that the node does not have is a bad value (13.4.7)") {
  Asked asked;
  for (uint16_t attribute : {kPortCounters, kExtended}) {
    CHECK(asked.status(kMb0, perf(mad::kGet, attribute, 0)) == mad::kBadValue);
    CHECK(asked.status(kMb0, perf(mad::kGet, attribute, 2)) == mad::kBadValue);
    CHECK(asked.status(kUpperSwitch, perf(mad::kGet, attribute, 0)) == mad::kBadValue);
    CHECK(asked.status(kUpperSwitch, perf(mad::kGet, attribute, 5)) == mad::kBadValue);
    CHECK(asked.status(kUpperSwitch, perf(mad::kSet, attribute, 254)) == mad::kBadValue);
  }
  CHECK(asked.state.cleared.empty());
}

TEST_CASE("pma: Set clears the counters in CounterSelect and returns what is left (16.1.3.5)") {
  Asked asked;
  asked.count(kMb0, 1);
  mad::Mad answer = asked.ask(kMb0, perf(mad::kSet, kPortCounters, 1, 0x4001));
  CHECK(answer.status() == mad::kOk);
  const PerfCounters& which = asked.state.cleared.at({kMb0, 1});
  CHECK(which.symbol_errors == 1);
  CHECK(which.xmit_packets == 1);
  CHECK(which.rcv_packets == 0);
  CHECK(which.xmit_data == 0);
  CHECK(which.xmit_wait == 0);
  CHECK(which.unicast_xmit == 0);
  CHECK(hex(answer, 96, 8) == "0000000044444444");
}

TEST_CASE("pma: each bit of CounterSelect selects its counter (16.1.3.5, 16.1.4.11)") {
  Asked asked;
  uint64_t PerfCounters::*const narrow[] = {&PerfCounters::symbol_errors,
                                            &PerfCounters::link_recoveries,
                                            &PerfCounters::link_downed,
                                            &PerfCounters::rcv_errors,
                                            &PerfCounters::rcv_remote_physical_errors,
                                            &PerfCounters::rcv_switch_relay_errors,
                                            &PerfCounters::xmit_discards,
                                            &PerfCounters::xmit_constraint_errors,
                                            &PerfCounters::rcv_constraint_errors,
                                            &PerfCounters::local_link_integrity,
                                            &PerfCounters::buffer_overruns,
                                            &PerfCounters::vl15_dropped,
                                            &PerfCounters::xmit_data,
                                            &PerfCounters::rcv_data,
                                            &PerfCounters::xmit_packets,
                                            &PerfCounters::rcv_packets};
  uint64_t PerfCounters::*const wide[] = {
      &PerfCounters::xmit_data,      &PerfCounters::rcv_data,     &PerfCounters::xmit_packets,
      &PerfCounters::rcv_packets,    &PerfCounters::unicast_xmit, &PerfCounters::unicast_rcv,
      &PerfCounters::multicast_xmit, &PerfCounters::multicast_rcv};
  auto check = [&](uint16_t attribute, auto& members) {
    for (size_t bit = 0; bit < std::size(members); ++bit) {
      asked.ask(kMb0, perf(mad::kSet, attribute, 1, static_cast<uint16_t>(1u << bit)));
      const PerfCounters& which = asked.state.cleared.at({kMb0, 1});
      for (size_t i = 0; i < std::size(members); ++i) CHECK(which.*members[i] == (i == bit));
    }
  };
  check(kPortCounters, narrow);
  check(kExtended, wide);
  mad::Mad request = perf(mad::kSet, kPortCounters, 1);
  request.bytes[64 + 18] = 1;  // CounterSelect2
  asked.ask(kMb0, request);
  CHECK(asked.state.cleared.at({kMb0, 1}).xmit_wait == 1);
}

TEST_CASE("pma: Set of port 255 clears every port") {
  Asked asked;
  CHECK(asked.status(kUpperSwitch, perf(mad::kSet, kExtended, 255, 0xffff)) == mad::kOk);
  CHECK(asked.state.cleared.size() == 4);
  CHECK(asked.state.cleared.contains({kUpperSwitch, 4}));
  CHECK_FALSE(asked.state.cleared.contains({kUpperSwitch, 0}));
}

TEST_CASE("pma: other attributes, methods and versions are refused (13.4.7)") {
  Asked asked;
  for (uint16_t attribute : {0x00, 0x02, 0x10, 0x11, 0x15, 0x16, 0x1f}) {
    CHECK(asked.status(kMb0, perf(mad::kGet, attribute, 1)) == mad::kBadMethodAttribute);
  }
  CHECK(asked.status(kMb0, perf(mad::kDelete, kPortCounters, 1)) == mad::kBadMethod);
  mad::Mad request = perf(mad::kGet, kPortCounters, 1);
  request.bytes[2] = 2;
  CHECK(asked.status(kMb0, request) == mad::kBadVersion);
  CHECK_FALSE(asked.agent.answer({kMb0, 1}, perf(mad::kGetResp, kPortCounters, 1)));
  CHECK_FALSE(asked.agent.answer({kMb0, 1}, perf(mad::kTrap, kPortCounters, 1)));
}
