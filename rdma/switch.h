// Switch: forwards by destination address, first in, first out, one queue per egress. What waits is
// counted twice, against the egress it waits for and against the ingress it came through; either
// count over the buffer of its link drops the packet.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/counter.h"
#include "rdma/link.h"
#include "rdma/verbs.h"

namespace rocefs {

class Switch {
 public:
  // `unroutable` counts what has no route.
  Switch(std::string name, PacketPool& pool, Counter& unroutable)
      : name_(std::move(name)), pool_(pool), unroutable_(unroutable) {}
  ~Switch();

  const std::string& name() const { return name_; }
  // One cable: the direction into this switch and the one out of it.
  LinkSink& add_port(Link& in, Link& out);
  // The source that a link out of this switch pulls from.
  LinkSource& source(const Link& out);
  void drop_queues();
  void add_route(const Ip& destination, const Link& out);

 private:
  struct PortUnit final : LinkSource, LinkSink {
    Switch* owner = nullptr;
    uint16_t index = 0;
    Link* in = nullptr;
    Link* out = nullptr;
    PacketFifo queue;
    uint64_t queued_bytes = 0;   // waiting for `out`
    uint64_t ingress_bytes = 0;  // waiting anywhere in the switch, come through `in`
    Packet* pull(TimeNs now) override;
    bool ready() const override { return !queue.empty(); }
    void receive(Packet* packet, TimeNs now) override { owner->forward(*this, packet, now); }
  };

  void forward(PortUnit& from, Packet* packet, TimeNs now);
  PortUnit& unit_of(const Link& out);

  const std::string name_;
  PacketPool& pool_;
  std::vector<std::unique_ptr<PortUnit>> ports_;
  std::map<Ip, PortUnit*> routes_;
  Counter& unroutable_;
};

}  // namespace rocefs
