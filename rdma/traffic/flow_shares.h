// FlowShares: how much of this mount the flows of other mounts may take, each address and all of
// them. Those that somebody here waits for count too, but strangers do not keep them out.
//
// On the control thread.
#pragma once

#include <deque>
#include <memory>

#include "rdma/packet/datagram.h"
#include "rdma/traffic/flow_entry.h"
#include "rdma/traffic/rendezvous_message.h"

namespace rocefs {

class FlowShares {
 public:
  struct Share {
    size_t flows;  // that nobody here has asked for, those that are over among them
    uint64_t qps;
    uint64_t bytes;  // of memory that the far end fills
  };
  static constexpr Share kOfAddress{16, 1024, kMaxFlowMemory / 4};
  static constexpr Share kOfAll{64, 4096, kMaxFlowMemory};

  explicit FlowShares(FlowBook& book) : book_(book) {}

  // What the far end of such a flow takes. EINVAL for one that cannot be.
  static Result<FlowNeed> need_of(const FlowOffer& offer);
  // Makes room for another flow of `peer`, whom somebody here has `waited` for or not: of those
  // that are over the oldest leaves. EMFILE, ENOMEM.
  Result<void> make_room(const Ip& peer, const FlowNeed& need, bool waited);
  // Counts from now on, while it is live, with its need and its spec's remote.
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
