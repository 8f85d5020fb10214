// Clauses: IBTA volume 1.
#include "mad_cc/net/sma.h"

#include <catch2/catch.hpp>

#include "test/mad_cc/net/two_switches.h"

using namespace rocefs;

namespace {

struct Asked {
  Subnet subnet = two_switches();
  SetState state{subnet};
  SubnetAgent agent{subnet, state};

  mad::Mad ask(Subnet::End at, const mad::Mad& request) const {
    auto answer = agent.answer(at, request);
    REQUIRE(answer);
    CHECK(answer->tid() == request.tid());
    return *answer;
  }
  mad::Mad get(Subnet::End at, uint16_t attribute, uint32_t modifier = 0) const {
    return ask(at, request_of(mad::kSubnLid, mad::kGet, attribute, modifier));
  }
  uint16_t status(Subnet::End at, uint16_t attribute, uint32_t modifier = 0) const {
    mad::Mad answer = get(at, attribute, modifier);
    CHECK(answer.method() == mad::kGetResp);
    return answer.status();
  }
};

}  // namespace

TEST_CASE("sma: NodeInfo has the standard's layout, octet for octet (14.2.5.3)") {
  Asked asked;
  mad::Mad answer = asked.get({kMb1, 1}, 0x11);
  CHECK(hex(answer, 0, 24) == "010101810000000011223344556677880011000000000000");
  CHECK(hex(answer, 64, 12) == "0101010200000000000000b0");  // versions, CA, 2 ports, system image
  CHECK(hex(answer, 76, 16) == "00000000000000b000000000000000b1");  // node and port GUID
  CHECK(hex(answer, 92, 2) == "0001");                               // PartitionCap
  CHECK(answer.bytes[64 + 36] == 1);                                 // LocalPortNum
  mad::Mad of_switch = asked.get({kUpperSwitch, 3}, 0x11);
  CHECK(hex(of_switch, 64, 4) == "01010204");
  CHECK(of_switch.bytes[64 + 36] == 3);
}

TEST_CASE("sma: NodeDescription is the state's text, padded with zeros (14.2.5.2)") {
  Asked asked;
  mad::Mad answer = asked.get({kMb0, 1}, 0x10);
  CHECK(hex(answer, 64, 6) == "6d625f302100");
  CHECK(answer.bytes[127] == 0);
}

TEST_CASE("sma: only a switch has SwitchInfo (14.2.5.4)") {
  Asked asked;
  CHECK(asked.status({kMb0, 1}, 0x12) == mad::kBadMethodAttribute);
  mad::Mad answer = asked.get({kUpperSwitch, 0}, 0x12);
  CHECK(answer.status() == mad::kOk);
  CHECK(hex(answer, 64, 8) == "c000000004000004");  // LIDs and groups that tables hold, LIDs used
}

TEST_CASE("sma: GUIDInfo has one block (14.2.5.5)") {
  Asked asked;
  CHECK(hex(asked.get({kMb1, 1}, 0x14), 64, 16) == "00000000000000b10000000000000000");
  CHECK(asked.status({kMb1, 1}, 0x14, 1) == mad::kBadValue);
}

TEST_CASE("sma: PortInfo describes the port that the modifier selects (14.2.5.6)") {
  Asked asked;
  constexpr size_t kLid = 64 + 16, kSmLid = 64 + 18, kLocalPort = 64 + 28, kState = 64 + 32;
  auto port = [&](Subnet::End at, uint32_t modifier) { return asked.get(at, 0x15, modifier); };
  mad::Mad own = port({kMb0, 1}, 0);  // of a channel adapter: the one by which it came
  CHECK(hex(own, kLid, 2) == "0002");
  CHECK(hex(own, kSmLid, 2) == "0001");
  CHECK((own.bytes[kState] & 15) == 4);
  CHECK(port({kMb0, 1}, 1).bytes == [&] {
    mad::Mad same = own;
    wire::store32(&same.bytes[20], 1);
    return same.bytes;
  }());
  CHECK(hex(port({kUpperSwitch, 2}, 0), kLid, 2) == "0001");  // of a switch: port 0
  asked.state.down.insert({kUpperSwitch, 3});
  mad::Mad third = port({kUpperSwitch, 2}, 3);
  CHECK((third.bytes[kState] & 15) == 1);
  CHECK(third.bytes[kLocalPort] == 2);  // by which it came, whichever port is asked about
  CHECK(port({kUpperSwitch, 2}, 0x80000003).status() == mad::kOk);  // SMSupportExtendedSpeeds
  CHECK(port({kUpperSwitch, 2}, 5).status() == mad::kBadValue);
  CHECK(port({kUpperSwitch, 2}, 0x80000005).status() == mad::kBadValue);
  CHECK(port({kUpperSwitch, 2}, 0x101).status() == mad::kBadValue);
}

