// CNP: the congestion notification packet of RoCEv2 (IBTA A17.9), sent to the sender of a flow.
#pragma once

#include <cstdint>

#include "rdma/packet/packet.h"
#include "rdma/packet/verbs.h"

namespace rocefs {

struct CnpAddress {
  Ip from{}, to{};        // both IPv4-mapped, or both not
  uint32_t dest_qpn = 0;  // the queue pair that sends the flow
  uint16_t source_port = 0;
  uint8_t traffic_class = 0;  // DSCP in the upper six bits
};

// Unsealed, without payload.
PacketPtr make_cnp(PacketPool& pool, const CnpAddress& address);

}  // namespace rocefs
