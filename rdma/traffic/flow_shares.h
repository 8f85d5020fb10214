// FlowShares: limits on what the flows of other mounts take of this one, each address and all
// together. Flows that somebody here waits for count too, but flows of strangers do not keep them
// out.
//
// Control thread.
#pragma once

#include <deque>
#include <memory>

#include "rdma/packet/datagram.h"
#include "rdma/traffic/flow_entry.h"
#include "rdma/traffic/flow_plan.h"
#include "rdma/traffic/rendezvous_message.h"

namespace rocefs {

class FlowShares {
 public:
  struct Share {
    size_t flows;  // begun by other mounts alone; ended ones count
    uint64_t qps;
    uint64_t bytes;  // of memory that the far end fills
  };
  static constexpr Share kOfAddress{16, 1024, kMaxFlowMemory / 4};
  static constexpr Share kOfAll{64, 4096, kMaxFlowMemory};

  explicit FlowShares(FlowBook& book) : book_(book) {}

  // The need of the far end of such a flow. EINVAL for an impossible one.
  static Result<FlowNeed> need_of(const FlowOffer& offer);
  // Makes room for another flow of `peer`: the oldest one that is over leaves. `waited`: somebody
  // here waits for it. EMFILE, ENOMEM.
  Result<void> make_room(const Ip& peer, const FlowNeed& need, bool waited);
  // Counts the entry while it is live, with its need and its spec's remote.
  void add(const FlowEntryPtr& entry);

 private:
  struct Taken {
    Share all{}, address{};
    Share waited{};  // of all
  };

  void prune();
  Taken taken(const Ip& peer) const;
  bool forget_oldest(const Ip* peer);

  FlowBook& book_;
  std::deque<std::weak_ptr<FlowEntry>> entries_;  // the oldest first
};

}  // namespace rocefs
