#include "tools/rocefs/sim/packet_train.h"

#include <cmath>

namespace rocefs {
namespace {

double time_of(uint64_t octets, uint64_t rate_bps) {
  return static_cast<double>(octets) * 8e9 / static_cast<double>(rate_bps);
}

}  // namespace

// Links end a packet at a whole nanosecond, and carry the fraction over to the next packet.
void PacketTrain::pass(uint64_t octets) {
  double now = 0;
  for (size_t i = 0; i < way_.size(); ++i) {
    left_ns_[i] = std::max(now, left_ns_[i]) + time_of(octets, way_[i].total_bps);
    now = std::floor(std::max(left_ns_[i], now + time_of(octets, way_[i].rate_bps))) +
          static_cast<double>(way_[i].delay_ns);
  }
  arrived_ns_ = now;
  octets_ += octets;
}

// Packets leave a hop as fast as the slowest hop so far lets them.
void PacketTrain::skip(uint64_t octets) {
  uint64_t slowest_bps = UINT64_MAX;
  for (size_t i = 0; i < way_.size(); ++i) {
    slowest_bps = std::min(slowest_bps, way_[i].total_bps);
    left_ns_[i] += time_of(octets, slowest_bps);
  }
  octets_ += octets;
}

}  // namespace rocefs
