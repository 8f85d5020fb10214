// Clauses: IBTA volume 1.
#include <catch2/catch.hpp>

#include "mad_cc/net/attributes.h"
#include "mad_cc/net/sma.h"
#include "test/mad_cc/net/two_switches.h"

using namespace rocefs;

namespace {

constexpr uint16_t kPort = 0x15, kSwitch = 0x12, kLinear = 0x19, kMulticast = 0x1b, kMapping = 0x17;
constexpr size_t kData = 64;  // octet of an SMP where the attribute begins

// Agent of the two switches, asked by a subnet manager.
struct Managed {
  Subnet subnet = two_switches();
  SetState state{subnet};
  SubnetAgent agent{subnet, state};

  mad::Mad get(Subnet::End at, uint16_t attribute, uint32_t modifier = 0) const {
    return *agent.answer(at, request_of(mad::kSubnLid, mad::kGet, attribute, modifier));
  }
  // Gets an attribute, changes it and sets it.
  template <class Change>
  mad::Mad set(Subnet::End at, uint16_t attribute, uint32_t modifier, Change change) const {
    mad::Mad request = get(at, attribute, modifier);
    request.set_method(mad::kSet);
    request.set_status(0);
    if (attribute == kPort) {  // states as managers write them: no change
      request.bytes[kData + 32] &= 0xf0;
      request.bytes[kData + 33] &= 0x0f;
    }
    change(&request.bytes[kData]);
    return *agent.answer(at, request);
  }
};

}  // namespace

TEST_CASE("sma: what is set of PortInfo is shown, and read-only fields stay (14.2.5.6)") {
  Managed managed;
  mad::Mad before = managed.get({kMb0, 1}, kPort, 1);
  mad::Mad answer = managed.set({kMb0, 1}, kPort, 1, [](uint8_t* info) {
    wire::store16(info + 18, kLidOfMb1);  // MasterSMLID
    info[36] = 3 << 4 | 5;                // NeighborMTU 1024, MasterSMSL 5
    info[51] = 7;                         // SubnetTimeOut
    info[28] = 9;                         // LocalPortNum: read-only
    info[31] = 1;                         // LinkWidthActive: read-only
  });
  CHECK(answer.status() == mad::kOk);
  CHECK(answer.method() == mad::kGetResp);
  CHECK(hex(answer, kData + 18, 2) == "0003");
  CHECK(hex(answer, kData + 36, 1) == "35");
  CHECK(answer.bytes[kData + 51] == 7);
  CHECK(answer.bytes[kData + 28] == before.bytes[kData + 28]);
  CHECK(answer.bytes[kData + 31] == before.bytes[kData + 31]);
  CHECK(managed.state.manager_lids.at({kMb0, 1}) == kLidOfMb1);
  CHECK(hex(managed.get({kMb0, 1}, kPort, 1), kData, 64) == hex(answer, kData, 64));
}

TEST_CASE("sma: enabled widths and speeds are those written that the cable has (14.2.5.6)") {
  Managed managed;
  auto enabled = [&](uint8_t width, uint8_t speed) {
    mad::Mad answer = managed.set({kUpperSwitch, 1}, kPort, 1, [&](uint8_t* info) {
      info[29] = width;
      info[35] = static_cast<uint8_t>((info[35] & 0xf0) | speed);
    });
    CHECK(answer.status() == mad::kOk);
    return std::pair(answer.bytes[kData + 29], answer.bytes[kData + 35] & 15);
  };
  uint8_t widths = managed.get({kUpperSwitch, 1}, kPort, 1).bytes[kData + 30];
  auto speeds = managed.get({kUpperSwitch, 1}, kPort, 1).bytes[kData + 32] >> 4;
  CHECK(enabled(1, 1) == std::pair<uint8_t, int>(1, 1));
  CHECK(enabled(0, 0) == std::pair<uint8_t, int>(1, 1));  // no change
  CHECK(enabled(255, 15) == std::pair<uint8_t, int>(widths, speeds));
}

