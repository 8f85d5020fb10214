// NpccFlows: the RoCEv2 flows that a switch with NPCC has seen, keyed by addresses, the receiver's
// queue pair and the ingress. A CNP must go to the sender's queue pair, which no data packet names:
// it is looked up, and kept with the flow.
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
  uint16_t source_port = 0;            // UDP, of the latest packet
  uint16_t egress = 0;                 // latest egress
  uint8_t priority = 0;                // latest priority
  std::optional<uint32_t> sender_qpn;  // empty: unknown
  TimeNs looked_up = 0;                // when the sender was looked for last
  TimeNs seen = 0;
  uint64_t interval = 0;  // in which `queued` was counted
  uint64_t queued = 0;    // octets queued in that interval
  double owed = 0;        // share of CNPs, fraction left over
};

// Core thread. Allocates only for a new flow.
class NpccFlows {
 public:
  static constexpr size_t kCapacity = 4096;
  static constexpr TimeNs kAge = kSecond;

  // Looks up the flow of a packet seen now; `fresh` if it is new, or was not seen for kAge. Drops
  // the flow seen longest ago if the table is full.
  NpccFlow& see(const NpccFlowKey& key, TimeNs now, bool& fresh);
  // Null if there is no such flow.
  NpccFlow* find(const NpccFlowKey& key);
  // Drops flows not seen for kAge.
  void age(TimeNs now);
  void clear();
  // Latest first; flows not seen for kAge may stand at the end.
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
