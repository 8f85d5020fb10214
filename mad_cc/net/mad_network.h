// MadNetwork: carries the MADs of one subnet by LID and by directed route, over cables that are up,
// to the agents of its nodes, to its administrator and to the MAD layers of its ports. MADs are not
// packets: they take no time and no bandwidth, and no port counts them.
//
//   SMPs, QP 0        requests: to the node's SubnetAgent, but SMInfo of a port whose manager is a
//                     program: to the port. Responses: to the port
//   SubnAdm, QP 1     for the manager's port while it is active: to the administrator. Others: to
//                     the port
//   Perf, QP 1        requests: to the node's PerformanceAgent. Responses: to the port
//   others, QP 1      to the port. A switch refuses a Get or Set (kBadMethodAttribute)
//
// Drops without notice what cannot arrive, as a wire does: its sender times out. Dropped are MADs
// without a route, to a port without a MAD layer, to a node whose driver is unbound, to the wrong
// queue pair, with a wrong Q_Key or P_Key, and directed routes that the standard discards
// (14.2.2.2). MADs of a port to itself arrive even if its cable is down.
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
  // Limit of MADs in flight; more are dropped.
  static constexpr size_t kMaxOnTheWay = size_t{1} << 17;

  // The arguments outlive the network.
  MadNetwork(const Subnet& subnet, SubnetState& state, Scheduler& scheduler);
  ~MadNetwork() override;

  // Attaches the MAD layer of a channel adapter's port. `port` stays until the scheduler has run
  // for the last time; the same holds for the administrator.
  void attach(Subnet::End at, MadReceiver& port);
  // Attaches the administrator, which sends and receives at the manager's port. Without one, SA
  // requests are dropped.
  void attach_administrator(MadReceiver& administrator) { administrator_ = &administrator; }

  // Says whether a program is the subnet manager at that channel adapter's port (IsSM). The first
  // one takes the subnet over: the emulated manager and its administrator are not active then. When
  // the last one leaves, they are again, and configure the subnet as they had it.
  void set_manager(Subnet::End at, bool is_manager);

  void transmit(MadReceiver& from, const mad::Address& to, const mad::Mad& mad) override;

  // Drops all MADs in flight, and the values that managers have written.
  void reset();

 private:
  struct Delivery {
    MadReceiver* to;
    mad::Address from;
    mad::Mad mad;
  };
  void take_over();
  void watch_states();
  void transmit_from_administrator(const mad::Address& to, const mad::Mad& mad);
  void transmit_by_lid(MadReceiver& from, Subnet::End at, const mad::Address& to,
                       const mad::Mad& mad);
  void transmit_directed(MadReceiver& from, Subnet::End at, uint16_t lid, const mad::Mad& mad);
  void give_to_port(Subnet::End end, const mad::Address& from, const mad::Mad& mad);
  void give(MadReceiver* to, const mad::Address& from, const mad::Mad& mad);
  void deliver(TimeNs now);

  // Returns the port of `to`'s node at which a MAD arrives; nothing without a route.
  std::optional<Subnet::End> route(Subnet::End from, Subnet::End to) const;
  std::optional<Subnet::End> route_to_lid(Subnet::End from, uint16_t lid) const;
  std::optional<Subnet::End> exit_at_switch(size_t node, Subnet::End to) const;
  std::optional<Subnet::End> across(Subnet::End at) const;
  std::optional<Subnet::End> follow_path(Subnet::End at, uint16_t lid, mad::Mad& mad) const;
  std::optional<Subnet::End> follow_back(Subnet::End at, mad::Mad& mad) const;
  bool is_for_program(Subnet::End at, const mad::Mad& mad) const;
  std::optional<Subnet::End> follow_table(Subnet::End here, Subnet::End to) const;

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
