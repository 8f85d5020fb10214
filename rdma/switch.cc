#include "rdma/switch.h"

#include <algorithm>
#include <cassert>

namespace rocefs {
namespace {

Ip destination_of(const Packet& packet) {
  const uint8_t* header = packet.header.data();
  Ip ip;
  if (header[0] >> 4 == 6) {
    std::copy_n(header + 24, 16, ip.begin());
    return ip;
  }
  return mapped_ipv4({header[16], header[17], header[18], header[19]});
}

}  // namespace

Switch::~Switch() {
  drop_queues();
}

void Switch::drop_queues() {
  for (auto& port : ports_) {
    while (Packet* packet = port->queue.pop()) pool_.release(packet);
    port->queued_bytes = port->ingress_bytes = 0;
  }
}

LinkSink& Switch::add_port(Link& in, Link& out) {
  auto port = std::make_unique<PortUnit>();
  port->owner = this;
  port->index = static_cast<uint16_t>(ports_.size());
  port->in = &in;
  port->out = &out;
  ports_.push_back(std::move(port));
  return *ports_.back();
}

Switch::PortUnit& Switch::unit_of(const Link& out) {
  auto it = std::find_if(ports_.begin(), ports_.end(),
                         [&](const auto& port) { return port->out == &out; });
  assert(it != ports_.end());
  return **it;
}

LinkSource& Switch::source(const Link& out) {
  return unit_of(out);
}

void Switch::add_route(const Ip& destination, const Link& out) {
  routes_[destination] = &unit_of(out);
}

void Switch::forward(PortUnit& from, Packet* packet, TimeNs) {
  auto route = routes_.find(destination_of(*packet));
  if (route == routes_.end()) {
    unroutable_.add();
    return pool_.release(packet);
  }
  PortUnit& to = *route->second;
  uint64_t length = packet->wire_length();
  if (from.ingress_bytes + length > from.in->parameters().buffer_bytes) {
    from.in->counters().overflowed.add();
    return pool_.release(packet);
  }
  if (to.queued_bytes + length > to.out->parameters().buffer_bytes) {
    to.out->counters().overflowed.add();
    return pool_.release(packet);
  }
  packet->ingress = from.index;
  from.ingress_bytes += length;
  to.queued_bytes += length;
  to.queue.push(packet);
  to.out->kick();
}

Packet* Switch::PortUnit::pull(TimeNs) {
  Packet* packet = queue.pop();
  if (!packet) return nullptr;
  uint64_t length = packet->wire_length();
  queued_bytes -= length;
  owner->ports_[packet->ingress]->ingress_bytes -= length;
  return packet;
}

}  // namespace rocefs
