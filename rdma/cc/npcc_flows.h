// NpccFlows: the RoCEv2 flows that a switch with NPCC has seen, by what their packets show:
// addresses, the receiver's queue pair, the interface they came through. A CNP must go to the
// sender's queue pair, which no data packet names: it is learnt once per flow from outside.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <unordered_map>

#include "core/base/time.h"
#include "rdma/packet/verbs.h"

namespace rocefs {

struct NpccFlowKey {
  Ip source{}, destination{};
  uint32_t dest_qpn = 0;
  uint16_t ingress = 0;
  bool operator==(const NpccFlowKey&) const = default;
};

struct NpccFlow {
  NpccFlowKey key;
  uint16_t source_port = 0;            // UDP, of the newest packet
  uint16_t egress = 0;                 // through which it left last
  uint8_t priority = 0;                // and at which priority
  std::optional<uint32_t> sender_qpn;  // nothing: nobody knows it
  TimeNs seen = 0;
  uint64_t interval = 0;  // in which `queued` was counted
  uint64_t queued = 0;    // octets that entered its queue in it
  double owed = 0;        // its share of CNPs, the part that is not whole yet
};

// Core thread. Allocates only for a flow that it has not seen.
class NpccFlows {
 public:
  static constexpr size_t kCapacity = 4096;
  static constexpr TimeNs kAge = kSecond;

  // The flow, which was seen now; `fresh` if it was not there. The one that was seen longest ago
  // makes room.
  NpccFlow& see(const NpccFlowKey& key, TimeNs now, bool& fresh);
  // Drops those that were not seen for kAge.
  void age(TimeNs now);
  void clear();
  // From the one seen last.
  const std::list<NpccFlow>& all() const { return flows_; }
  std::list<NpccFlow>& all() { return flows_; }

 private:
  struct Hash {
    size_t operator()(const NpccFlowKey& key) const;
  };
  std::list<NpccFlow> flows_;
  std::unordered_map<NpccFlowKey, std::list<NpccFlow>::iterator, Hash> index_;
};

}  // namespace rocefs
