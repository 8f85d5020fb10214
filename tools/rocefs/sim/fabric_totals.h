// FabricTotals: what the counters of links, switches and NICs say of a whole run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/time.h"
#include "core/config/topology.h"
#include "rdma/network/fabric.h"
#include "tools/rocefs/sim/link_capacities.h"

namespace rocefs {

// One direction of a cable. Counters are those of links/NAME, and of the switch or NIC port that
// transmits on it.
struct LinkTotals {
  std::string name;
  uint64_t rate_bps = 0;     // at the end of the run
  double capacity_bits = 0;  // bits for which there was time since counters began
  uint64_t packets = 0, bytes = 0, lost = 0, lost_bytes = 0, overflowed = 0;
  uint64_t pause_received = 0;  // PAUSE frames that stopped this direction's transmitter
  uint64_t paused_ns = 0;       // time for which they did, summed over the priorities
  // Direction out of a switch: its egress queue, over all priorities.
  struct Egress {
    uint64_t marked = 0, dropped = 0, queue_peak = 0;
  };
  std::optional<Egress> egress;
  // Direction into a switch: PAUSE frames that it sent against it, and the most octets received
  // through it that the switch stored.
  struct Ingress {
    uint64_t pause_sent = 0, peak = 0;
  };
  std::optional<Ingress> ingress;
  // Direction out of a NIC: time for which PFC had stopped all that it had to transmit.
  std::optional<uint64_t> xmit_wait_ns;

  // Part of the capacity that packets took, Ethernet framing included. One that is being
  // transmitted counts whole.
  double utilization() const;
};

struct FabricTotals {
  std::vector<LinkTotals> links;  // in the fabric's order
  // Packets dropped, by the reason's counter; those that are 0 as well.
  std::vector<std::pair<std::string_view, uint64_t>> drops;
  // Drops by switches, by the room that the packets lacked.
  std::vector<std::pair<std::string_view, uint64_t>> lacked_room;
  uint64_t packet_hops = 0;  // packets that links delivered
  uint64_t ce_marked = 0;    // by switches
  uint64_t pause_frames = 0;
  uint64_t paused_ns = 0;     // sum over links and priorities
  uint64_t xmit_wait_ns = 0;  // sum over NIC ports
  uint64_t queue_peak = 0;    // octets, of any egress queue and priority
  uint64_t buffer_peak = 0;   // octets, of any switch
  uint64_t ingress_peak = 0;  // octets, of any port of a switch

  // After the engine has stopped, at `now`.
  static FabricTotals of(const Fabric& fabric, const Topology& topology,
                         const LinkCapacities& capacities, TimeNs now);
};

// Columns and lines of links.csv: a line for each direction.
std::string links_csv_head();
std::string links_csv(const std::string& variant, const FabricTotals& totals);

}  // namespace rocefs
