// Port: a NIC's port. It pulls the next packet from its queue pairs when its link is free, so that
// a NIC never drops what it sends itself, and hands what arrives to the queue pair it is for.
#pragma once

#include <cstdint>
#include <string>

#include "rdma/link.h"
#include "rdma/packet.h"
#include "rdma/port_counters.h"
#include "rdma/verbs.h"

namespace rocefs {

class Device;
class Qp;

class Port final : public LinkSource, public LinkSink {
 public:
  Port(Device& device, uint32_t mtu) : device_(device), mtu_(mtu) {}

  // The link that this port transmits on; the port is its source.
  void attach(Link& egress) { egress_ = &egress; }
  Link& egress() { return *egress_; }
  uint32_t mtu() const { return mtu_; }
  PortCounters& counters() { return counters_; }
  const PortCounters& counters() const { return counters_; }

  // Acknowledgements go before requests; both in turn, queue pair by queue pair.
  Packet* pull(TimeNs now) override;
  void receive(Packet* packet, TimeNs now) override;
  // Octets from outside, from the IP header to the ICRC, whatever they are.
  void receive_bytes(std::span<const uint8_t> bytes, TimeNs now);

  void add_request(Qp& qp);
  void add_response(Qp& qp);
  void forget(Qp& qp);

 private:
  Packet* next_packet(TimeNs now);
  bool check(Packet* packet, wire::Parsed& parsed);
  Qp* find_qp(const wire::Headers& headers);

  Device& device_;
  const uint32_t mtu_;
  Link* egress_ = nullptr;
  PortCounters counters_;
  // FIFOs through the queue pairs: an active list, never a scan.
  Qp* first_request_ = nullptr;
  Qp* last_request_ = nullptr;
  Qp* first_response_ = nullptr;
  Qp* last_response_ = nullptr;
};

}  // namespace rocefs
