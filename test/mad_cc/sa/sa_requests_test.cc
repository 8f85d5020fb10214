#include <catch2/catch.hpp>

#include "mad_cc/sa/sa_query.h"
#include "test/mad_cc/sa/sa_client.h"

using namespace rocefs;
using mad::kGet;
using mad::kGetTable;

namespace {

const mad::Mad kInfo = SaClient::request(kGet, sa::kClassPortInfo);

}  // namespace

TEST_CASE("sa requests: an unsupported request is answered with the status of 13.4.7 or 15.2.2") {
  struct {
    uint8_t method;
    uint16_t attribute;
    uint16_t status;
    uint8_t answer;
  } rows[] = {
      {mad::kGet, 0x0002, mad::kBadMethodAttribute, mad::kGetResp},
      {mad::kGet, 0xffff, mad::kBadMethodAttribute, mad::kGetResp},
      {mad::kGetTable, 0x0022, mad::kBadMethodAttribute, mad::kGetTableResp},
      {mad::kGetTable, sa::kClassPortInfo, mad::kBadMethodAttribute, mad::kGetTableResp},
      {mad::kGet, sa::kInformInfo, mad::kBadMethodAttribute, mad::kGetResp},
      {mad::kSet, sa::kClassPortInfo, mad::kBadMethodAttribute, mad::kGetResp},
      {mad::kSet, sa::kNodeRecord, mad::kBadMethodAttribute, mad::kGetResp},
      {mad::kSet, sa::kInformInfo, sa::kRequestDenied, mad::kGetResp},
      {mad::kSet, sa::kServiceRecord, sa::kRequestDenied, mad::kGetResp},
      {mad::kSet, sa::kMcMemberRecord, sa::kRequestDenied, mad::kGetResp},
      {mad::kDelete, sa::kServiceRecord, sa::kRequestDenied, mad::kDeleteResp},
      {mad::kDelete, sa::kMcMemberRecord, sa::kRequestDenied, mad::kDeleteResp},
      {mad::kDelete, sa::kPathRecord, mad::kBadMethodAttribute, mad::kDeleteResp},
      {mad::kGetMulti, 0x003a, mad::kBadMethod, 0x94},
      {mad::kGetTraceTable, 0x0039, mad::kBadMethod, mad::kGetTableResp},
      {0x00, sa::kNodeRecord, mad::kBadMethod, 0x80},
      {0x7f, sa::kNodeRecord, mad::kBadMethod, 0xff},
      {mad::kGet, sa::kServiceRecord, mad::kSaNoRecords, mad::kGetResp},
      {mad::kGet, sa::kMcMemberRecord, mad::kSaNoRecords, mad::kGetResp},
      {mad::kGet, sa::kInformInfoRecord, mad::kSaNoRecords, mad::kGetResp},
      {mad::kGet, sa::kNodeRecord, mad::kSaTooManyRecords, mad::kGetResp},
      {mad::kGet, sa::kSmInfoRecord, mad::kOk, mad::kGetResp},
  };
  SaClient client;
  for (const auto& row : rows) {
    INFO(int{row.method} << " " << row.attribute);
    mad::Mad answer = client.get(SaClient::request(row.method, row.attribute));
    CHECK(answer.status() == row.status);
    CHECK(answer.method() == row.answer);
    CHECK(answer.attribute() == row.attribute);
    CHECK(answer.tid() == client.last_tid);
    CHECK_FALSE(answer.rmpp_active());
    CHECK(client.administrator.pending() == 0);
  }
}

TEST_CASE("sa requests: wrong versions and keys, and other methods, are refused or dropped") {
  SaClient client;
  mad::Mad mad = kInfo;
  mad.bytes[2] = 1;
  CHECK(client.status(mad) == mad::kBadVersion);
  auto heard = [&](const mad::Mad& request) {
    client.answers.clear();
    client.send(request);
    client.run();
    return client.answers.size();
  };
  CHECK(heard(kInfo) == 1);
  mad = kInfo;
  mad.bytes[0] = 2;
  CHECK(heard(mad) == 0);
  mad = kInfo;
  mad.bytes[1] = mad::kPerf;
  CHECK(heard(mad) == 0);
  mad = kInfo;
  wire::store64(&mad.bytes[36], 1);
  CHECK(heard(mad) == 1);
  CHECK(wire::load64(&client.answers[0].mad.bytes[36]) == 0);
  wire::store64(&mad.bytes[36], 2);
  CHECK(heard(mad) == 0);
  for (uint8_t method : {mad::kSend, mad::kTrap, mad::kTrapRepress, mad::kGetResp, mad::kReportResp,
                         mad::kGetTableResp}) {
    CHECK(heard(SaClient::request(method, sa::kNodeRecord)) == 0);
  }
}

