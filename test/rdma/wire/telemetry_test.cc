// Options of data packets: octets as documented, and octets of any other kind.
#include "rdma/wire/telemetry.h"

#include <catch2/catch.hpp>
#include <vector>

#include "core/base/rng.h"

using namespace rocefs;
using wire::Telemetry;

TEST_CASE("telemetry: options have the octets that the header documents") {
  std::vector<uint8_t> bytes(wire::kOptionsLen + 2 * wire::kHopLen, 0xee);
  Telemetry options(bytes);
  CHECK(!options.valid());
  options.begin(0x01020304);
  options.stamp({.queue = 4096 + 15,
                 .sent = (uint64_t{1} << 30) + 640,
                 .time_ns = 0x12345678,
                 .rate_bps = 25'000'000'000,
                 .port = 0x1234});
  CHECK(options.valid());
  const std::vector<uint8_t> expected{
      0, 0, 127, 38, 0x52, 0x46, 0,    0x12, 1,    2, 3,    4,    0, 0x12, 0x34, 0,  //
      0, 1, 0,   0,  0,    10,   0x34, 0x56, 0x78, 0, 0x61, 0xa8,                    //
      0, 0, 0,   0,  0,    0,    0,    0,    0,    0, 0,    0};
  CHECK(bytes == expected);
  CHECK(options.hop(0).queue * Telemetry::kQueueUnit == 4096);
  CHECK(options.hop(0).sent * Telemetry::kSentUnit == 640);
  CHECK(options.hop(0).rate == 25'000);
}

TEST_CASE("telemetry: hops end where the room does, and values are clipped") {
  std::vector<uint8_t> bytes(wire::kOptionsLen + wire::kHopLen);
  Telemetry options(bytes);
  options.begin(0);
  options.stamp({.queue = ~uint64_t{0}, .sent = 0, .time_ns = 0, .rate_bps = ~uint64_t{0}});
  options.stamp({.queue = 16, .sent = 0, .time_ns = 0, .rate_bps = 0});
  CHECK(options.hops() == 1);
  CHECK(options.missed() == 1);
  CHECK(options.valid());
  CHECK(options.hop(0).queue == 0xffffff);
  CHECK(options.hop(0).rate == 0xffffff);
}

TEST_CASE("telemetry: switches behind the room are counted, up to 255, where there was any room") {
  for (size_t room : {0, 1, 5}) {
    std::vector<uint8_t> bytes(wire::kOptionsLen + room * wire::kHopLen);
    Telemetry options(bytes);
    options.begin(0);
    for (size_t i = 0; i < room + 300; ++i) {
      CHECK(options.hops() == std::min(i, room));
      CHECK(options.missed() == (room == 0 || i < room ? 0 : std::min<size_t>(i - room, 255)));
      options.stamp({.queue = 16, .sent = 0, .time_ns = 0, .rate_bps = 0, .port = 1});
    }
    CHECK(options.valid());
    CHECK(options.way() == room % 2);  // of the stamped hops
  }
}

TEST_CASE("telemetry: an answer keeps the time stamp, tells marks, and takes no hop") {
  std::vector<uint8_t> bytes(wire::kMaxOptionsLen);
  Telemetry options(bytes);
  options.begin(77);
  options.stamp({.queue = 160, .sent = 0, .time_ns = 0, .rate_bps = 0});
  options.make_answer(300);
  options.stamp({.queue = 320, .sent = 0, .time_ns = 0, .rate_bps = 0});
  CHECK(options.valid());
  CHECK(options.is_answer());
  CHECK(options.timestamp() == 77);
  CHECK(options.marked() == 255);
  CHECK(options.hops() == 1);
}

TEST_CASE("telemetry: octets of any kind are no reason to write outside") {
  Rng rng(3, "telemetry");
  size_t valid = 0;
  for (int round = 0; round < 200'000; ++round) {
    std::vector<uint8_t> bytes(rng.below(wire::kMaxOptionsLen + 1));
    if (bytes.size() >= wire::kOptionsLen) Telemetry(bytes).begin(0);
    for (size_t flips = rng.below(3); flips > 0 && !bytes.empty(); --flips) {
      bytes[rng.below(bytes.size())] = static_cast<uint8_t>(rng.below(256));
    }
    Telemetry options(bytes);
    valid += options.valid();
    options.stamp({.queue = 1, .sent = 1, .time_ns = 1, .rate_bps = 1});
    if (options.valid()) {
      CHECK(wire::kOptionsLen + options.hops() * wire::kHopLen <= bytes.size());
    }
  }
  CHECK(valid > 1000);  // lengths that fit whole hops, and no flip that matters
}
