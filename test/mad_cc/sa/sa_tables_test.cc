#include <catch2/catch.hpp>
#include <ctime>

#include "mad_cc/sa/sa_query.h"
#include "mad_cc/sa/sa_transfer.h"
#include "test/mad_cc/sa/sa_client.h"

using namespace rocefs;
using mad::kGetTable;

namespace {

const mad::Mad kNodes = SaClient::request(kGetTable, sa::kNodeRecord);
const mad::Mad kPaths = SaClient::request(kGetTable, sa::kPathRecord);

// Subnet of `count` adapters on one switch: `count` + 1 ends.
Subnet star(size_t count) {
  Subnet subnet;
  subnet.nodes.resize(count + 1);
  for (size_t i = 0; i <= count; ++i) {
    SubnetNode& node = subnet.nodes[i];
    node.is_switch = i == 0;
    node.guid = 0x10000 * (i + 1);
    node.ports.resize(i == 0 ? count + 1 : 2);
    uint8_t end = i == 0 ? 0 : 1;
    node.ports[end].member = true;
    node.ports[end].lid = static_cast<uint16_t>(i + 1);
    node.ports[end].guid = node.guid + end;
    subnet.by_lid.push_back({i, end});
    if (i == 0) continue;
    node.ports[1].peer = 0;
    node.ports[1].peer_port = static_cast<uint8_t>(i);
    subnet.nodes[0].ports[i].peer = i;
    subnet.nodes[0].ports[i].peer_port = 1;
  }
  return subnet;
}

}  // namespace

TEST_CASE("sa tables: an empty table is one segment without data") {
  SaClient client;
  CHECK(client.table(SaClient::request(kGetTable, sa::kServiceRecord)).empty());
  CHECK(client.segments == 1);
  CHECK(client.last.method() == mad::kGetTableResp);
  CHECK(client.last.status() == mad::kOk);
  CHECK(client.last.rmpp_flags() == (mad::kRmppActive | mad::kRmppFirst | mad::kRmppLast));
  CHECK(client.last.rmpp_length() == 20);
  CHECK(wire::load16(&client.last.bytes[44]) == 0);
  CHECK(client.administrator.pending() == 0);
}

TEST_CASE("sa tables: records continue across segments") {
  SaClient client;
  mad::Mad one = SaClient::request(kGetTable, sa::kNodeRecord, 1);
  wire::store16(&one.bytes[56], 4);
  CHECK(client.table(one).size() == 112);
  CHECK(client.segments == 1);
  mad::Mad four = SaClient::request(kGetTable, sa::kNodeRecord, 1 << 4);
  four.bytes[62] = 1;
  auto data = client.table(four);
  REQUIRE(data.size() == 4 * 112);
  CHECK(client.segments == 3);
  CHECK(client.last.rmpp_length() == 4 * 112 - 400 + 20);
  CHECK(wire::load16(&client.last.bytes[44]) == 14);
  for (size_t i = 0; i < 4; ++i) CHECK(wire::load16(&data[i * 112]) == 3 + i);
  CHECK(client.table(kPaths).size() == 36 * 64);
  CHECK(client.segments == 12);
  CHECK(client.administrator.pending() == 0);
}

TEST_CASE("sa tables: lost segments are retransmitted") {
  SaClient client;
  auto whole = client.table(kPaths);
  CHECK(client.transmissions == 12);
  auto data = client.table(kPaths, [](size_t n) { return n % 3 == 1; });
  CHECK(data == whole);
  CHECK(client.transmissions > 12);
  CHECK(client.administrator.pending() == 0);
}

TEST_CASE("sa tables: a client that never acknowledges is aborted after three retries") {
  SaClient client;
  client.send(kNodes);
  client.run();
  REQUIRE(client.answers.size() == 1);
  CHECK(client.administrator.pending() == 1);
  client.run(7 * kSecond);
  CHECK(client.administrator.pending() == 1);
  client.run(kSecond);
  CHECK(client.administrator.pending() == 0);
  REQUIRE(client.answers.size() == 5);  // three retries, and the ABORT
  CHECK(client.answers.back().mad.rmpp_type() == mad::kRmppAbort);
  CHECK(client.answers.back().mad.rmpp_status() == mad::kRmppTooManyRetries);
}

