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
#include "mad_cc/net/mad_carrier.h"
#include "mad_cc/net/pma.h"
#include "mad_cc/net/sma.h"
#include "mad_cc/net/subnet.h"

namespace rocefs {

class MadNetwork final : public MadCarrier {
 public:
  // More than these on their way are lost.
  static constexpr size_t kMaxOnTheWay = size_t{1} << 17;

  // All outlive it.
  MadNetwork(const Subnet& subnet, SubnetState& state, Scheduler& scheduler);
  ~MadNetwork() override;

  // Attaches the MAD layer of a channel adapter's port. `port` stays until the scheduler has run
  // for the last time, as the administrator does.
  void attach(Subnet::End at, MadReceiver& port);
  // Attaches the administrator, which sends and receives at the manager's port. Without one, SA
  // requests are lost.
  void attach_administrator(MadReceiver& administrator) { administrator_ = &administrator; }

  void transmit(MadReceiver& from, const mad::Address& to, const mad::Mad& mad) override;

  // Loses what is on its way.
  void reset();

 private:
  struct Delivery {
    MadReceiver* to;
    mad::Address from;
    mad::Mad mad;
  };
  void transmit_from_administrator(const mad::Address& to, const mad::Mad& mad);
  void transmit_by_lid(MadReceiver& from, Subnet::End at, const mad::Address& to,
                       const mad::Mad& mad);
  void transmit_directed(MadReceiver& from, Subnet::End at, uint16_t lid, const mad::Mad& mad);
  void give_to_port(Subnet::End end, const mad::Address& from, const mad::Mad& mad);
  void give(MadReceiver* to, const mad::Address& from, const mad::Mad& mad);
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
  MadReceiver* administrator_ = nullptr;
  std::vector<std::vector<MadReceiver*>> ports_;  // by node and number
  std::unordered_map<const MadReceiver*, Subnet::End> ends_;
  std::deque<Delivery> on_the_way_;
  Event deliver_;
};

}  // namespace rocefs
