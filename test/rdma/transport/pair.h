// Pair: two connected queue pairs in a world of their own, and helpers for tests of them.
#pragma once

#include "test/rdma/world.h"

namespace rocefs::test {

constexpr uint64_t kPairArea = 64 * 1024;

// Short packets and short waits.
inline QpAttributes quick_attributes() {
  QpAttributes attributes;
  attributes.path_mtu = 256;
  attributes.timeout = 5;  // 131 us
  attributes.min_rnr_timer = 1;
  return attributes;
}

struct Pair {
  World world;
  Connection link;
  explicit Pair(const QpAttributes& attributes = quick_attributes(), QpType type = QpType::kRc)
      : link(world, kPairArea, attributes, nullptr, nullptr, type) {
    fill(near_bytes(), 5);
  }
  explicit Pair(QpType type) : Pair(quick_attributes(), type) {}

  std::span<uint8_t> near_bytes() { return bytes_of(*link.near_memory); }
  std::span<uint8_t> far_bytes() { return bytes_of(*link.far_memory); }
  std::vector<Completion> sent() { return Connection::poll(link.near_cq); }
  std::vector<Completion> received() { return Connection::poll(link.far_cq); }
  PortCounters& near() { return world.counters("mb_0"); }
  PortCounters& far() { return world.counters("mb_1"); }
  bool same(uint64_t near_at, uint64_t far_at, uint64_t length) {
    auto a = near_bytes().subspan(near_at, length), b = far_bytes().subspan(far_at, length);
    return std::equal(a.begin(), a.end(), b.begin());
  }
  uint64_t word(std::span<uint8_t> bytes, uint64_t at) {
    uint64_t value = 0;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
  }
  void put(std::span<uint8_t> bytes, uint64_t at, uint64_t value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
  }
  void run() { REQUIRE(world.run_idle()); }
  // Posts one request, runs, and returns how it ended.
  WcStatus outcome(const SendRequest& request) {
    link.post(request);
    run();
    auto all = sent();
    REQUIRE(all.size() == 1);
    return all[0].status;
  }
};

// Watches a link; the script returns true to drop a packet.
struct Watch {
  using Script = std::function<bool(const wire::Parsed&, Packet&)>;
  Meddler meddler;
  Watch(Pair& pair, const char* link, Script script)
      : meddler(pair.world, pair.world.link(link), 1, {}) {
    meddler.script = std::move(script);
  }
};

// A rule, the section of the IBTA's volume 1 that makes it, and a check that it holds.
struct Rule {
  const char* section;
  const char* says;
  void (*check)();
};
inline void check_rules(std::span<const Rule> rules) {
  for (const Rule& rule : rules) {
    INFO("IBTA " << rule.section << ": " << rule.says);
    rule.check();
  }
}

}  // namespace rocefs::test
