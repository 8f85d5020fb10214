#include "mad_cc/net/mad_network.h"

#include "mad_cc/mad/answer.h"
#include "mad_cc/net/attributes.h"
#include "mad_cc/net/routes.h"

namespace rocefs {
namespace {

constexpr uint16_t kPermissiveLid = 0xffff;  // 4.1.3

// DirectedRoute: the fields of an SMP's header that are not in every MAD (14.2.1.2).
class DirectedRoute {
 public:
  static constexpr uint8_t kMaxHops = 63;
  static constexpr uint16_t kDirection = 0x8000;  // in the status: a response on its way back

  explicit DirectedRoute(mad::Mad& mad) : bytes_(mad.bytes) {}
  uint8_t hop_pointer() const { return bytes_[6]; }
  uint8_t hop_count() const { return bytes_[7]; }
  uint16_t slid() const { return wire::load16(&bytes_[32]); }
  uint16_t dlid() const { return wire::load16(&bytes_[34]); }
  uint8_t initial_path(size_t hop) const { return bytes_[128 + hop]; }
  uint8_t return_path(size_t hop) const { return bytes_[192 + hop]; }
  void set_return_path(size_t hop, uint8_t port) { bytes_[192 + hop] = port; }
  void set_hop_pointer(uint8_t hop) { bytes_[6] = hop; }