TEST_CASE("sma: what the emulator decides cannot be set, and nothing changes then (14.2.5.6)") {
  Managed managed;
  auto refused = [&](Subnet::End at, uint32_t port, auto change) {
    std::string before = hex(managed.get(at, kPort, port), kData, 64);
    CHECK(managed.set(at, kPort, port, change).status() == mad::kBadValue);
    CHECK(hex(managed.get(at, kPort, port), kData, 64) == before);
  };
  Subnet::End adapter{kMb0, 1}, port{kUpperSwitch, 1};
  refused(adapter, 1, [](uint8_t* info) { info[7] = 1; });                       // M_Key
  refused(adapter, 1, [](uint8_t* info) { info[15] = 1; });                      // GidPrefix
  refused(adapter, 1, [](uint8_t* info) { wire::store16(info + 16, 9); });       // LID
  refused(adapter, 1, [](uint8_t* info) { wire::store16(info + 18, 0xc000); });  // MasterSMLID
  refused(adapter, 1, [](uint8_t* info) { info[34] = 1; });                      // LMC
  refused(port, 1, [](uint8_t* info) { info[36] = 6 << 4; });                    // NeighborMTU
  refused(port, 1, [](uint8_t* info) { info[43] = 2 << 4; });                    // OperationalVLs
  refused(port, 1, [](uint8_t* info) { info[32] |= 3; });                        // armed
  refused(port, 1, [](uint8_t* info) { info[33] |= 5 << 4; });                   // LinkUp
  refused(port, 0, [](uint8_t* info) { info[33] |= 3 << 4; });  // the management port: disabled
  refused(port, 4, [](uint8_t* info) { info[32] |= 4; });       // active without a cable
  CHECK(managed.set(port, kPort, 5, [](uint8_t*) {}).status() == mad::kBadValue);
  CHECK(managed.state.manager_lids.empty());
}

TEST_CASE("sma: PortPhysicalState takes the cable down and up (14.2.5.6)") {
  Managed managed;
  auto physical = [&](uint8_t state) {
    mad::Mad answer = managed.set({kUpperSwitch, 2}, kPort, 2, [&](uint8_t* info) {
      info[33] = static_cast<uint8_t>((info[33] & 15) | state << 4);
    });
    CHECK(answer.status() == mad::kOk);
    return answer.bytes[kData + 32] & 15;  // PortState
  };
  CHECK(physical(3) == 1);
  CHECK_FALSE(managed.state.up(kLowerSwitch, 1));
  CHECK(physical(0) == 1);
  CHECK(physical(2) == 4);
  CHECK(managed.state.up(kLowerSwitch, 1));
}

TEST_CASE("sma: a port that is up retrains when it shall poll or go down (14.2.5.6)") {
  using Enables = std::vector<bool>;
  Managed managed;
  auto set = [&](uint8_t state, uint8_t physical) {
    managed.state.enables.clear();
    mad::Mad answer = managed.set({kUpperSwitch, 2}, kPort, 2, [&](uint8_t* info) {
      info[32] = static_cast<uint8_t>(info[32] | state);
      info[33] = static_cast<uint8_t>(info[33] | physical << 4);
    });
    CHECK(answer.status() == mad::kOk);
    return managed.state.enables;
  };
  CHECK(set(0, 2) == Enables{false, true});
  CHECK(set(1, 0) == Enables{false, true});
  CHECK(set(1, 2) == Enables{false, true});
  CHECK(set(0, 0).empty());
  CHECK(set(0, 3) == Enables{false});
  CHECK(set(1, 0).empty());  // it is disabled
  CHECK(set(0, 2) == Enables{true});
}

TEST_CASE("sma: PortStateChange is set by a change since it was cleared (14.2.5.4)") {
  Managed managed;
  Subnet::End at{kUpperSwitch, 0};
  auto changed = [&] { return managed.get(at, kSwitch).bytes[kData + 11] >> 2 & 1; };
  CHECK(changed() == 0);
  mad::Mad answer = managed.set(at, kSwitch, 0, [](uint8_t* info) {
    wire::store16(info + 6, 300);  // LinearFDBTop
    info[8] = 2;                   // DefaultPort
    info[11] = 9 << 3 | 1 << 2;    // LifeTimeValue; clear PortStateChange
  });
  CHECK(answer.status() == mad::kOk);
  CHECK(hex(answer, kData + 6, 3) == "012c02");
  CHECK(answer.bytes[kData + 11] == 9 << 3);
  managed.state.down.insert({kUpperSwitch, 3});
  CHECK(changed() == 1);
  managed.set(at, kSwitch, 0, [](uint8_t* info) { info[11] &= 0xfb; });  // 0 clears nothing
  CHECK(changed() == 1);
  managed.set(at, kSwitch, 0, [](uint8_t*) {});
  CHECK(changed() == 0);
  auto too_high = [](uint8_t* info) { wire::store16(info + 6, 0xc000); };
  CHECK(managed.set(at, kSwitch, 0, too_high).status() == mad::kBadValue);
}

