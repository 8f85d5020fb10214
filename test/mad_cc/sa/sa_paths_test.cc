#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "mad_cc/net/attributes.h"
#include "mad_cc/sa/sa_paths.h"
#include "test/mad_cc/sa/sa_client.h"

using namespace rocefs;
using mad::kGet;
using mad::kGetTable;
using wire::load16;
using wire::load64;

namespace {

constexpr uint64_t kDgid = 1 << 2, kSgid = 1 << 3, kDlid = 1 << 4, kSlid = 1 << 5,
                   kNumbPath = 1 << 12, kMtu = 3 << 16, kRate = 3 << 18, kLifetime = 3 << 20;

struct Ask {
  mad::Mad mad;
  Ask(uint8_t method, uint64_t mask) : mad(SaClient::request(method, sa::kPathRecord, mask)) {}
  Ask& gids(uint64_t source, uint64_t destination) {
    wire::store64(&mad.bytes[56 + 8], kSubnetPrefix);
    wire::store64(&mad.bytes[56 + 16], destination);
    wire::store64(&mad.bytes[56 + 24], kSubnetPrefix);
    wire::store64(&mad.bytes[56 + 32], source);
    return *this;
  }
  Ask& lids(uint16_t source, uint16_t destination) {
    wire::store16(&mad.bytes[56 + 40], destination);
    wire::store16(&mad.bytes[56 + 42], source);
    return *this;
  }
  Ask& octet(size_t at, uint8_t value) {
    mad.bytes[56 + at] = value;
    return *this;
  }
};
size_t count(SaClient& client, const Ask& ask) {
  return client.table(ask.mad).size() / 64;
}

}  // namespace

