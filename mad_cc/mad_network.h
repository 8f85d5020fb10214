// MadNetwork: carries the MADs of one subnet: by LID and by directed route, over cables that are
// up, to the agents of its nodes, to its administrator and to the MAD layers of its ports. MADs are
// no packets here: they take no time, no bandwidth and are counted by no port.
//
//   SMPs, to QP 0        requests: to the node's SubnetAgent. Responses, by LID: to the port
//   SubnAdm, to QP 1     for the manager's port: to the administrator. Others: to the port
//   Perf, to QP 1        requests: to the node's PerformanceAgent. Responses: to the port
//   others, to QP 1      to the port
//
// What cannot arrive is lost without a word, as it is on a wire: its sender times out. That is what
// has no way, what is for a port without a MAD layer or a node that has let go of its device, for
// the wrong queue pair or with a wrong Q_Key or P_Key, and directed routes that the standard
// discards (14.2.2.2). A port's MADs to itself arrive whatever its cable is.
//
// Core thread.
#pragma once

#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/loop/scheduler.h"
#include "mad_cc/mad_port.h"
#include "mad_cc/pma.h"
#include "mad_cc/sa.h"
#include "mad_cc/sma.h"
#include "mad_cc/subnet.h"

namespace rocefs {

class MadNetwork final : public MadCarrier, private SubnetAdministrator::Output {
 public:
  // More than these on their way are lost.
  static constexpr size_t kMaxOnTheWay = size_t{1} << 17;

  // All outlive it.
  MadNetwork(const Subnet& subnet, SubnetState& state, Scheduler& scheduler, uint64_t seed);
  ~MadNetwork() override;

  // The MAD layer of a channel adapter's port. It outlives this.
  void attach(Subnet::End at, MadPort& port);
  SubnetAdministrator& administrator() { return administrator_; }
  const Subnet& subnet() const { return subnet_; }

  void transmit(MadPort& from, const mad::Address& to, const mad::Mad& mad) override;

  // What is on its way is lost, and the administrator has forgotten all (its reset()).
  void reset();

 private:
  struct Delivery {
    MadPort* to;  // null: the administrator
    mad::Address from;
    mad::Mad mad;
  };
  void transmit_from_sa(const mad::Address& to, const mad::Mad& mad) override;
  void transmit_by_lid(MadPort& from, Subnet::End at, const mad::Address& to, const mad::Mad& mad);
  void transmit_directed(MadPort& from, Subnet::End at, uint16_t lid, const mad::Mad& mad);
  void give_to_port(Subnet::End end, const mad::Address& from, const mad::Mad& mad);
  void give(MadPort* to, const mad::Address& from, const mad::Mad& mad);
  void deliver(TimeNs now);

  // By which port of `to`'s node it arrives; nothing if there is no way.
  std::optional<Subnet::End> route(Subnet::End from, Subnet::End to) const;
  std::optional<Subnet::End> route_to_lid(Subnet::End from, uint16_t lid) const;
  std::optional<Subnet::End> exit_at_switch(size_t node, Subnet::End to) const;
  std::optional<Subnet::End> across(Subnet::End at) const;
  std::optional<Subnet::End> follow_path(Subnet::End at, uint16_t lid, mad::Mad& mad) const;

  const Subnet& subnet_;
  SubnetState& state_;
  Scheduler& scheduler_;
  SubnetAgent subnet_agent_;
  PerformanceAgent performance_agent_;
  SubnetAdministrator administrator_;
  std::vector<std::vector<MadPort*>> ports_;  // by node and number
  std::unordered_map<const MadPort*, Subnet::End> ends_;
  std::deque<Delivery> on_the_way_;
  Event deliver_;
};

}  // namespace rocefs
