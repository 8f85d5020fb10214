// PortHost and PortBase: what a port needs of its device, and what the queues of a port need of the
// port. Device and Port derive from them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/config/topology.h"
#include "rdma/fabric/fabric_resources.h"
#include "rdma/fabric/link.h"
#include "rdma/nic/gid_table.h"
#include "rdma/nic/multicast.h"
#include "rdma/nic/port_ids.h"
#include "rdma/nic/qp_table.h"
#include "rdma/transport/qp_host.h"

namespace rocefs {

// Core thread. Outlives its ports.
class PortHost : public QpHost {
 public:
  FabricResources& fabric() const { return fabric_; }
  QpTable& qps() { return qps_; }
  // Multicast groups of the UD queue pairs.
  MulticastGroups& groups() { return groups_; }
  // A device without a driver makes no queue pairs and takes no packets; its links stay.
  bool present() const { return present_; }

  // The link of port `number` has gone up or down.
  virtual void link_changed(uint8_t number) = 0;

  void reap_later() final { qps_.reap_later(); }
  // Looks the queue pair up by number and serial: it may have been destroyed since.
  void packet_gone(const PacketSender& sender) final {
    Qp* qp = qps_.find(sender.qpn);
    if (qp && qp->serial() == sender.serial) qp->requester().packet_gone(sender.position);
  }
  void reactions_changed() final {
    qps_.each([](Qp& qp) { qp.congestion().refresh(); });
  }
  void traffic_classes_changed() final {
    qps_.each([](Qp& qp) { qp.traffic_class_changed(); });
  }

 protected:
  PortHost(const std::string& name, FabricResources& fabric)
      : QpHost(name, {fabric.pool(), fabric.scheduler(), fabric.outstanding(),
                      fabric.counters().stale_payloads}),
        fabric_(fabric),
        qps_(*this) {}
  ~PortHost() override = default;

  bool present_ = true;

 private:
  FabricResources& fabric_;
  QpTable qps_;
  MulticastGroups groups_;
};

// Core thread. Outlives the queues of the port.
class PortBase : public QpPort {
 public:
  PortHost& host() { return host_; }
  const PortHost& host() const { return host_; }
  const PortSpec& spec() const { return spec_; }
  uint8_t number() const { return number_; }  // 1 or 2
  const GidTable& gids() const { return gids_; }
  // Directions of the port's cable. Valid once it is attached.
  bool cabled() const { return egress_ != nullptr; }
  Link& egress() { return *egress_; }
  const Link& egress() const { return *egress_; }
  Link& ingress() { return *ingress_; }
  // Makes an idle link pull.
  void kick() {
    if (egress_) egress_->kick();
  }

 protected:
  PortBase(PortHost& host, const PortSpec& spec, uint8_t number)
      : QpPort(host), host_(host), spec_(spec), number_(number), gids_(gids_of(spec)) {}
  ~PortBase() = default;

  PortHost& host_;
  const PortSpec& spec_;
  const uint8_t number_;
  Link* egress_ = nullptr;
  Link* ingress_ = nullptr;
  GidTable gids_;
};

}  // namespace rocefs
