#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <string>

#include "test/mad_cc/sa/sa_client.h"

using namespace rocefs;
using mad::kGet;
using mad::kGetTable;
using wire::load16;
using wire::load32;
using wire::load64;

namespace {

std::string hex(const uint8_t* data, size_t size) {
  std::string text;
  for (size_t i = 0; i < size; ++i) text += fmt::format("{:02x}", data[i]);
  return text;
}
// Returns the data of the single record with this LID in its first two octets.
std::string record(SaClient& client, uint16_t attribute, uint16_t lid, size_t size) {
  mad::Mad request = SaClient::request(kGet, attribute, 1);
  wire::store16(&request.bytes[56], lid);
  mad::Mad answer = client.get(request);
  REQUIRE(answer.status() == mad::kOk);
  CHECK(load16(&answer.bytes[44]) == (size + 7) / 8);
  return hex(&answer.bytes[56], size);
}
size_t count(SaClient& client, const mad::Mad& request, size_t size) {
  auto data = client.table(request);
  REQUIRE(data.size() % size == 0);
  return data.size() / size;
}
std::string repeat(std::string_view text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

}  // namespace

TEST_CASE("sa records: NodeRecord has LID, NodeInfo and NodeDescription (15.2.5.2)") {
  SaClient client;
  CHECK(record(client, sa::kNodeRecord, 6, 108) ==
        "00060000"          // LID, reserved
        "01010102"          // versions, a channel adapter of 2 ports
        "0000000000005000"  // SystemImageGUID
        "0000000000005000"  // NodeGUID
        "0000000000005002"  // PortGUID
        "00014d42"
        "00000001"    // PartitionCap, DeviceID, Revision
        "0202004c"    // LocalPortNum, VendorID
        "63615f32" +  // ca_2
            repeat("00", 60));
  CHECK(record(client, sa::kNodeRecord, 1, 108) ==
        "00010000"
        "01010204"
        "0000000000001000"
        "0000000000001000"
        "0000000000001000"
        "00014d42"
        "00000001"
        "0002004c"
        "73775f30" +
            repeat("00", 60));
  CHECK(count(client, SaClient::request(kGetTable, sa::kNodeRecord), 112) == 6);
}

TEST_CASE("sa records: PortInfoRecord has LID, port and PortInfo (15.2.5.3)") {
  SaClient client;
  CHECK(record(client, sa::kPortInfoRecord, 3, 68) ==
        "00030100"          // LID, PortNum, Options
        "0000000000000000"  // M_Key
        "fe80000000000000"  // GidPrefix
        "00030001"          // LID, MasterSMLID
        "0001c800"
        "00000000"  // CapabilityMask, DiagCode, M_KeyLeasePeriod
        "01030302"  // LocalPortNum, widths: 1X or 4X, 4X
        "74520047"  // SDR to QDR, Active; LinkUp, Polling; LMC 0; QDR
        "50100000"
        "00050010"  // NeighborMTU 4096, VL 0; MTUCap, one VL
        "000000000000"
        "08121288"
        "0000"  // violations; GuidCap, time-outs, thresholds
        "00000000"
        "1c20"
        "2303");  // round trip; CapabilityMask2, EDR of FDR and EDR
  mad::Mad request = SaClient::request(kGet, sa::kPortInfoRecord, 3);
  wire::store16(&request.bytes[56], 1);
  request.bytes[58] = 4;  // the port of sw_0 without a cable
  mad::Mad answer = client.get(request);
  REQUIRE(answer.status() == mad::kOk);
  const uint8_t* info = &answer.bytes[60];
  CHECK(load16(info + 16) == 0);
  CHECK(info[28] == 4);
  CHECK((info[32] & 0xf) == 1);
  CHECK(info[33] >> 4 == 3);
  client.subnet.nodes[kCa0].ports[1].mtu = 1024;
  request.bytes[58] = 1;  // whose neighbour is ca_0
  answer = client.get(request);
  CHECK(answer.bytes[60 + 36] == 3 << 4);
  CHECK(answer.bytes[60 + 41] == 5);
  // Count: every port of the switches, and adapters' ports with a route.
  CHECK(count(client, SaClient::request(kGetTable, sa::kPortInfoRecord), 72) == 5 + 4 + 4);
}

TEST_CASE("sa records: the speed of a port is in the fields for that speed (14.2.5.6)") {
  struct {
    uint64_t mbps;
    int width, speed, supported, extended, extended_supported, extended2;
  } rows[] = {
      {2'500, 1, 1, 1, 0, 0, 0},   {10'000, 2, 1, 1, 0, 0, 0},   {20'000, 2, 2, 3, 0, 0, 0},
      {40'000, 2, 4, 7, 0, 0, 0},  {56'000, 2, 4, 7, 1, 1, 0},   {25'000, 1, 4, 7, 2, 3, 0},
      {200'000, 2, 4, 7, 4, 7, 0}, {400'000, 2, 4, 7, 8, 15, 0}, {800'000, 2, 4, 7, 8, 15, 1}};
  for (const auto& row : rows) {
    SaClient client;
    client.state.rates = {{{kCa0, 1}, row.mbps * 1'000'000}};
    mad::Mad request = SaClient::request(kGet, sa::kPortInfoRecord, 1);
    wire::store16(&request.bytes[56], 3);
    mad::Mad answer = client.get(request);
    const uint8_t* info = &answer.bytes[60];
    INFO(row.mbps);
    CHECK(info[31] == row.width);
    CHECK(info[30] == 2 * row.width - 1);
    CHECK(info[32] >> 4 == row.supported);
    CHECK(info[35] >> 4 == row.speed);
    CHECK((info[35] & 0xf) == row.supported);
    CHECK(info[62] >> 4 == row.extended);
    CHECK((info[62] & 0xf) == row.extended_supported);
    CHECK(info[63] == row.extended_supported);
    CHECK(info[56] == row.extended2 * 0b101001);
  }
}

TEST_CASE("sa records: the manager's port is found by its capability mask (15.2.5.3)") {
  SaClient client;
  mad::Mad request = SaClient::request(kGetTable, sa::kPortInfoRecord, 1 << 7);
  wire::store32(&request.bytes[80], 2);         // IsSM
  wire::store32(&request.bytes[20], 1u << 31);  // the bits must be there, others may
  auto data = client.table(request);
  REQUIRE(data.size() == 72);
  CHECK(load16(&data[0]) == 1);
  CHECK(data[2] == 0);
  wire::store32(&request.bytes[80], 0x400);  // IsSMdisabled
  CHECK(count(client, request, 72) == 0);
  // Equality without the modifier.
  wire::store32(&request.bytes[20], 0);
  wire::store32(&request.bytes[80], 2);
  CHECK(count(client, request, 72) == 0);
  wire::store32(&request.bytes[80], 0xc802);
  CHECK(count(client, request, 72) == 1);
}

TEST_CASE(
    "sa records: switches, forwarding tables, the manager, GUIDs and ClassPortInfo are served") {
  SaClient client;
  CHECK(record(client, sa::kSwitchInfoRecord, 2, 24) ==
        "00020000"
        "c000"
        "0000"
        "0400"
        "0006"  // LinearFDBCap, MulticastFDBCap, LinearFDBTop
        "00ffff90"
        "0000"
        "0000"
        "0000"
        "0000");
  CHECK(count(client, SaClient::request(kGetTable, sa::kSwitchInfoRecord), 24) == 2);
  CHECK(record(client, sa::kLinearForwardingTableRecord, 1, 72) ==
        "00010000"
        "00000000"
        "ff000301"
        "030203" +
            repeat("ff", 57));
  CHECK(record(client, sa::kSmInfoRecord, 1, 25) ==
        "00010000"
        "0000000000001000"
        "0000000000000000"
        "00000001"
        "03");
  CHECK(record(client, sa::kGuidInfoRecord, 6, 72) ==
        "00060000"
        "00000000"
        "0000000000005002" +
            repeat("00", 56));
  // ClassPortInfo (13.4.8.1).
  mad::Mad answer = client.get(SaClient::request(kGet, sa::kClassPortInfo));
  REQUIRE(answer.status() == mad::kOk);
  CHECK(hex(&answer.bytes[56], 72) ==
        "01022004"
        "00001012" +
            repeat("00", 64));
  client.administrator.configure({.delay_ns = 2 * kSecond});
  client.send(SaClient::request(kGet, sa::kClassPortInfo));
  client.run(2 * kSecond);
  CHECK(client.answers.back().mad.bytes[63] == 19);  // 4.096 us * 2^19 is 2.1 s
}

TEST_CASE("sa records: LinkRecord lists the cables that are up, from each end (15.2.5.13)") {
  SaClient client;
  auto data = client.table(SaClient::request(kGetTable, sa::kLinkRecord));
  CHECK(hex(data.data(), data.size()) ==
        "0001010100030000"
        "0001020100050000"
        "0001030300020000"
        "0002010100040000"
        "0002020200060000"
        "0002030300010000"
        "0003010100010000"
        "0004010100020000"
        "0005010200010000"
        "0006020200020000");
  mad::Mad request = SaClient::request(kGetTable, sa::kLinkRecord, 1 << 0 | 1 << 3);
  wire::store16(&request.bytes[56], 2);
  wire::store16(&request.bytes[60], 1);
  data = client.table(request);
  CHECK(hex(data.data(), data.size()) == "0002030300010000");
  client.state.down = {{kSw0, 2}};
  client.state.absent = {kCa1};
  data = client.table(SaClient::request(kGetTable, sa::kLinkRecord));
  CHECK(hex(data.data(), data.size()) ==
        "0001010100030000"
        "0001030300020000"
        "0002020200060000"
        "0002030300010000"
        "0003010100010000"
        "0006020200020000");
}

TEST_CASE("sa records: nodes behind a failed cable have no records") {
  SaClient client;
  mad::Mad all = SaClient::request(kGetTable, sa::kNodeRecord);
  client.state.down = {{kSw0, 3}};
  CHECK(count(client, all, 112) == 3);  // sw_0, ca_0, ca_2/1
  CHECK(count(client, SaClient::request(kGetTable, sa::kSwitchInfoRecord), 24) == 1);
  client.state.down.clear();
  client.state.absent = {kCa2};
  CHECK(count(client, all, 112) == 4);
  client.state.absent.clear();
  CHECK(count(client, all, 112) == 6);
}

TEST_CASE("sa records: every component of NodeRecord selects records") {
  SaClient client;
  mad::Mad record = SaClient::request(kGet, sa::kNodeRecord, 1);
  wire::store16(&record.bytes[56], 5);
  record = client.get(record);
  REQUIRE(record.status() == mad::kOk);
  // Records whose component equals that of port 1 of ca_2; reserved ones are not compared.
  const size_t same[] = {1, 6, 6, 6, 4, 2, 2, 2, 1, 6, 6, 6, 3, 6, 2};
  for (size_t bit = 0; bit < std::size(same); ++bit) {
    mad::Mad request = record;
    request.set_method(kGetTable);
    wire::store64(&request.bytes[48], uint64_t{1} << bit);
    INFO("bit " << bit);
    CHECK(count(client, request, 112) == same[bit]);
  }
}

TEST_CASE("sa records: components of PortInfoRecord select by their own bits") {
  SaClient client;
  client.state.rates = {{{kCa0, 1}, 10'000'000'000}};
  auto with = [&](unsigned bit, size_t octet, uint8_t value) {
    mad::Mad request = SaClient::request(kGetTable, sa::kPortInfoRecord, uint64_t{1} << bit);
    request.bytes[60 + octet] = value;
    return count(client, request, 72);
  };
  CHECK(with(10, 28, 1) == 2 + 3);     // LocalPortNum
  CHECK(with(14, 32, 0x1f) == 2 + 1);  // LinkSpeedSupported SDR: port 0, and ca_0
  CHECK(with(15, 32, 0xf1) == 1);      // PortState Down, whatever else is in the octet
  CHECK(with(16, 33, 0x50) == 12);     // PortPhysicalState LinkUp
  CHECK(with(20, 34, 0xf8) == 13);     // LMC 0
  CHECK(with(20, 34, 1) == 0);
  CHECK(with(45, 51, 0xf2) == 13);  // SubnetTimeOut, the last five bits
  CHECK(with(45, 51, 0xf3) == 0);
  CHECK(with(57, 63, 3) == 13 - 3);  // LinkSpeedExtEnabled
}

TEST_CASE("sa records: SLtoVLMappingTableRecord is of each pair of a switch's ports (15.2.5.5)") {
  SaClient client;
  // sw_0 has ports 0 to 4, sw_1 0 to 3, and there are four ports of channel adapters.
  CHECK(count(client, SaClient::request(kGetTable, sa::kSlToVlTableRecord), 16) == 25 + 16 + 4);
  mad::Mad one = SaClient::request(kGet, sa::kSlToVlTableRecord, 7);
  wire::store16(&one.bytes[56], 1);
  one.bytes[58] = 2;
  one.bytes[59] = 4;
  SubnetSettings::Octets written{};
  written[0] = 0x12;
  client.state.settings.write(kSw0, 0x17, 2 << 8 | 4, written);
  CHECK(hex(&client.get(one).bytes[56], 16) == "00010204000000001200000000000000");
}

TEST_CASE("sa records: P_KeyTableRecord is the default partition of each end (15.2.5.11)") {
  SaClient client;
  CHECK(count(client, SaClient::request(kGetTable, sa::kPKeyTableRecord), 72) == 6);
  CHECK(record(client, sa::kPKeyTableRecord, 6, 72) == "0006000002000000ffff" + repeat("0000", 31));
}

TEST_CASE(
    "sa records: there is a MulticastForwardingTableRecord of each written block (15.2.5.8)") {
  SaClient client;
  mad::Mad all = SaClient::request(kGetTable, sa::kMulticastForwardingTableRecord);
  CHECK(count(client, all, 72) == 0);
  SubnetSettings::Octets written{};
  written[1] = 6;
  client.state.settings.write(kSw1, 0x1b, 31, written);
  CHECK(count(client, all, 72) == 1);
  CHECK(record(client, sa::kMulticastForwardingTableRecord, 2, 72) ==
        "0002001f000000000006" + repeat("0000", 31));
  mad::Mad other = SaClient::request(kGet, sa::kMulticastForwardingTableRecord, 1 << 3);
  wire::store16(&other.bytes[58], 0x100 | 31);  // a block of nine bits
  CHECK(client.status(other) == mad::kSaNoRecords);
}

TEST_CASE("sa records: LinearForwardingTableRecord shows the table that a manager has written") {
  SaClient client;
  SubnetSettings::Octets written{};
  written[5] = 9;
  client.state.settings.write(kSw1, 0x19, 0, written);
  CHECK(record(client, sa::kLinearForwardingTableRecord, 2, 72) ==
        "00020000000000000000000000090000" + repeat("0000", 28));
}

TEST_CASE("sa records: VLArbitrationTableRecord is empty: ports have one VL (15.2.5.9)") {
  SaClient client;
  CHECK(count(client, SaClient::request(kGetTable, sa::kVlArbitrationTableRecord), 72) == 0);
}