TEST_CASE("sa paths: a path by GIDs has what a verbs program needs (15.2.5.16)") {
  SaClient client;
  client.state.rates = {{{kSw0, 3}, 25'000'000'000}};
  client.subnet.nodes[kCa1].ports[1].mtu = 2048;
  mad::Mad answer =
      client.get(Ask(kGet, kDgid | kSgid | kNumbPath).gids(0x3001, 0x4001).octet(49, 0x81).mad);
  REQUIRE(answer.status() == mad::kOk);
  CHECK(answer.method() == mad::kGetResp);
  CHECK(load16(&answer.bytes[44]) == 8);
  std::string text;
  for (size_t i = 56; i < 120; ++i) text += fmt::format("{:02x}", answer.bytes[i]);
  CHECK(text ==
        "0000000000000000"
        "fe800000000000000000000000004001"
        "fe800000000000000000000000003001"
        "0004"
        "0003"
        "00000000"  // no router on the way: hop limit 0
        "00"
        "80"  // reversible
        "ffff"
        "0000"
        "84"  // exactly: 2048,
        "8f"  // 25 Gb/s,
        "92"  // 4.096 us * 2^18
        "00"
        "000000000000");
  // Reverse direction: every cable is 4X EDR.
  answer = client.get(Ask(kGet, kDgid | kSgid).gids(0x4001, 0x3001).mad);
  CHECK(answer.bytes[56 + 55] == 0x90);
}

TEST_CASE("sa paths: LIDs and GIDs select paths, and omitted components match all") {
  SaClient client;
  CHECK(count(client, Ask(kGetTable, 0)) == 36);
  CHECK(count(client, Ask(kGetTable, kSgid).gids(0x3001, 0)) == 6);
  CHECK(count(client, Ask(kGetTable, kSlid | kDlid | kNumbPath).lids(3, 6).octet(49, 0x7f)) == 1);
  CHECK(count(client, Ask(kGetTable, kSlid | kSgid).gids(0x3001, 0).lids(4, 0)) == 0);
  CHECK(count(client, Ask(kGetTable, kDlid).lids(0, 99)) == 0);
  client.state.down = {{kSw0, 3}};
  CHECK(count(client, Ask(kGetTable, 0)) == 9);
  CHECK(count(client, Ask(kGetTable, kDgid).gids(0, 0x4001)) == 0);
  CHECK(client.status(Ask(kGet, kSgid | kDgid).gids(0x3001, 0x4001).mad) == mad::kSaNoRecords);
}

TEST_CASE("sa paths: an invalid request is answered with the matching status (15.2.2)") {
  SaClient client;
  CHECK(client.status(Ask(kGet, kSgid | kDgid).gids(0x3001, 0x9999).mad) == mad::kSaBadGid);
  CHECK(client.status(Ask(kGetTable, kDgid).gids(0, 0x9999).mad) == mad::kSaBadGid);
  Ask foreign = Ask(kGet, kSgid | kDgid).gids(0x3001, 0x4001);
  foreign.octet(8, 0xff);
  CHECK(client.status(foreign.mad) == mad::kSaBadGid);
  CHECK(client.status(Ask(kGet, kSlid).lids(3, 0).mad) == mad::kSaInsufficientComponents);
  CHECK(client.status(Ask(kGet, kDlid).lids(0, 3).mad) == mad::kSaInsufficientComponents);
  CHECK(client.status(Ask(kGet, kSlid | kDlid | kNumbPath).lids(3, 4).mad) ==
        mad::kSaRequestInvalid);
  CHECK(client.status(Ask(kGet, kSlid | kDlid).lids(3, 99).mad) == mad::kSaNoRecords);
}

TEST_CASE("sa paths: selectors compare values, not their codes (15.2.5.16)") {
  SaClient client;
  client.state.rates = {{{kCa0, 1}, 14'000'000'000}};  // code 11; 20 Gb/s is code 6
  struct {
    uint64_t mask;
    size_t octet;
    uint8_t value;
    size_t found;
  } rows[] = {
      {kRate, 55, 0 << 6 | 3, 1},
      {kRate, 55, 0 << 6 | 11, 0},
      {kRate, 55, 1 << 6 | 6, 1},
      {kRate, 55, 1 << 6 | 11, 0},
      {kRate, 55, 2 << 6 | 11, 1},
      {kRate, 55, 2 << 6 | 6, 0},
      {kRate, 55, 3 << 6, 1},
      {kMtu, 54, 0 << 6 | 4, 1},
      {kMtu, 54, 0 << 6 | 5, 0},
      {kMtu, 54, 1 << 6 | 5, 0},
      {kMtu, 54, 2 << 6 | 5, 1},
      {kMtu, 54, 3 << 6 | 1, 1},
      {kLifetime, 56, 1 << 6 | 19, 1},
      {kLifetime, 56, 1 << 6 | 18, 0},
      {kLifetime, 56, 3 << 6, 1},
      {1 << 19, 55, 11, 1},
      {1 << 19, 55, 6, 0},
  };
  for (const auto& row : rows) {
    INFO(fmt::format("mask {:x} value {:x}", row.mask, row.value));
    Ask ask = Ask(kGetTable, kSlid | kDlid | row.mask).lids(3, 4).octet(row.octet, row.value);
    CHECK(count(client, ask) == row.found);
  }
}

TEST_CASE(
    "sa paths: other components match the constants of a path, or are returned as requested") {
  SaClient client;
  auto with = [&](unsigned bit, size_t octet, uint8_t value) {
    return count(client,
                 Ask(kGetTable, kSlid | kDlid | uint64_t{1} << bit).lids(3, 4).octet(octet, value));
  };
  CHECK(with(6, 44, 0x80) == 0);  // raw traffic
  CHECK(with(6, 44, 0) == 1);
  CHECK(with(9, 47, 1) == 0);  // hop limit
  CHECK(with(11, 49, 0x80) == 1);
  CHECK(with(11, 49, 0) == 1);
  CHECK(with(13, 50, 0x80) == 0);  // pkey 0x8000
  CHECK(with(15, 53, 1) == 0);     // SL
  CHECK(with(15, 53, 0) == 1);
  CHECK(with(22, 57, 1) == 0);  // preference
  Ask partial = Ask(kGetTable, kSlid | kDlid | 1 << 13).lids(3, 4).octet(50, 0x7f).octet(51, 0xff);
  CHECK(count(client, partial) == 1);
  // Query of rdma_cm.
  uint64_t mask = kSgid | kDgid | kNumbPath | 1 << 0 | 1 << 8 | 1 << 10 | 1 << 11 | 1 << 14;
  Ask ask = Ask(kGet, mask).gids(0x3001, 0x4001).octet(7, 0x77).octet(49, 0x81);
  ask.octet(45, 0x12).octet(46, 0x34).octet(48, 0x56).octet(52, 0x12).octet(53, 0x30);
  mad::Mad answer = client.get(ask.mad);
  REQUIRE(answer.status() == mad::kOk);
  CHECK(load64(&answer.bytes[56]) == 0x77);
  CHECK(wire::load32(&answer.bytes[56 + 44]) == 0x123400);
  CHECK(answer.bytes[56 + 48] == 0x56);
  CHECK(load16(&answer.bytes[56 + 52]) == 0x1230);
}

TEST_CASE("sa paths: the codes of rates and MTUs are the standard's (15.2.5.16)") {
  const std::pair<uint64_t, int> rates[] = {
      {1, 2},        {2'500, 2},    {5'000, 5},    {10'000, 3},   {14'000, 11},
      {20'000, 6},   {25'000, 15},  {40'000, 7},   {50'000, 20},  {56'000, 12},
      {100'000, 16}, {200'000, 17}, {400'000, 21}, {800'000, 23}, {900'000, 23}};
  for (auto [mbps, code] : rates) {
    CHECK(mad::rate_code(mbps * 1'000'000) == code);
  }
  CHECK(mad::rate_mbps(10) == 120'000);
  CHECK(mad::rate_mbps(63) == 0);
  for (int code = 1; code <= 5; ++code)
    CHECK(mad::mtu_code(static_cast<uint16_t>(128 << code)) == code);
}
