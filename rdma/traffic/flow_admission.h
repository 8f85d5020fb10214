// FlowAdmission: decides which offers of other mounts become flows here. Made-up messages are
// admitted from anybody, as by a perftest server; a real file only where a flow waits for it by its
// name, since its path is chosen here.
//
// Control thread.
#pragma once

#include "rdma/network/fabric.h"
#include "rdma/traffic/flow_entry.h"
#include "rdma/traffic/flow_shares.h"
#include "rdma/traffic/rendezvous_line.h"
#include "rdma/traffic/rendezvous_message.h"

namespace rocefs {

bool has_address(const Port& port, const Ip& address);
// Null if there is none.
Port* port_at(Fabric& fabric, const Ip& address);

class FlowAdmission {
 public:
  FlowAdmission(Fabric& fabric, FlowBook& book) : fabric_(fabric), book_(book), shares_(book) {}

  // The entry that waits for the offer, or a new one. EEXIST, EACCES and EINVAL where the offer
  // does not fit, EADDRNOTAVAIL, EMFILE and ENOMEM beyond the shares.
  Result<FlowEntryPtr> admit(const RendezvousLine& line, const FlowOffer& offer);
  // Counts the entry from now on, with its need and its spec's remote.
  void count(const FlowEntryPtr& entry) { shares_.add(entry); }

 private:
  Result<void> fits(const FlowEntry& waiting, const RendezvousLine& line,
                    const FlowOffer& offer) const;
  Result<FlowEntryPtr> offered_entry(const RendezvousLine& line, const FlowOffer& offer,
                                     const FlowNeed& need);

  Fabric& fabric_;
  FlowBook& book_;
  FlowShares shares_;
};

}  // namespace rocefs
