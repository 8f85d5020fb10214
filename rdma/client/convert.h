// Conversion of rdma/uapi's values, which are those of <infiniband/verbs.h>, to the engine's.
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

// EINVAL unless it is a RoCE path from that port.
Result<AddressVector> address_of(const Device& device, const rocefs_address& address);

// Bits of Access, of a queue pair and of a region; EINVAL for unsupported rights.
Result<uint8_t> access_of(uint32_t ibv_access);
Result<uint8_t> region_access_of(uint32_t ibv_access);

// Changes of a modify request.
struct Modification {
  QpState to = QpState::kReset;
  QpAttributes attributes;
  uint32_t mask = 0;  // QpMask
};
Result<Modification> modification_of(const Device& device, QpState now, const rocefs_qp_attr& attr);
// Fills in all attributes of a query except handle and mask.
// ibv_qp_type.
uint32_t ibv_type_of(QpType type);
void describe(const QpAttributes& attributes, QpState state, const Port& port, rocefs_qp_attr& out);

void describe(const Port& port, rocefs_port_attr& out);

// Limits of a queue pair's send requests.
struct SendLimits {
  bool datagram = false;
  uint32_t max_sge = 0;
  uint32_t max_inline = 0;
  uint32_t inline_key = 0;  // key of the slots' memory
};

// Converts a slot to a request. An invalid one is marked as malformed, and fails in its turn. Its
// inline data is at `inline_offset` of the slots.
SendRequest send_request_of(const Device& device, const rocefs_send_wqe& wqe,
                            const SendLimits& limits, uint64_t inline_offset);
ReceiveRequest receive_request_of(const rocefs_receive_wqe& wqe, uint32_t max_sge);

}  // namespace rocefs
