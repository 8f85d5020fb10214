// The words of rdma/uapi, which are those of <infiniband/verbs.h>, in the engine's own.
#pragma once

#include <cstdint>
#include <optional>

#include "core/base/result.h"
#include "rdma/packet/verbs.h"
#include "rdma/uapi/uapi.h"

namespace rocefs {

class Device;
class Port;

std::optional<QpType> qp_type_of(uint32_t ibv_type);
uint32_t wc_status_of(WcStatus status);

// EINVAL for what is no path of RoCE's from that port.
Result<AddressVector> address_of(const Device& device, const rocefs_address& address);

// Bits of Access; EINVAL for rights that do not exist here.
Result<uint8_t> access_of(uint32_t ibv_access);

// What a modify asks for.
struct Modification {
  QpState to = QpState::kReset;
  QpAttributes attributes;
  uint32_t mask = 0;  // of QpMask
};
Result<Modification> modification_of(const Device& device, QpState now, const rocefs_qp_attr& attr);
// All that a query tells, but for handle and mask.
void describe(const QpAttributes& attributes, QpState state, const Port& port, rocefs_qp_attr& out);

void describe(const Port& port, rocefs_port_attr& out);

// What a queue pair's send requests may be.
struct SendLimits {
  bool datagram = false;
  uint32_t max_sge = 0;
  uint32_t max_inline = 0;
  uint32_t inline_key = 0;  // of the memory of the slots
};

// A request from a slot. One that makes no sense is marked as malformed, and fails when its turn
// comes. Its inline data is at `inline_offset` of the slots.
SendRequest send_request_of(const Device& device, const rocefs_send_wqe& wqe,
                            const SendLimits& limits, uint64_t inline_offset);
ReceiveRequest receive_request_of(const rocefs_receive_wqe& wqe, uint32_t max_sge);

}  // namespace rocefs
