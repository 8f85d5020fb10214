#include "rdma/nic/device.h"

#include <algorithm>
#include <cassert>
#include <cerrno>

namespace rocefs {

Device::Device(FabricResources& fabric, const DeviceSpec& spec)
    : PortHost(spec.name, fabric), spec_(spec), description_(spec_.name) {
  for (size_t i = 0; i < spec_.ports.size(); ++i) {
    ports_.emplace_back(*this, spec_.ports[i], static_cast<uint8_t>(i + 1));
  }
}

Device::~Device() {
  qps().clear();
}

void Device::leave() {
  present_ = false;
  while (!clients_.empty()) {
    DeviceClient* client = clients_.back();
    client->device_removed(*this);
    assert(std::find(clients_.begin(), clients_.end(), client) == clients_.end());
  }
  qps().each([this](Qp& qp) { destroy_qp(qp); });
  cfr().revoke_windows(*this);
  for (Port& port : ports_) {
    port.cnps().clear();
    port.gsi().clear();
    port.presence_changed();
  }
  for (auto& changed : presence_changed_) changed(false);
}

void Device::arrive() {
  for (Port& port : ports_) {
    zero_counters(kPortCounters, port.counters());
    port.ecn().reset();
    port.class_override().reset();
  }
  cfr().reset();
  description_.reset();
  pacing().reset();
  spraying().reset();
  selective().reset();
  present_ = true;
  for (Port& port : ports_) port.presence_changed();
  for (auto& changed : presence_changed_) changed(true);
}

Result<std::shared_ptr<SharedMemory>> Device::take_windows(WindowController& owner) {
  if (!present()) return errorf(ENODEV, "{} has no driver", name());
  return registers().take(owner);
}

void Device::link_changed(uint8_t number) {
  for (DeviceClient* client : clients_) client->port_changed(port(number));
}

bool Device::add_gid(size_t number, const Ip& address) {
  if (!port(number).gids_.add(address)) return false;
  for (DeviceClient* client : clients_) client->gids_changed(port(number));
  return true;
}

bool Device::remove_gid(size_t number, const Ip& address) {
  if (port(number).gids().index_of(address) == 0 || !port(number).gids_.remove(address))
    return false;
  for (DeviceClient* client : clients_) client->gids_changed(port(number));
  return true;
}

Result<Qp*> Device::create_qp(const QpInit& init) {
  if (!present()) return errorf(ENODEV, "{} has no driver", name());
  return qps().create(init);
}

void Device::destroy_qp(Qp& qp) {
  if (qp.type() == QpType::kUd) groups().forget(qp.number());
  qps().destroy(qp);
}

uint64_t Device::allocate_address(uint64_t size) {
  constexpr uint64_t kPage = 4096;
  uint64_t address = next_address_;
  next_address_ += (size / kPage + 2) * kPage;  // a page between regions belongs to none
  return address;
}

}  // namespace rocefs