TEST_CASE("sma: forwarding and SL tables are shown as they were written (14.2.5.8, .10, .12)") {
  Managed managed;
  Subnet::End at{kUpperSwitch, 0};
  auto write = [](uint8_t* data) { data[3] = 0x42; };
  CHECK_FALSE(managed.agent.written_forward(kUpperSwitch, 3));
  CHECK(managed.set(at, kLinear, 0, write).status() == mad::kOk);
  CHECK(hex(managed.get(at, kLinear), kData, 6) == "ff00014202ff");
  CHECK(managed.agent.written_forward(kUpperSwitch, 3) == 0x42);
  CHECK_FALSE(managed.agent.written_forward(kUpperSwitch, 64));
  CHECK(managed.get(at, kLinear, 1).bytes[kData + 3] == 0xff);
  CHECK(managed.set(at, kLinear, 768, write).status() == mad::kBadValue);

  CHECK(managed.set(at, kMulticast, 31, write).status() == mad::kOk);
  CHECK(hex(managed.get(at, kMulticast, 31), kData, 4) == "00000042");
  CHECK(hex(managed.get(at, kMulticast, 30), kData, 4) == "00000000");
  CHECK(managed.set(at, kMulticast, 32, write).status() == mad::kBadValue);
  CHECK(managed.set(at, kMulticast, 1u << 28, write).status() == mad::kBadValue);

  CHECK(managed.set(at, kMapping, 1 << 8 | 2, write).status() == mad::kOk);
  CHECK(hex(managed.get(at, kMapping, 1 << 8 | 2), kData, 4) == "00000042");
  CHECK(hex(managed.get(at, kMapping, 2 << 8 | 1), kData, 4) == "00000000");
  CHECK(managed.set({kMb0, 1}, kMapping, 0, write).status() == mad::kOk);
  CHECK(hex(managed.get({kMb0, 1}, kMapping, 0x101), kData, 4) == "00000042");
}

TEST_CASE("sma: partitions, names and GUIDs cannot be set (13.4.7)") {
  Managed managed;
  constexpr uint16_t kPKeys = 0x16;
  auto same = [](uint8_t*) {};
  CHECK(managed.set({kMb0, 1}, kPKeys, 0, same).status() == mad::kOk);
  CHECK(managed.set({kMb0, 1}, kPKeys, 0, [](uint8_t* keys) { keys[3] = 1; }).status() ==
        mad::kBadValue);
  for (uint16_t attribute : {0x10, 0x11, 0x14}) {
    CHECK(managed.set({kMb0, 1}, attribute, 0, same).status() == mad::kBadMethodAttribute);
  }
  CHECK(managed.set({kUpperSwitch, 0}, 0x20, 0, same).status() == mad::kBadMethodAttribute);
}

TEST_CASE(
    "sma: a program that manages the subnet has IsSM, and the emulated manager is not active") {
  Managed managed;
  auto is_sm = [&](Subnet::End at) {
    return managed.get(at, kPort, at.port).bytes[kData + 23] >> 1 & 1;
  };
  CHECK(is_sm({kMb0, 1}) == 0);
  CHECK(is_sm({kUpperSwitch, 0}) == 1);
  managed.state.settings.add_manager(kMb0, 1);
  CHECK(is_sm({kMb0, 1}) == 1);
  CHECK(is_sm({kUpperSwitch, 0}) == 0);
  CHECK((managed.get({kUpperSwitch, 0}, 0x20).bytes[kData + 20] & 15) == 0);
}