TEST_CASE("sma: the default partition is the only one (14.2.5.7)") {
  Asked asked;
  CHECK(hex(asked.get({kMb0, 1}, 0x16), 64, 4) == "ffff0000");
  CHECK(hex(asked.get({kUpperSwitch, 1}, 0x16), 64, 4) == "ffff0000");
  CHECK(asked.status({kMb0, 1}, 0x16, 1) == mad::kBadValue);
  CHECK(asked.status({kMb0, 1}, 0x16, 1 << 16) == mad::kOk);  // a channel adapter looks at no port
  CHECK(asked.status({kUpperSwitch, 1}, 0x16, 1 << 16) == mad::kBadValue);
}

TEST_CASE("sma: every SL maps to VL 0 (14.2.5.8)") {
  Asked asked;
  CHECK(hex(asked.get({kMb0, 1}, 0x17), 64, 8) == "0000000000000000");
  CHECK(asked.status({kUpperSwitch, 1}, 0x17, 4 << 8 | 4) == mad::kOk);
  CHECK(asked.status({kUpperSwitch, 1}, 0x17, 5 << 8 | 1) == mad::kBadValue);
  CHECK(asked.status({kUpperSwitch, 1}, 0x17, 1 << 8 | 5) == mad::kBadValue);
}

TEST_CASE("sma: a linear forwarding table has an entry for every reachable LID (14.2.5.10)") {
  Asked asked;
  // Entries: no LID 0; sw_0 itself, mb_0, mb_1 and sw_1 by the lower of two ports; unused.
  CHECK(hex(asked.get({kUpperSwitch, 0}, 0x19), 64, 6) == "ff00010202ff");
  CHECK(hex(asked.get({kLowerSwitch, 0}, 0x19), 64, 6) == "ff01010300ff");
  CHECK(hex(asked.get({kUpperSwitch, 0}, 0x19, 1), 64, 4) == "ffffffff");
  asked.state.down.insert({kUpperSwitch, 2});
  CHECK(hex(asked.get({kUpperSwitch, 0}, 0x19), 64, 6) == "ff00010303ff");
  asked.state.down.insert({kUpperSwitch, 3});
  CHECK(hex(asked.get({kUpperSwitch, 0}, 0x19), 64, 6) == "ff0001ffffff");
  CHECK(asked.status({kUpperSwitch, 0}, 0x19, 767) == mad::kOk);
  CHECK(asked.status({kUpperSwitch, 0}, 0x19, 768) == mad::kBadValue);
  CHECK(asked.status({kMb0, 1}, 0x19) == mad::kBadMethodAttribute);
}

TEST_CASE("sma: only the manager's node answers SMInfo (14.2.5.13)") {
  Asked asked;
  mad::Mad answer = asked.get({kUpperSwitch, 1}, 0x20);
  CHECK(answer.status() == mad::kOk);
  CHECK(hex(answer, 64, 8) == "00000000000000c0");
  CHECK((answer.bytes[64 + 20] & 15) == 3);  // master
  CHECK(asked.status({kLowerSwitch, 1}, 0x20) == mad::kBadMethodAttribute);
}

TEST_CASE("sma: attributes that the node lacks are refused (13.4.7)") {
  Asked asked;
  CHECK(asked.status({kUpperSwitch, 1}, 0x1b) == mad::kOk);
  CHECK(asked.status({kMb0, 1}, 0x1b) == mad::kBadMethodAttribute);
  for (uint16_t attribute : {0x00, 0x02, 0x13, 0x18, 0x1a, 0x1c, 0x30, 0x31, 0x33, 0xff90}) {
    CHECK(asked.status({kUpperSwitch, 1}, attribute) == mad::kBadMethodAttribute);
  }
}

TEST_CASE("sma: an unsupported or malformed request is refused with its data unchanged (13.4.7)") {
  Asked asked;
  mad::Mad request = request_of(mad::kSubnLid, mad::kSet, 0x15, 1);
  request.bytes[64 + 17] = 9;  // a LID
  mad::Mad answer = asked.ask({kMb0, 1}, request);
  CHECK(answer.status() == mad::kBadValue);
  CHECK(answer.method() == mad::kGetResp);
  CHECK(answer.bytes[64 + 17] == 9);
  request = request_of(mad::kSubnLid, mad::kGetTable, 0x11);
  CHECK(asked.ask({kMb0, 1}, request).status() == mad::kBadMethod);
  for (size_t version : {0, 2}) {
    request = request_of(mad::kSubnLid, mad::kGet, 0x11);
    request.bytes[version] = 2;
    CHECK(asked.ask({kMb0, 1}, request).status() == mad::kBadVersion);
  }
}

TEST_CASE("sma: a MAD that is not a request is not answered") {
  Asked asked;
  for (uint8_t method : {mad::kGetResp, mad::kTrap, mad::kTrapRepress, mad::kSend}) {
    CHECK_FALSE(asked.agent.answer({kMb0, 1}, request_of(mad::kSubnLid, method, 0x11)));
  }
}
