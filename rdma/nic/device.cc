#include "rdma/nic/device.h"

#include <algorithm>
#include <cassert>
#include <cerrno>

namespace rocefs {

Device::Device(FabricResources& fabric, const DeviceSpec& spec)
    : QpHost(spec.name, {fabric.pool(), fabric.scheduler(), fabric.outstanding(),
                         fabric.counters().stale_payloads}),
      fabric_(fabric),
      spec_(spec),
      description_(spec_.name),
      reap_(event_of<&Device::reap>(this)) {
  for (size_t i = 0; i < spec_.ports.size(); ++i) {
    ports_.emplace_back(*this, spec_.ports[i], static_cast<uint8_t>(i + 1));
  }
}

Device::~Device() = default;

void Device::leave() {
  present_ = false;
  while (!clients_.empty()) {
    DeviceClient* client = clients_.back();
    client->device_removed(*this);
    assert(std::find(clients_.begin(), clients_.end(), client) == clients_.end());
  }
  for (const auto& qp : qps_) {
    if (qp) destroy_qp(*qp);
  }
  cfr().revoke_windows(*this);
  for (Port& port : ports_) {
    port.cnps().clear();
    port.gsi().clear();
  }
  for (auto& changed : presence_changed_) changed(false);
}

void Device::arrive() {
  for (Port& port : ports_) {
    for (const auto& row : kPortCounters) (port.counters().*row.member).set(0);
    port.ecn().reset();
    port.class_override().reset();
  }
  cfr().reset();
  description_.reset();
  spraying().reset();
  selective().reset();
  present_ = true;
  for (auto& changed : presence_changed_) changed(true);
}

Result<std::shared_ptr<SharedMemory>> Device::take_windows(WindowOwner& owner) {
  if (!present_) return errorf(ENODEV, "{} has no driver", name());
  return registers().take(owner);
}

void Device::reactions_changed() {
  for (const auto& qp : qps_) {
    if (qp) qp->congestion().refresh();
  }
}

void Device::traffic_classes_changed() {
  for (const auto& qp : qps_) {
    if (qp) qp->traffic_class_changed();
  }
}

Result<Qp*> Device::create_qp(const QpInit& init) {
  if (!present_) return errorf(ENODEV, "{} has no driver", name());
  uint32_t slot = 0;
  if (free_slots_.size() > kRest || (qps_.size() >= kMaxQps && !free_slots_.empty())) {
    slot = free_slots_.front();
    free_slots_.pop_front();
  } else if (qps_.size() < kMaxQps) {
    slot = static_cast<uint32_t>(qps_.size());
    qps_.emplace_back();
  } else {
    return Error{ENOMEM, "no queue pair is free"};
  }
  qps_[slot] = std::make_unique<Qp>(*this, kFirstQpn + slot, ++serial_, init);
  return qps_[slot].get();
}

void Device::destroy_qp(Qp& qp) {
  uint32_t slot = qp.number() - kFirstQpn;
  qp.retire(discarded_);
  if (qp.type() == QpType::kUd) groups_.forget(qp.number());
  std::unique_ptr<Qp> owned = std::move(qps_[slot]);
  free_slots_.push_back(slot);
  if (owned->memory_pending()) dying_.push_back(std::move(owned));
}

// Not at once: the call may come from within the queue pair.
std::optional<uint32_t> Device::sender_of(const Ip& local, const Ip& remote,
                                          uint32_t remote_qpn) const {
  for (const auto& qp : qps_) {
    if (!qp || qp->type() == QpType::kUd || !qp->receives_packets()) continue;
    const QpAttributes& attributes = qp->attributes();
    if (attributes.remote_qpn == remote_qpn && attributes.path.local == local &&
        attributes.path.remote == remote) {
      return qp->number();
    }
  }
  return std::nullopt;
}

void Device::reap_later() {
  if (!dying_.empty() && !reap_.scheduled()) fabric_.scheduler().after(reap_, 0);
}

// The queue pair may have gone since.
void Device::packet_gone(uint32_t qpn, uint64_t serial, uint64_t position) {
  Qp* qp = find_qp(qpn);
  if (qp && qp->serial() == serial) qp->requester().packet_gone(position);
}

void Device::reap(TimeNs) {
  std::erase_if(dying_, [](const auto& qp) { return !qp->memory_pending(); });
}

uint64_t Device::allocate_address(uint64_t size) {
  constexpr uint64_t kPage = 4096;
  uint64_t address = next_address_;
  next_address_ += (size / kPage + 2) * kPage;  // a page between regions belongs to none
  return address;
}

uint64_t guid_of(const PortSpec& spec) {
  const auto& mac = spec.mac;
  uint64_t guid = 0;
  for (uint8_t byte :
       {mac[0], mac[1], mac[2], uint8_t{0xff}, uint8_t{0xfe}, mac[3], mac[4], mac[5]}) {
    guid = guid << 8 | byte;
  }
  return guid;
}

std::vector<Ip> gids_of(const PortSpec& spec) {
  constexpr uint64_t kUniversalLocal = uint64_t{2} << 56;  // RFC 4291, appendix A
  uint64_t interface = guid_of(spec) ^ kUniversalLocal;
  Ip link_local{0xfe, 0x80};
  for (size_t i = 0; i < 8; ++i)
    link_local[8 + i] = static_cast<uint8_t>(interface >> (56 - 8 * i));
  std::vector<Ip> gids{link_local, mapped_ipv4(spec.ipv4)};
  if (spec.ipv6) gids.push_back(*spec.ipv6);
  return gids;
}

}  // namespace rocefs
