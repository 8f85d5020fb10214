// Hosts around switches, made-up packets, and settings of switches.
#pragma once

#include <map>
#include <string>

#include "rdma/fabric/switch.h"
#include "rdma/packet/traffic_class.h"
#include "test/rdma/world.h"

namespace rocefs::test {

inline DeviceSpec host(unsigned number) {
  auto n = static_cast<uint8_t>(number);
  return {"h" + std::to_string(number),
          fmt::format("0000:{:02x}:00.0", number),
          {{"eth" + std::to_string(number), {2, 0, 0, 0, 0, n}, {10, 77, 0, n}, {}}}};
}
inline LinkSpec cable(const std::string& a, const std::string& b, uint64_t rate_bps) {
  LinkSpec spec;
  spec.a = a;
  spec.b = b;
  spec.rate_bps = rate_bps;
  return spec;
}

// Hosts h1, h2, … on a switch s; 1 us each cable.
inline Topology star(unsigned hosts, uint64_t rate_bps = 10'000'000'000) {
  Topology topology;
  topology.switches = {{"s"}};
  for (unsigned n = 1; n <= hosts; ++n) {
    topology.devices.push_back(host(n));
    topology.links.push_back(cable("h" + std::to_string(n), "s", rate_bps));
  }
  return topology;
}

struct Flavour {
  size_t priority = 0;
  Ecn ecn = Ecn::kNotCapable;
  uint16_t source_port = 0xc000;
  uint16_t payload = 4096;
  bool group = false;  // to 239.0.0.1, whoever `to` is
};

// A packet from one host to another, which will find no queue pair there.
inline PacketPtr packet_between(World& world, unsigned from, unsigned to, const Flavour& flavour) {
  wire::Headers headers;
  headers.v4.tos = static_cast<uint8_t>(flavour.priority << 5 | static_cast<uint8_t>(flavour.ecn));
  headers.v4.ttl = 64;
  headers.v4.protocol = 17;
  headers.v4.src = {10, 77, 0, static_cast<uint8_t>(from)};
  headers.v4.dst = {10, 77, 0, static_cast<uint8_t>(to)};
  if (flavour.group) headers.v4.dst = {239, 0, 0, 1};
  headers.udp.src_port = flavour.source_port;
  headers.udp.dst_port = wire::kRocePort;
  headers.bth.opcode = wire::Opcode::kRcSendOnly;
  headers.bth.pkey = 0xffff;
  wire::finish_lengths(headers, flavour.payload);
  PacketPtr packet = world.fabric.pool().acquire();
  packet->payload.length = flavour.payload;
  packet->header_len = static_cast<uint16_t>(wire::emit(headers, packet->header));
  return packet;
}
inline constexpr uint64_t kFullPacket = 20 + 8 + 12 + 4096 + 4;

// Replaces a host's NIC: transmits at the link's rate, and obeys PAUSE.
class Blaster final : public LinkSource {
 public:
  Blaster(World& world, unsigned from, unsigned to, const std::string& link)
      : world_(world), from_(from), to_(to), link_(world.link(link)) {
    link_.connect(*this, link_.sink());
  }
  // At least one packet; the world is not idle before they have gone.
  void send(const Flavour& flavour, uint64_t packets) {
    streams_[flavour.priority] = {flavour, packets};
    ++world_.outstanding.flows;
    link_.kick();
  }
  Packet* pull(TimeNs) override {
    for (auto& [priority, stream] : streams_) {
      if (stream.left == 0 || (link_.paused() >> priority & 1)) continue;
      if (--stream.left == 0) --world_.outstanding.flows;
      return packet_between(world_, from_, to_, stream.flavour).release();
    }
    return nullptr;
  }
  uint64_t left(size_t priority = 0) const { return streams_.at(priority).left; }

 private:
  struct Stream {
    Flavour flavour;
    uint64_t left = 0;
  };
  World& world_;
  const unsigned from_, to_;
  Link& link_;
  std::map<size_t, Stream> streams_;
};

// The knobs of a switch, set by text.
class SwitchKnobs {
 public:
  explicit SwitchKnobs(Switch& owner) : owner_(owner) {
    for (const KnobRow& row : kSwitchKnobs) values_.push_back(*parse_knob(row, row.initial));
  }
  Result<void> store(const std::string& path, const std::string& text) {
    std::vector<KnobValue> next = values_;
    for (size_t i = 0; i < next.size(); ++i) {
      if (kSwitchKnobs[i].path == path) next[i] = *parse_knob(kSwitchKnobs[i], text);
    }
    if (Result<void> checked = owner_.check(next); !checked) return checked;
    values_ = next;
    owner_.apply(values_);
    return {};
  }
  SwitchKnobs& set(const std::string& path, const std::string& text) {
    if (Result<void> stored = store(path, text); !stored) FAIL(stored.error().reason);
    return *this;
  }

 private:
  Switch& owner_;
  std::vector<KnobValue> values_;
};

// Hosts on one switch.
struct Star : World {
  Switch& hub;
  SwitchKnobs knobs;
  explicit Star(unsigned hosts, uint64_t rate_bps = 10'000'000'000, uint64_t seed = 1)
      : World(seed, star(hosts, rate_bps)), hub(*fabric.find_switch("s")), knobs(hub) {}

  // A packet arrives at the switch now.
  void arrive(unsigned from, unsigned to, const Flavour& flavour = {}) {
    PacketPtr packet = packet_between(*this, from, to, flavour);
    link(fmt::format("h{}-s", from)).sink().receive(packet.release(), scheduler.now());
  }
  EgressQueue& queue(unsigned host, size_t priority = 0) { return hub.queue(host - 1, priority); }
  EgressCounters& egress_counters(unsigned host, size_t priority = 0) {
    return hub.port(host - 1).rest->egress_counters[priority];
  }
  IngressPort& ingress(unsigned host) { return hub.port(host - 1).ingress; }
  uint64_t pause_sent(unsigned host, size_t priority = 0) {
    return hub.port(host - 1).rest->ingress_counters[priority].pause_sent.get();
  }
  uint64_t received(unsigned host) {
    return counters("h" + std::to_string(host)).port_rcv_packets.get();
  }
  uint64_t dropped() {
    uint64_t sum = 0;
    for (size_t port = 0; port < hub.port_count(); ++port) {
      for (const EgressCounters& one : hub.port(port).rest->egress_counters)
        sum += one.dropped.get();
    }
    return sum;
  }
  // Pauses the host's link, as PFC would.
  void pause(unsigned host, size_t priority, bool paused = true) {
    link(fmt::format("h{}-s", host)).send_pause(priority, paused);
    scheduler.run_until(scheduler.now() + 2 * kMicrosecond);
  }
  void turn(const std::string& name, bool up) {
    LinkParameters parameters = link(name).parameters();
    parameters.up = up;
    test::set(link(name), parameters);
  }
};

}  // namespace rocefs::test