TEST_CASE("sa tables: a client that acknowledges too slowly is aborted after the total time") {
  SaClient client(1, star(100));
  client.send(kPaths);
  client.run();
  TimeNs began = client.scheduler.now();
  while (client.answers.back().mad.rmpp_type() == mad::kRmppData) {
    client.acknowledge(client.answers.back(), client.answers.back().mad.rmpp_segment() + 1);
    client.run(1900 * kMillisecond);
  }
  CHECK(client.answers.back().mad.rmpp_status() == mad::kRmppTotalTimeTooLong);
  CHECK(client.answers.back().at == began + sa::Transfer::kMaxDuration);
  CHECK(client.administrator.pending() == 0);
}

TEST_CASE("sa tables: STOP and ABORT end a transfer, and an invalid ACK aborts it") {
  for (auto [type, status, answer] :
       {std::tuple{mad::kRmppStop, 1, -1}, {mad::kRmppAbort, 127, -1}, {mad::kRmppAck, 9, 124}}) {
    SaClient client;
    client.send(kPaths);
    client.run();
    mad::Mad mad = client.answers.back().mad;
    mad.set_method(kGetTable);
    mad.set_rmpp(type, mad::kRmppActive, static_cast<uint8_t>(status), 1, 1);
    client.answers.clear();
    // ACKs of another client do not count.
    mad::Address other = client.from;
    other.lid = 4;
    client.administrator.receive(other, mad);
    client.run();
    CHECK(client.administrator.pending() == 1);
    client.answers.clear();
    client.administrator.receive(client.from, mad);
    client.run();
    CHECK(client.administrator.pending() == 0);
    CHECK(client.answers.size() == (answer < 0 ? 0 : 1));
    if (answer >= 0) CHECK(client.answers[0].mad.rmpp_status() == answer);
  }
}

TEST_CASE("sa tables: a window as wide as the table is sent in several events") {
  SaClient client(1, star(100));
  client.send(kPaths);
  client.run();
  client.acknowledge(client.answers.back(), UINT32_MAX);
  client.answers.clear();
  REQUIRE(client.scheduler.run_one(client.scheduler.now()));
  CHECK(client.answers.size() == sa::Transfer::kBurst);
  client.run();
  CHECK(client.answers.size() == (101 * 101 * 64 + 199) / 200 - 1);
}

TEST_CASE("sa tables: the paths of 254 ends are computed in events of at most 3 ms") {
  SaClient client(1, star(253));
  client.send(kPaths);
  double longest = 0;
  while (client.answers.empty()) {
    clock_t begin = clock();  // of the CPU: the machine may be busy with others
    REQUIRE(client.scheduler.run_one(client.scheduler.now()));
    longest = std::max(longest, static_cast<double>(clock() - begin) / CLOCKS_PER_SEC);
  }
  CHECK(longest < 0.003);  // as built for tests, maybe with sanitizers
  CHECK(client.answers[0].mad.rmpp_length() == 254 * 254 * 64 + 20 * 20646);
}

TEST_CASE("sa tables: others get tables while one client leaves all of its own unacknowledged") {
  SaClient client(1, star(253));
  constexpr size_t kOne = 254 * 254 * 64 + 56;
  size_t tables = 0, refused = 0;
  for (int i = 0; i < 20; ++i) {
    client.answers.clear();
    client.send(kPaths, 3);
    client.run();
    REQUIRE(client.answers.size() == 1);
    bool given = client.answers[0].mad.status() == mad::kOk;
    (given ? tables : refused) += 1;
    if (!given) CHECK(client.answers[0].mad.status() == mad::kSaNoResources);
  }
  CHECK(tables == SubnetAdministrator::kMaxTableOctets / 2 / kOne);
  CHECK(refused == 20 - tables);
  for (uint16_t lid : {4, 5}) {
    client.answers.clear();
    client.send(kPaths, lid);
    client.run();
    CHECK(client.answers[0].mad.status() == mad::kOk);
  }
  CHECK(client.table(kNodes, nullptr, 6).size() == 254 * 112);
  client.run(10 * kSecond);
  CHECK(client.administrator.pending() == 0);
  client.answers.clear();
  client.send(kPaths, 3);
  client.run();
  CHECK(client.answers[0].mad.status() == mad::kOk);
}

TEST_CASE("sa tables: a request behind a large table is answered at the same time") {
  SaClient client(1, star(253));
  uint64_t large = client.send(kPaths);
  uint64_t small = client.send(SaClient::request(mad::kGet, sa::kClassPortInfo), 4);
  client.run();
  REQUIRE(client.answers.size() == 2);
  CHECK(client.answers[0].at == 0);
  CHECK(client.answers[1].at == 0);
  CHECK(client.answers[0].mad.tid() + client.answers[1].mad.tid() == large + small);
}
