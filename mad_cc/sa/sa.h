// SubnetAdministrator: the emulated SA of one subnet (IBTA volume 1, chapter 15): answers queries
// about it as slowly and as lossily as it is told, in the order in which it hears them. Tables go
// by RMPP, also those of one segment or of no record.
//
// It serves ClassPortInfo (Get) and NodeRecord, PortInfoRecord, SwitchInfoRecord,
// LinearForwardingTableRecord, SMInfoRecord, LinkRecord, GuidInfoRecord and PathRecord (Get,
// GetTable, by ComponentMask): of nodes that are present and that cables which are up lead to.
// ServiceRecord, MCMemberRecord and InformInfoRecord are empty: it denies whoever would register.
// See mad_cc/sa/sa_query.h for what is refused with which status. A request is known by its
// sender's LID, QPN and TID: while one is pending, another of the same is a retry and is ignored.
//
// Core thread.
#pragma once

#include <memory>

#include "core/loop/scheduler.h"
#include "mad_cc/net/mad_carrier.h"
#include "mad_cc/net/subnet.h"

namespace rocefs {

struct SaSettings {
  TimeNs delay_ns = 0;  // from a request to its answer
  double loss = 0;      // probability that a request is not heard
  double busy = 0;      // probability that the answer is status Busy
};

class SubnetAdministrator final : public MadReceiver {
 public:
  // All outlive it. `seed` decides what is lost and who finds it busy.
  SubnetAdministrator(const Subnet& subnet, const SubnetState& state, Scheduler& scheduler,
                      uint64_t seed, MadCarrier& carrier);
  ~SubnetAdministrator() override;

  // Those who wait already wait as long as the delay is now.
  void configure(const SaSettings& settings);
  // Everything under way is forgotten, chance begins anew.
  void reset();
  // A MAD of class SubnAdm, for the manager's port. `from` is the sender's. Refusals for want of
  // room and ABORTs are transmitted from within this, all else is not.
  void receive(const mad::Address& from, const mad::Mad& mad) override;
  // How many requests it has heard and not yet answered, RMPP included. A client, which is a LID,
  // may have as many as could still be taken: alone half of all. More are answered Busy at once.
  size_t pending() const;
  static constexpr size_t kMaxRequests = 4096;
  // For tables that are made or under way, shared out in the same way: ERR_NO_RESOURCES. That is
  // for PathRecords of all pairs of 700 ends.
  static constexpr size_t kMaxTableOctets = 64 << 20;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rocefs
