// SubnetAdministrator: the emulated SA of one subnet (IBTA volume 1, chapter 15). Answers queries
// in order of arrival, with the configured delay and loss. Tables go by RMPP, also those of one
// segment or of no record.
//
// Serves ClassPortInfo (Get) and NodeRecord, PortInfoRecord, SwitchInfoRecord,
// LinearForwardingTableRecord, MulticastForwardingTableRecord, SLtoVLMappingTableRecord,
// P_KeyTableRecord, SMInfoRecord, LinkRecord, GuidInfoRecord and PathRecord (Get, GetTable, by
// ComponentMask), of nodes that are present and reachable over cables that are up.
// VLArbitrationTableRecord, ServiceRecord, MCMemberRecord and InformInfoRecord are empty;
// registrations are denied. See
// mad_cc/sa/sa_query.h for the status of refusals. A request is identified by its sender's LID, QPN
// and TID: a second one while the first is pending is a retry and is ignored.
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
  // The arguments outlive the administrator. `seed` determines losses and Busy answers.
  SubnetAdministrator(const Subnet& subnet, const SubnetState& state, Scheduler& scheduler,
                      uint64_t seed, MadCarrier& carrier);
  ~SubnetAdministrator() override;

  // Changes the settings; a new delay also applies to waiting requests.
  void configure(const SaSettings& settings);
  // Forgets all requests and transfers, and restarts the random numbers.
  void reset();
  // Takes a MAD of class SubnAdm for the manager's port. `from` is the sender's address. Transmits
  // refusals for lack of room and ABORTs from within this call, and nothing else.
  void receive(const mad::Address& from, const mad::Mad& mad) override;
  // Returns the number of requests that are not answered yet, RMPP included. A client (a LID) may
  // have as many as are still free, a single client half of all. More are answered Busy at once.
  size_t pending() const;
  static constexpr size_t kMaxRequests = 4096;
  // Limit of memory for tables in progress, shared out in the same way; beyond it:
  // ERR_NO_RESOURCES. Enough for PathRecords of all pairs of 700 ends.
  static constexpr size_t kMaxTableOctets = 64 << 20;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rocefs