TEST_CASE("sa requests: an answer goes to the address of its request") {
  SaClient client;
  client.from = {0, 0x123, 0x80010000, 3, 0, 1};
  client.send(kInfo, 5);
  client.run();
  REQUIRE(client.answers.size() == 1);
  CHECK(client.answers[0].to == mad::Address{5, 0x123, mad::kQkey, 3, 0, 1});
}

TEST_CASE("sa requests: each request is answered after the delay, in order") {
  SaClient client;
  client.administrator.configure({.delay_ns = 100 * kMillisecond});
  client.send(kInfo);
  client.run(30 * kMillisecond);
  client.send(kInfo);
  CHECK(client.administrator.pending() == 2);
  client.run(100 * kMillisecond);
  REQUIRE(client.answers.size() == 2);
  CHECK(client.answers[0].at == 100 * kMillisecond);
  CHECK(client.answers[1].at == 130 * kMillisecond);
  CHECK(client.administrator.pending() == 0);
  // New delay for waiting requests too.
  client.answers.clear();
  client.send(kInfo);
  client.run(10 * kMillisecond);
  client.send(kInfo);
  client.administrator.configure({.delay_ns = 20 * kMillisecond});
  client.run(5 * kMillisecond);
  client.administrator.configure({.delay_ns = kMillisecond});
  client.run(kMillisecond);
  REQUIRE(client.answers.size() == 2);
  CHECK(client.answers[0].mad.tid() == client.last_tid - 1);
  CHECK(client.answers[0].at == 145 * kMillisecond);
  CHECK(client.answers[1].at == 145 * kMillisecond);
}

TEST_CASE("sa requests: loss and busy answers depend on the seed alone") {
  auto run = [](uint64_t seed, const SaSettings& settings) {
    SaClient client(seed);
    client.administrator.configure(settings);
    for (int i = 0; i < 1000; ++i) {
      client.send(kInfo);
      client.run(1);
    }
    std::vector<uint64_t> tids;
    for (const auto& answer : client.answers) {
      if (answer.mad.status() == mad::kOk) tids.push_back(answer.mad.tid());
    }
    return tids;
  };
  auto lossy = run(1, {.loss = 0.3});
  CHECK(lossy.size() > 650);
  CHECK(lossy.size() < 750);
  CHECK(lossy == run(1, {.loss = 0.3}));
  CHECK(lossy != run(2, {.loss = 0.3}));
  auto busy = run(1, {.busy = 0.3});
  CHECK(busy.size() > 650);
  CHECK(busy.size() < 750);
  CHECK(run(1, {.loss = 1}).empty());
  CHECK(run(1, {}).size() == 1000);

  SaClient client;
  client.administrator.configure({.busy = 1});
  CHECK(client.status(kInfo) == mad::kBusy);
  CHECK(client.status(SaClient::request(kGetTable, sa::kNodeRecord)) == mad::kBusy);
}

TEST_CASE("sa requests: a retry of a pending request is not another request") {
  SaClient client;
  client.administrator.configure({.delay_ns = kMillisecond});
  mad::Mad mad = kInfo;
  mad.set_tid(7);
  client.administrator.receive(client.from, mad);
  client.administrator.receive(client.from, mad);
  CHECK(client.administrator.pending() == 1);
  mad::Address other = client.from;
  other.qpn = 9;
  client.administrator.receive(other, mad);
  CHECK(client.administrator.pending() == 2);
  client.run(kMillisecond);
  CHECK(client.answers.size() == 2);
  // Reuse of the TID after the end.
  client.administrator.receive(client.from, mad);
  client.run(kMillisecond);
  CHECK(client.answers.size() == 3);
}

