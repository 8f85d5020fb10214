// PacketTrain: when packets that leave in a row arrive at the end of a way whose hops store and
// forward them, with nothing else under way.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/base/time.h"

namespace rocefs {

// Links of which packets take one each; there may be one alone.
struct Hop {
  uint64_t rate_bps = 0;   // of a link
  uint64_t total_bps = 0;  // of all together
  TimeNs delay_ns = 0;
};
using Way = std::vector<Hop>;

class PacketTrain {
 public:
  // `way` outlives the train.
  explicit PacketTrain(const Way& way) : way_(way), left_ns_(way.size()) {}

  // More packets of `octets` each, with all that a cable carries of a packet.
  void send(uint64_t octets, uint64_t packets) {
    repeat(packets, [&] { pass(octets); });
  }
  // Calls `send_some` as often as `times` says, or as if: a long row is in a steady state, of which
  // each hop takes its own time.
  template <class SendSome>
  void repeat(uint64_t times, SendSome send_some) {
    constexpr uint64_t kFew = 4;
    const uint64_t followed = std::min(times, kFew);
    uint64_t last_round = 0;
    for (uint64_t i = 0; i < followed; ++i) {
      const uint64_t before = octets_;
      if (i > 0 && i + 1 == followed) skip(last_round * (times - followed));
      send_some();
      last_round = octets_ - before;
    }
  }
  // Time at which the last packet has arrived; 0: the first one begins to leave.
  double arrived_ns() const { return arrived_ns_; }

 private:
  void pass(uint64_t octets);
  void skip(uint64_t octets);

  const Way& way_;
  std::vector<double> left_ns_;  // by hop: when its last packet has left it, before the delay
  double arrived_ns_ = 0;
  uint64_t octets_ = 0;  // sent
};

}  // namespace rocefs
