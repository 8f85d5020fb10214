// MadNetwork: carries the MADs of one subnet: by LID and by directed route, over cables that are
// up, to the agents of its nodes, to its administrator and to the MAD layers of its ports. MADs are
// no packets here: they take no time, no bandwidth and are counted by no port.
//
// Core thread.
#pragma once

#include <deque>
#include <unordered_map>

#include "core/scheduler.h"
#include "mad_cc/mad_port.h"
#include "mad_cc/responders.h"
#include "mad_cc/sa.h"
#include "mad_cc/subnet.h"

namespace rocefs {

class MadNetwork final : public MadCarrier, private SubnetAdministrator::Output {
 public:
  // All outlive it.
  MadNetwork(const Subnet& subnet, SubnetState& state, Scheduler& scheduler, uint64_t seed);
  ~MadNetwork() override;

  // The MAD layer of a channel adapter's port. It outlives this.
  void attach(Subnet::End at, MadPort& port);
  SubnetAdministrator& administrator() { return administrator_; }
  const Subnet& subnet() const { return subnet_; }

  void transmit(MadPort& from, const mad::Address& to, const mad::Mad& mad) override;

  // What is on its way is lost.
  void reset();

 private:
  struct Delivery {
    MadPort* to;
    mad::Address from;
    mad::Mad mad;
  };
  void transmit_from_sa(const mad::Address& to, const mad::Mad& mad) override;
  void deliver(TimeNs now);

  const Subnet& subnet_;
  SubnetState& state_;
  Scheduler& scheduler_;
  SubnetAgent subnet_agent_;
  PerformanceAgent performance_agent_;
  SubnetAdministrator administrator_;
  std::vector<std::pair<Subnet::End, MadPort*>> ports_;
  std::deque<Delivery> on_the_way_;
  Event deliver_;
};

}  // namespace rocefs
