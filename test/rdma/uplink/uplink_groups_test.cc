// Groups of an uplink that cannot be joined.
#include "rdma/uplink/uplink_groups.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>

using namespace rocefs;

TEST_CASE("uplink groups: groups that stay inside, in a loop, leave room in dmesg") {
  size_t lines = 0;
  UplinkGroups groups(
      {[](const Ip&, const Fd&) {}, [](const Ip&) {}, [&](const std::string&) { ++lines; }});
  const Ip nowhere{0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9};  // on no interface
  constexpr uint32_t kGroups = 20'000;
  const auto begin = std::chrono::steady_clock::now();
  for (uint32_t n = 0; n < kGroups; ++n) {
    Ip group{0xff, 0x0e};
    std::memcpy(&group[8], &n, sizeof n);
    groups.set_member(nowhere, group, true);
  }
  auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - begin);
  CHECK(lines <= (LogLimit::kLinesPerSecond + 1) * static_cast<size_t>(seconds.count() + 2));
  CHECK(lines >= LogLimit::kLinesPerSecond);
}
