// Device: an emulated NIC: its port, its memory regions and its queue pairs. Built-in traffic and
// clients use the same calls: register, create, modify, post, poll.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "core/scheduler.h"
#include "core/topology.h"
#include "rdma/fabric.h"
#include "rdma/memory.h"
#include "rdma/port.h"
#include "rdma/qp.h"

namespace rocefs {

class Device {
 public:
  Device(Fabric& fabric, const DeviceSpec& spec);
  ~Device();

  const DeviceSpec& spec() const { return spec_; }
  const std::string& name() const { return spec_.name; }
  Fabric& fabric() { return fabric_; }
  Port& port() { return port_; }
  const Port& port() const { return port_; }
  MemoryTable& memory() { return memory_; }

  // ENOMEM when there are as many as the device has numbers for.
  Result<Qp*> create_qp(const QpInit& init);
  // Its completion queues may go after this; it itself goes when memory has done with it.
  void destroy_qp(Qp& qp);
  Qp* find_qp(uint32_t number) {
    uint32_t slot = number - kFirstQpn;
    return slot < qps_.size() ? qps_[slot].get() : nullptr;
  }
  void reap_later();

  // Virtual addresses for memory of the daemon: the same in every run.
  uint64_t allocate_address(uint64_t size);

 private:
  static constexpr uint32_t kFirstQpn = 17;  // 0 and 1 are special, few more are reserved
  static constexpr uint32_t kMaxQps = 1u << 22;
  static constexpr size_t kRest = 256;  // freed numbers rest before they are used again

  void reap(TimeNs now);

  Fabric& fabric_;
  const DeviceSpec spec_;
  Port port_;
  MemoryTable memory_;
  std::vector<std::unique_ptr<Qp>> qps_;
  std::deque<uint32_t> free_slots_;
  std::vector<std::unique_ptr<Qp>> dying_;
  CompletionQueue discarded_{0};
  uint64_t next_address_ = 0x10000000;
  Event reap_;
};

// The device's GIDs as a RoCE NIC has them: 0 link-local from the MAC, 1 IPv4, 2 global IPv6 if
// any.
std::vector<Ip> gids_of(const DeviceSpec& spec);
// EUI-64 of the MAC, as node GUID.
uint64_t guid_of(const DeviceSpec& spec);

}  // namespace rocefs