 private:
  std::array<uint8_t, mad::kMadSize>& bytes_;
};

// Returns whether a set high bit asks for the sender's own Q_Key, which is the well-known one at QP
// 1 (10.2.5).
bool is_well_known(uint32_t qkey) {
  return qkey >> 31 != 0;
}

mad::Address answering(uint16_t lid, uint32_t qpn, uint8_t sl) {
  return {.lid = lid, .qpn = qpn, .qkey = qpn == 0 ? 0 : mad::kQkey, .sl = sl};
}

}  // namespace

MadNetwork::MadNetwork(const Subnet& subnet, SubnetState& state, Scheduler& scheduler)
    : subnet_(subnet),
      state_(state),
      scheduler_(scheduler),
      subnet_agent_(subnet, state),
      performance_agent_(subnet, state),
      deliver_(event_of<&MadNetwork::deliver>(this)) {
  for (const SubnetNode& node : subnet.nodes) ports_.emplace_back(node.ports.size());
}

MadNetwork::~MadNetwork() = default;

void MadNetwork::attach(Subnet::End at, MadReceiver& port) {
  ports_[at.node][at.port] = &port;
  ends_[&port] = at;
}

void MadNetwork::reset() {
  on_the_way_.clear();
  scheduler_.cancel(deliver_);
  take_over();
}

void MadNetwork::set_manager(Subnet::End at, bool is_manager) {
  SubnetSettings& settings = state_.settings;
  if (is_manager) {
    settings.add_manager(at.node, at.port);
    return watch_states();
  }
  settings.remove_manager(at.node, at.port);
  if (settings.emulated_manager()) take_over();
}

// Begins PortStateChange of the switches: OpenSM writes no SwitchInfo that is right already.
void MadNetwork::watch_states() {
  for (size_t i = 0; i < subnet_.nodes.size(); ++i) {
    const SubnetNode& node = subnet_.nodes[i];
    if (node.is_switch) state_.settings.set_seen(i, mad::port_states(state_, node, i));
  }
}

// Configures the subnet as the emulator has it.
void MadNetwork::take_over() {
  state_.settings.clear();
  for (const auto& [port, end] : ends_) {
    state_.set_manager_lid(end.node, end.port, subnet_.manager_lid());
  }
}

// SMInfo (14.2.5.13) is the manager's, not the agent's.
bool MadNetwork::is_for_program(Subnet::End at, const mad::Mad& mad) const {
  return mad.attribute() == mad::kSmInfo && state_.settings.is_manager(at.node, at.port);
}

void MadNetwork::transmit(MadReceiver& from, const mad::Address& to, const mad::Mad& mad) {
  if (&from == administrator_) return transmit_from_administrator(to, mad);
  auto at = ends_.find(&from);
  if (at == ends_.end()) return;
  bool is_smp = mad::is_smp(mad.mgmt_class());
  if (to.qpn != (is_smp ? 0u : 1u)) return;
  if (!is_smp && (!is_well_known(to.qkey) || to.pkey_index != 0)) return;
  if (mad.mgmt_class() == mad::kSubnDirected) {
    return transmit_directed(from, at->second, to.lid, mad);
  }
  transmit_by_lid(from, at->second, to, mad);
}

// Limits SMPs without a LID, or with the permissive LID, to the port's own node.
void MadNetwork::transmit_by_lid(MadReceiver& from, Subnet::End at, const mad::Address& to,
                                 const mad::Mad& mad) {
  bool is_smp = mad.mgmt_class() == mad::kSubnLid;
  uint16_t own = subnet_.at(at).lid;
  bool stays = to.lid == own || (is_smp && (to.lid == 0 || to.lid == kPermissiveLid));
  uint16_t lid = stays ? own : to.lid;
  std::optional<Subnet::End> arrival = stays ? at : route_to_lid(at, lid);
  if (!arrival || !state_.present(arrival->node)) return;
  Subnet::End end = *subnet_.find(lid);
  if (mad.mgmt_class() == mad::kSubnAdm && end == subnet_.manager &&
      state_.settings.emulated_manager()) {
    return give(administrator_, answering(own, to.qpn, to.sl), mad);
  }
  bool for_agent = (is_smp || mad.mgmt_class() == mad::kPerf) && !mad.is_response();
  if (is_smp && is_for_program(end, mad)) for_agent = false;
  if (!for_agent && mad::is_refusable(mad) && subnet_.nodes[end.node].is_switch) {
    return give(&from, answering(lid, to.qpn, to.sl),
                mad::answer_to(mad, mad::kBadMethodAttribute));
  }
  if (!for_agent) return give_to_port(end, answering(own, to.qpn, to.sl), mad);
  auto answer =
      is_smp ? subnet_agent_.answer(*arrival, mad) : performance_agent_.answer(*arrival, mad);
  if (answer) give(&from, answering(lid, to.qpn, to.sl), *answer);
}

// Sends the answer directly: it would come back over the same cables.
void MadNetwork::transmit_directed(MadReceiver& from, Subnet::End at, uint16_t lid,
                                   const mad::Mad& mad) {
  mad::Mad arrived = mad;
  DirectedRoute route(arrived);
  if (mad.is_response()) {
    std::optional<Subnet::End> requester = follow_back(at, arrived);
    if (requester) give_to_port(*requester, answering(kPermissiveLid, 0, 0), arrived);
    return;
  }
  std::optional<Subnet::End> arrival = follow_path(at, lid, arrived);
  if (!arrival || !state_.present(arrival->node)) return;
  if (is_for_program(*arrival, mad)) {
    return give_to_port(*arrival, answering(kPermissiveLid, 0, 0), arrived);
  }
  std::optional<mad::Mad> answer = subnet_agent_.answer(*arrival, arrived);
  if (!answer) return;
  answer->set_status(answer->status() | DirectedRoute::kDirection);
  bool pure = route.slid() == kPermissiveLid;
  give(&from, answering(pure ? kPermissiveLid : lid, 0, 0), *answer);
}

// Routes as 14.2.2.2: by LID to the start of the directed part, unless that is the sender; hop by
// hop; by LID from its end, unless that is the destination. Fills in the return path. The hop
// pointer counts up on the way out and is 0 again in the answer.
std::optional<Subnet::End> MadNetwork::follow_path(Subnet::End at, uint16_t lid,
                                                   mad::Mad& mad) const {
  DirectedRoute route(mad);
  bool backwards = (mad.status() & DirectedRoute::kDirection) != 0;
  if (backwards || mad.is_response() || route.hop_pointer() != 0) return std::nullopt;
  if (route.hop_count() > DirectedRoute::kMaxHops) return std::nullopt;
  std::optional<Subnet::End> here = at;
  bool from_sender = route.slid() == kPermissiveLid;
  if (!from_sender) {
    if (route.slid() != subnet_.at(at).lid) return std::nullopt;
    here = route_to_lid(at, lid);
  }
  for (size_t hop = 1; here && hop <= route.hop_count(); ++hop) {
    const SubnetNode& node = subnet_.nodes[here->node];
    uint8_t out = route.initial_path(hop);
    bool is_sender = from_sender && hop == 1 && out == at.port;
    bool forwards = node.is_switch && out >= 1 && out <= node.port_count();
    if (!is_sender && !forwards) return std::nullopt;
    here = across({here->node, out});
    if (here) route.set_return_path(hop, here->port);
  }
  if (!here || route.dlid() == kPermissiveLid) return here;
  if (!subnet_.nodes[here->node].is_switch) return std::nullopt;
  return route_to_lid({here->node, 0}, route.dlid());
}

// Follows the return path of a purely directed route, for the response of a program (14.2.2.2).
std::optional<Subnet::End> MadNetwork::follow_back(Subnet::End at, mad::Mad& mad) const {
  DirectedRoute route(mad);
  bool backwards = (mad.status() & DirectedRoute::kDirection) != 0;
  if (!backwards || route.hop_count() > DirectedRoute::kMaxHops) return std::nullopt;
  if (route.slid() != kPermissiveLid || route.dlid() != kPermissiveLid) return std::nullopt;
  std::optional<Subnet::End> here = at;
  for (size_t hop = route.hop_count(); here && hop > 0; --hop) {
    const SubnetNode& node = subnet_.nodes[here->node];
    uint8_t out = route.return_path(hop);
    bool is_sender = hop == route.hop_count() && out == at.port;
    bool forwards = node.is_switch && out >= 1 && out <= node.port_count();
    if (!is_sender && !forwards) return std::nullopt;
    here = across({here->node, out});
  }
  route.set_hop_pointer(0);
  return here;
}

void MadNetwork::transmit_from_administrator(const mad::Address& to, const mad::Mad& mad) {
  if (to.qpn != 1 || !route_to_lid(subnet_.manager, to.lid)) return;
  give_to_port(*subnet_.find(to.lid), answering(subnet_.manager_lid(), 1, to.sl), mad);
}

std::optional<Subnet::End> MadNetwork::across(Subnet::End at) const {
  const SubnetPort& port = subnet_.at(at);
  if (port.peer == SubnetPort::kNoPeer || !state_.up(at.node, at.port)) return std::nullopt;
  return Subnet::End{port.peer, port.peer_port};
}

std::optional<Subnet::End> MadNetwork::route_to_lid(Subnet::End from, uint16_t lid) const {
  std::optional<Subnet::End> to = subnet_.find(lid);
  return to ? route(from, *to) : std::nullopt;
}

// Returns the port of that switch whose cable leads to a channel adapter. Short cut for the last
// hop: routes cost more than the rest of a MAD. Nothing if the adapter is elsewhere or unbound.
std::optional<Subnet::End> MadNetwork::exit_at_switch(size_t node, Subnet::End to) const {
  if (subnet_.nodes[to.node].is_switch) return std::nullopt;
  std::optional<Subnet::End> exit = across(to);
  if (!exit || exit->node != node) return std::nullopt;
  if (!state_.present(to.node) || !state_.present(node)) return std::nullopt;
  return exit;
}

// Follows the switches' linear forwarding tables, where a manager has written them. Such tables may
// lead anywhere.
std::optional<Subnet::End> MadNetwork::follow_table(Subnet::End here, Subnet::End to) const {
  Routes routes(subnet_, state_);
  for (size_t hops = 0; hops <= subnet_.nodes.size(); ++hops) {
    const SubnetNode& node = subnet_.nodes[here.node];
    if (!node.is_switch) return std::nullopt;
    auto written = subnet_agent_.written_forward(here.node, subnet_.at(to).lid);
    uint8_t out = written ? *written : routes.forward(here.node, to);
    if (out == 0 && here.node == to.node) return here;
    if (out == 0 || out > node.port_count()) return std::nullopt;
    std::optional<Subnet::End> next = across({here.node, out});
    if (!next || *next == to) return next;
    here = *next;
  }
  return std::nullopt;
}

std::optional<Subnet::End> MadNetwork::route(Subnet::End from, Subnet::End to) const {
  if (from == to) return to;
  const std::vector<SubnetNode>& nodes = subnet_.nodes;
  std::optional<Subnet::End> here = nodes[from.node].is_switch ? from : across(from);
  if (!here || !nodes[here->node].is_switch) return here == to ? here : std::nullopt;
  bool written = subnet_agent_.written_forward(here->node, subnet_.at(to).lid).has_value();
  std::optional<Subnet::End> exit = written ? std::nullopt : exit_at_switch(here->node, to);
  return exit ? across(*exit) : follow_table(*here, to);
}

void MadNetwork::give_to_port(Subnet::End end, const mad::Address& from, const mad::Mad& mad) {
  if (!state_.present(end.node)) return;
  give(ports_[end.node][end.port], from, mad);
}

void MadNetwork::give(MadReceiver* to, const mad::Address& from, const mad::Mad& mad) {
  if (!to || on_the_way_.size() >= kMaxOnTheWay) return;
  on_the_way_.push_back({to, from, mad});
  if (!deliver_.scheduled()) scheduler_.after(deliver_, 0);
}

// Delivers what is queued now; MADs sent from within come in a later event.
void MadNetwork::deliver(TimeNs) {
  for (size_t left = on_the_way_.size(); left > 0 && !on_the_way_.empty(); --left) {
    Delivery delivery = std::move(on_the_way_.front());
    on_the_way_.pop_front();
    delivery.to->receive(delivery.from, delivery.mad);
  }
  if (!on_the_way_.empty()) scheduler_.after(deliver_, 0);
}

}  // namespace rocefs
