// Device: an emulated NIC: its ports, its memory regions and its queue pairs. Built-in traffic and
// clients use the same calls: register, create, modify, post, poll.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/config/topology.h"
#include "core/loop/scheduler.h"
#include "rdma/fabric/fabric_resources.h"
#include "rdma/nic/multicast.h"
#include "rdma/nic/node_description.h"
#include "rdma/nic/port.h"
#include "rdma/transport/qp.h"

namespace rocefs {

class Device;

// Whoever uses a device and must let go of it when it leaves (ib_client of the kernel).
class DeviceClient {
 public:
  virtual ~DeviceClient() = default;
  // Gives back every queue pair and region that it has of the device, and removes itself.
  virtual void device_removed(Device& device) = 0;
  // A port's link has come up or gone down. May only take note.
  virtual void port_changed(const Port&) {}
};

class Device final : public QpHost {
 public:
  Device(FabricResources& fabric, const DeviceSpec& spec);
  ~Device() override;

  const DeviceSpec& spec() const { return spec_; }
  FabricResources& fabric() { return fabric_; }
  // From 1.
  Port& port(size_t number = 1) { return ports_[number - 1]; }
  const Port& port(size_t number = 1) const { return ports_[number - 1]; }
  size_t port_count() const { return ports_.size(); }
  QpPort* find_port(size_t number) override {
    return number >= 1 && number <= ports_.size() ? &port(number) : nullptr;
  }
  // Of its UD queue pairs.
  MulticastGroups& groups() { return groups_; }
  NodeDescription& description() { return description_; }
  const NodeDescription& description() const { return description_; }
  // As Registers::take(); ENODEV without a driver.
  Result<std::shared_ptr<SharedMemory>> take_windows(WindowOwner& owner);
  void reactions_changed() override;
  void traffic_classes_changed() override;

  // A device without a driver makes no queue pairs and takes no packets; its links stay.
  bool present() const { return present_; }
  // Its driver lets go of it: first all clients do.
  void leave();
  // Its driver takes it again: every counter begins at 0, and its settings are as at first.
  void arrive();
  void add_client(DeviceClient& client) { clients_.push_back(&client); }
  // A port's link has changed: all clients are told.
  void port_changed(const Port& port) {
    for (DeviceClient* client : clients_) client->port_changed(port);
  }
  // Told on the core's thread when it has left or arrived.
  void on_presence(std::function<void(bool present)> changed) {
    presence_changed_.push_back(std::move(changed));
  }
  // Again is harmless.
  void remove_client(DeviceClient& client) { std::erase(clients_, &client); }

  // ENOMEM when there are as many as the device has numbers for, ENODEV without a driver.
  Result<Qp*> create_qp(const QpInit& init);
  // Its completion queues may go after this; it itself goes when memory has done with it.
  void destroy_qp(Qp& qp);
  Qp* find_qp(uint32_t number) {
    uint32_t slot = number - kFirstQpn;
    return slot < qps_.size() ? qps_[slot].get() : nullptr;
  }
  // The queue pair that sends from that address of ours to that one of the far end's.
  std::optional<uint32_t> sender_of(const Ip& local, const Ip& remote, uint32_t remote_qpn) const;
  void reap_later() override;
  void packet_gone(uint32_t qpn, uint64_t serial, uint64_t position) override;

  // Virtual addresses for memory of the daemon: the same in every run.
  uint64_t allocate_address(uint64_t size);

 private:
  static constexpr uint32_t kFirstQpn = ROCEFS_FIRST_QPN;
  static constexpr uint32_t kMaxQps = ROCEFS_MAX_QPS;
  static constexpr size_t kRest = 256;  // freed numbers rest before they are used again

  void reap(TimeNs now);

  FabricResources& fabric_;
  const DeviceSpec spec_;
  NodeDescription description_;
  std::deque<Port> ports_;
  bool present_ = true;
  std::vector<DeviceClient*> clients_;
  std::vector<std::function<void(bool)>> presence_changed_;
  MulticastGroups groups_;
  std::vector<std::unique_ptr<Qp>> qps_;
  std::deque<uint32_t> free_slots_;
  std::vector<std::unique_ptr<Qp>> dying_;
  CompletionQueue discarded_{0};
  uint64_t serial_ = 0;  // of the newest queue pair
  uint64_t next_address_ = 0x10000000;
  Event reap_;
};

inline constexpr uint32_t kPciVendor = 0x1fc9, kPciDevice = 0x4d42;
inline constexpr char kFirmwareVersion[] = "1.0.0";
inline constexpr uint32_t kHardwareRevision = 1;
inline constexpr size_t kGidTableLen = 8;
inline constexpr uint32_t kPortCapabilities = 0x04010000;  // CM supported, GIDs from IP addresses

// The port's GIDs as a RoCE NIC has them: 0 link-local from the MAC, 1 IPv4, 2 global IPv6 if any.
std::vector<Ip> gids_of(const PortSpec& spec);
// EUI-64 of the MAC. The node GUID is that of port 1.
uint64_t guid_of(const PortSpec& spec);

}  // namespace rocefs
