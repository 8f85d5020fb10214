// Device: an emulated NIC: ports, memory regions and queue pairs. Built-in traffic and verbs
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
#include "rdma/fabric/fabric_resources.h"
#include "rdma/nic/node_description.h"
#include "rdma/nic/port.h"
#include "rdma/nic/port_host.h"
#include "rdma/transport/qp.h"

namespace rocefs {

class Device;

// DeviceClient: a user of a device, which releases it when the device leaves (ib_client of the
// kernel).
class DeviceClient {
 public:
  virtual ~DeviceClient() = default;
  // Gives back every queue pair and region of the device, and calls remove_client().
  virtual void device_removed(Device& device) = 0;
  // The link of a port has gone up or down. May only take note.
  virtual void port_changed(const Port&) {}
  // The GID table of a port has changed. May only take note.
  virtual void gids_changed(const Port&) {}
};

// Core thread.
class Device final : public PortHost {
 public:
  Device(FabricResources& fabric, const DeviceSpec& spec);
  // Frees the queue pairs before the ports that they are on.
  ~Device() override;

  const DeviceSpec& spec() const { return spec_; }
  // Numbered from 1.
  Port& port(size_t number = 1) { return ports_[number - 1]; }
  const Port& port(size_t number = 1) const { return ports_[number - 1]; }
  size_t port_count() const { return ports_.size(); }
  QpPort* find_port(size_t number) override {
    return number >= 1 && number <= ports_.size() ? &port(number) : nullptr;
  }
  NodeDescription& description() { return description_; }
  const NodeDescription& description() const { return description_; }
  // As Registers::take(); ENODEV without a driver.
  Result<std::shared_ptr<SharedMemory>> take_windows(WindowController& owner);

  // Driver unbinds: all clients release the device first.
  void leave();
  // Driver binds again: counters become 0, settings become defaults.
  void arrive();
  void add_client(DeviceClient& client) { clients_.push_back(&client); }
  // Idempotent.
  void remove_client(DeviceClient& client) { std::erase(clients_, &client); }
  // Calls port_changed() of all clients.
  void link_changed(uint8_t number) override;
  // Adds or takes away the GID of an address of a port's interface. False if nothing changes. GID 0
  // stays: it is the MAC's.
  bool add_gid(size_t port, const Ip& address);
  bool remove_gid(size_t port, const Ip& address);
  // Adds a function that is called on the core thread after leave() and arrive().
  void on_presence(std::function<void(bool present)> changed) {
    presence_changed_.push_back(std::move(changed));
  }

  // ENOMEM as QpTable::create(), ENODEV without a driver.
  Result<Qp*> create_qp(const QpInit& init);
  // As QpTable::destroy().
  void destroy_qp(Qp& qp);
  Qp* find_qp(uint32_t number) { return qps().find(number); }

  // Virtual addresses for memory of the daemon: the same in every run.
  uint64_t allocate_address(uint64_t size);

 private:
  const DeviceSpec spec_;
  NodeDescription description_;
  std::deque<Port> ports_;
  std::vector<DeviceClient*> clients_;
  std::vector<std::function<void(bool)>> presence_changed_;
  uint64_t next_address_ = 0x10000000;
};

// Device of a port: devices alone make ports.
inline Device& device_of(Port& port) {
  return static_cast<Device&>(port.host());
}

inline constexpr uint32_t kPciVendor = 0x1fc9, kPciDevice = 0x4d42;
inline constexpr char kFirmwareVersion[] = "1.0.0";
inline constexpr uint32_t kHardwareRevision = 1;
inline constexpr size_t kGidTableLen = GidTable::kSize;
inline constexpr uint32_t kPortCapabilities = 0x04010000;  // CM supported, GIDs from IP addresses

}  // namespace rocefs
