#include "rdma/traffic/flow_shares.h"

#include <algorithm>
#include <cerrno>

#include "rdma/wire/ip_text.h"

namespace rocefs {
namespace {

void count(FlowShares::Share& share, const FlowEntry& entry) {
  if (entry.offered) ++share.flows;
  if (!entry.live()) return;
  share.qps += entry.need.qps;
  share.bytes += entry.need.bytes;
}

// ENOMEM beyond the share.
Result<void> check(const FlowShares::Share& taken, const FlowNeed& need,
                   const FlowShares::Share& most, std::string_view who) {
  if (taken.qps + need.qps > most.qps) {
    return errorf(ENOMEM, "{} may have {} queue pairs in flows here, and has {}", who, most.qps,
                  taken.qps);
  }
  if (taken.bytes + need.bytes > most.bytes) {
    return errorf(ENOMEM, "{} may have {} MiB for flows here, and has {}", who, most.bytes >> 20,
                  taken.bytes >> 20);
  }
  return {};
}

}  // namespace

Result<FlowNeed> FlowShares::need_of(const FlowOffer& offer) {
  std::optional<uint64_t> file;
  if (offer.file) file = offer.end.bytes;
  Result<FlowPlan> plan = FlowPlan::of(offer.spec, file, FlowEnds::kTwoMounts);
  if (!plan) return plan.error();
  FlowNeed need{offer.spec.qps, 0};
  bool fills = offer.spec.op != FlowOp::kRead && offer.spec.verify;
  if (fills) need.bytes = plan->receive_bytes();
  return need;
}

void FlowShares::add(const FlowEntryPtr& entry) {
  prune();
  entries_.push_back(entry);
}

// Drops entries that have been forgotten, and those that were waited for once they are over.
void FlowShares::prune() {
  std::erase_if(entries_, [this](const std::weak_ptr<FlowEntry>& weak) {
    FlowEntryPtr entry = weak.lock();
    if (!entry || book_.find(entry->spec.name) != entry) return true;
    return !entry->offered && !entry->live();
  });
}

FlowShares::Taken FlowShares::taken(const Ip& peer) const {
  Taken taken;
  for (const auto& weak : entries_) {
    FlowEntryPtr entry = weak.lock();
    if (!entry) continue;
    count(taken.all, *entry);
    if (entry->spec.remote == peer) count(taken.address, *entry);
    if (!entry->offered) count(taken.waited, *entry);
  }
  return taken;
}

Result<void> FlowShares::make_room(const Ip& peer, const FlowNeed& need, bool waited) {
  prune();
  Taken now = taken(peer);
  if (waited) return check(now.waited, need, kOfAll, "who is waited for");
  if (Result<void> room = check(now.address, need, kOfAddress, ip_text(peer)); !room) return room;
  if (Result<void> room = check(now.all, need, kOfAll, "all others"); !room) return room;
  if (now.address.flows >= kOfAddress.flows && !forget_oldest(&peer)) {
    return errorf(EMFILE, "{} may have {} flows here", ip_text(peer), kOfAddress.flows);
  }
  if (taken(peer).all.flows >= kOfAll.flows && !forget_oldest(nullptr)) {
    return errorf(EMFILE, "all others may have {} flows here", kOfAll.flows);
  }
  return {};
}

// Removes the oldest flow that is over, of one address or of all. False if there is none.
bool FlowShares::forget_oldest(const Ip* peer) {
  for (auto at = entries_.begin(); at != entries_.end(); ++at) {
    FlowEntryPtr entry = at->lock();
    if (!entry || !entry->offered || entry->live()) continue;
    if (peer && entry->spec.remote != *peer) continue;
    entries_.erase(at);
    book_.forget(entry);
    return true;
  }
  return false;
}

}  // namespace rocefs
