#include "rdma/fabric/injector.h"

#include <algorithm>

#include "rdma/packet/traffic_class.h"

namespace rocefs {
namespace {

const uint8_t* udp_of(const Packet& packet) {
  bool ipv6 = packet.header[0] >> 4 == 6;
  return packet.header.data() + (ipv6 ? wire::kIpv6Len : wire::kIpv4Len);
}
const uint8_t* bth_of(const Packet& packet) {
  return udp_of(packet) + wire::kUdpLen;
}
uint8_t* bth_of(Packet& packet) {
  return const_cast<uint8_t*>(bth_of(std::as_const(packet)));
}

uint32_t number24(const uint8_t* bytes) {
  return uint32_t{bytes[0]} << 16 | uint32_t{bytes[1]} << 8 | bytes[2];
}
// 0 for an Ethernet frame.
uint32_t qpn_of(const Packet& packet) {
  return packet.ethernet ? 0 : number24(bth_of(packet) + 5);
}

// Filters that only a RoCE packet can pass.
bool matches_roce(const InjectSpec& spec, const Packet& packet) {
  if (packet.ethernet) {
    return !spec.opcodes && !spec.qpn && !spec.psn && !spec.source_port && !spec.syndrome &&
           (spec.action != InjectAction::kCorrupt || spec.part == CorruptPart::kPayload);
  }
  const uint8_t* udp = udp_of(packet);
  const uint8_t* bth = udp + wire::kUdpLen;
  if (spec.opcodes && !spec.opcodes->test(bth[0])) return false;
  if (spec.qpn && *spec.qpn != qpn_of(packet)) return false;
  if (spec.psn && *spec.psn != number24(bth + 9)) return false;
  if (spec.source_port && *spec.source_port != (udp[0] << 8 | udp[1])) return false;
  return !spec.syndrome || *spec.syndrome == bth[wire::kBthLen] >> 5;
}

bool matches(const InjectSpec& spec, const Packet& packet) {
  if (!matches_roce(spec, packet)) return false;
  if (spec.dscp && *spec.dscp != traffic_class_of(packet) >> 2) return false;
  if (spec.priority && *spec.priority != priority_of(packet)) return false;
  switch (spec.action) {
    case InjectAction::kMark:
      return ecn_of(packet) != Ecn::kNotCapable && ecn_of(packet) != Ecn::kCongested;
    case InjectAction::kCorrupt:
      return spec.part != CorruptPart::kPayload || packet.payload.length > 0;
    default:
      return true;
  }
}

}  // namespace

InjectedFault::InjectedFault(InjectSpec what, uint64_t seed, std::function<void(bool up)> set_state)
    : spec(std::move(what)),
      rng_(seed, "inject " + spec.name),
      set_state_(std::move(set_state)),
      rise_(event_of<&InjectedFault::rise>(this)) {}

void InjectedFault::rise(TimeNs) {
  set_state_(true);
}

Injector::Injector(Link& link) : link_(link), scheduler_(link.far_scheduler()) {}

Injector::~Injector() {
  clear();
}

void Injector::arm(const FaultPtr& fault) {
  if (fault->spec.at_once) {
    bool down = fault->spec.action == InjectAction::kDown;
    fault->happened();
    fault->set_state_(!down);
    if (down && fault->spec.delay > 0) scheduler_.after(fault->rise_, fault->spec.delay);
  }
  faults_.push_back(fault);
  if (fault->spent() || next_) return;
  next_ = &link_.sink();
  link_.set_sink(*this);
}

void Injector::disarm(const FaultPtr& fault) {
  // A link-down fault ends with its removal.
  if (fault->rise_.scheduled()) fault->set_state_(true);
  scheduler_.cancel(fault->rise_);
  std::erase(faults_, fault);
  settle();
}

void Injector::clear() {
  for (const FaultPtr& fault : faults_) scheduler_.cancel(fault->rise_);
  faults_.clear();
  for (auto& held : held_) {
    scheduler_.cancel(held->due);
    held->packet.reset();
  }
  settle();
}

// Leaves the packet path when no fault is armed and no packet is held.
void Injector::settle() {
  bool busy = std::any_of(held_.begin(), held_.end(),
                          [](const auto& held) { return held->packet != nullptr; }) ||
              std::any_of(faults_.begin(), faults_.end(),
                          [](const FaultPtr& fault) { return !fault->spent(); });
  if (!next_ || busy) return;
  link_.set_sink(*std::exchange(next_, nullptr));
}

void Injector::receive(Packet* arriving, TimeNs now) {
  PacketPtr packet(arriving);
  for (const FaultPtr& fault : faults_) {
    if (fault->spent() || !matches(fault->spec, *packet)) continue;
    if (fault->seen_++ < fault->spec.skip) continue;
    if (fault->spec.probability < 1 && !fault->rng_.chance(fault->spec.probability)) continue;
    apply(*fault, packet);
    if (!packet) return settle();
  }
  pass(std::move(packet), now);
  settle();
}

// Takes the packet when it is not to be passed on.
void Injector::apply(InjectedFault& fault, PacketPtr& packet) {
  const InjectSpec& spec = fault.spec;
  switch (spec.action) {
    case InjectAction::kDrop:
      fault.happened();
      return packet.reset();
    case InjectAction::kDuplicate:
      fault.happened();
      hold(copy_of(*packet), spec.delay);
      return;
    case InjectAction::kReorder: {
      fault.happened();
      uint32_t qpn = qpn_of(*packet);
      Held& held = hold(std::move(packet), spec.delay);
      held.qpn = qpn;
      held.left = spec.by;
      return;
    }
    case InjectAction::kCorrupt:
      return corrupt(fault, *packet);
    case InjectAction::kDelay:
      fault.happened();
      hold(std::move(packet), spec.delay);
      return;
    case InjectAction::kMark:
      fault.happened();
      return mark_congested(*packet);
    case InjectAction::kDown:
    case InjectAction::kUp:
      fault.happened();
      packet.reset();
      fault.set_state_(spec.action == InjectAction::kUp);
      if (spec.delay > 0) scheduler_.after(fault.rise_, spec.delay);
      return;
  }
}

// Restores the packet as its NIC sent it before flipping a bit; a packet whose payload has gone is
// left as it is.
void Injector::corrupt(InjectedFault& fault, Packet& packet) {
  CorruptPart part = fault.spec.part;
  if (part != CorruptPart::kReserved && !materialize(packet)) return;
  fault.happened();
  packet.intact = false;
  auto turn = [&](uint8_t* bytes, size_t bits) {
    uint64_t bit = fault.rng_.below(bits);
    bytes[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
  };
  uint8_t* bth = bth_of(packet);
  switch (part) {
    case CorruptPart::kPayload:
      return turn(packet.frame->bytes.data(), size_t{packet.payload.length} * 8);
    case CorruptPart::kIcrc: {
      size_t at = packet.sealed_length() - wire::kIcrcLen;
      return turn(packet.frame->bytes.data() + at, wire::kIcrcLen * 8);
    }
    case CorruptPart::kHeader:
      return turn(bth + (fault.rng_.chance(0.5) ? 5 : 9), 24);
    case CorruptPart::kReserved:
      return turn(bth + 4, 6);
  }
}

Injector::Held& Injector::hold(PacketPtr&& packet, TimeNs delay) {
  auto free = std::find_if(held_.begin(), held_.end(),
                           [](const auto& one) { return !one->packet && !one->due.scheduled(); });
  if (free == held_.end()) free = held_.insert(free, std::make_unique<Held>(this));
  Held& held = **free;
  held.packet = std::move(packet);
  held.left = 0;
  scheduler_.after(held.due, delay);
  return held;
}

void Injector::Held::on_due(TimeNs now) {
  owner->pass_on(std::move(packet), now);
  owner->settle();
}

// Passes a packet to the far end, and gives it back there if the far end does not keep it.
void Injector::pass_on(PacketPtr packet, TimeNs now) {
  next_->receive(packet.release(), now);
}

// Passes a packet to the far end, then the packets that were held until it passed.
void Injector::pass(PacketPtr&& packet, TimeNs now) {
  uint32_t qpn = qpn_of(*packet);
  pass_on(std::move(packet), now);
  for (auto& held : held_) {
    if (!held->packet || held->left == 0 || held->qpn != qpn || --held->left > 0) continue;
    scheduler_.cancel(held->due);
    pass_on(std::move(held->packet), now);
  }
}

}  // namespace rocefs