TEST_CASE("sa requests: one client gets half of the places, and the next ones half of the rest") {
  SaClient client;
  constexpr size_t kAll = SubnetAdministrator::kMaxRequests;
  client.administrator.configure({.delay_ns = kMillisecond});
  auto flood = [&](uint16_t lid) {
    size_t before = client.administrator.pending();
    for (size_t i = 0; i < kAll; ++i) client.send(kInfo, lid);
    return client.administrator.pending() - before;
  };
  CHECK(flood(3) == kAll / 2);
  CHECK(client.answers.size() == kAll / 2);
  CHECK(client.answers.back().mad.status() == mad::kBusy);
  CHECK(client.answers.back().mad.method() == mad::kGetResp);
  CHECK(client.answers.back().to.lid == 3);
  CHECK(client.answers.back().at == 0);
  CHECK(flood(4) == kAll / 4);
  CHECK(flood(5) == kAll / 8);
  CHECK(client.administrator.pending() <= kAll);
  client.answers.clear();
  client.run(kMillisecond);
  CHECK(client.answers.size() == kAll / 2 + kAll / 4 + kAll / 8);
  CHECK(client.administrator.pending() == 0);
  CHECK(flood(3) == kAll / 2);
}

TEST_CASE("sa requests: a reset drops pending requests and restarts the random numbers") {
  SaClient client;
  auto draw = [&] {
    client.administrator.configure({.loss = 0.5});
    std::string heard;
    for (int i = 0; i < 64; ++i) {
      client.answers.clear();
      client.send(kInfo);
      client.run();
      heard += client.answers.empty() ? '.' : 'x';
    }
    return heard;
  };
  std::string first = draw();
  CHECK(draw() != first);
  client.administrator.configure({.delay_ns = kSecond});
  client.send(kInfo);
  client.send(SaClient::request(kGetTable, sa::kNodeRecord));
  client.administrator.reset();
  CHECK(client.administrator.pending() == 0);
  client.answers.clear();
  client.run(10 * kSecond);
  CHECK(client.answers.empty());
  CHECK(draw() == first);
}

TEST_CASE("sa requests: invalid RMPP is answered by the ABORT of 13.6.2") {
  SaClient client;
  auto answer = [&](uint8_t method, uint8_t version, uint8_t type, uint8_t flags, uint8_t status,
                    uint32_t segment) {
    mad::Mad mad = SaClient::request(method, 0x003a);
    mad.set_rmpp(type, flags, status, segment, 0);
    mad.bytes[24] = version;
    client.answers.clear();
    client.send(mad);
    client.run();
    if (client.answers.empty()) return -1;
    const mad::Mad& back = client.answers[0].mad;
    if (!back.rmpp_active()) return 1000 + back.status();
    CHECK(back.rmpp_type() == mad::kRmppAbort);
    CHECK(back.tid() == client.last_tid);
    return int{back.rmpp_status()};
  };
  using namespace mad;
  constexpr uint8_t kWhole = kRmppActive | kRmppFirst | kRmppLast;
  CHECK(answer(kGetMulti, 2, kRmppData, kWhole, 0, 1) == kRmppUnsupportedVersion);
  CHECK(answer(kGetMulti, 1, 0, kRmppActive, 0, 0) == kRmppBadType);
  CHECK(answer(kGetMulti, 1, 5, kRmppActive, 0, 0) == kRmppBadType);
  CHECK(answer(kGetMulti, 1, kRmppData, kRmppActive, 0, 1) == kRmppBadSegment);
  CHECK(answer(kGetMulti, 1, kRmppData, kWhole, 0, 2) == kRmppBadSegment);
  CHECK(answer(kGetTable, 1, kRmppData, kWhole, 0, 1) == kRmppUnspecified);
  CHECK(answer(kGetMulti, 1, kRmppData, kWhole, 0, 1) == 1000 + kBadMethod);
  CHECK(answer(kGetMulti, 1, kRmppData, kRmppActive, 0, 2) == -1);
  CHECK(answer(kGetTable, 1, kRmppAck, kRmppActive, 0, 1) == -1);
  CHECK(answer(kGetTable, 1, kRmppStop, kRmppActive, 77, 0) == -1);
  CHECK(answer(kGetTable, 9, kRmppAbort, kRmppActive, 0, 0) == -1);
  CHECK(client.administrator.pending() == 0);
}
