#include "rdma/client/convert.h"

#include <cerrno>
#include <cstring>

#include "core/base/port_speed.h"
#include "rdma/nic/device.h"
#include "rdma/packet/memory.h"
#include "rdma/packet/operations.h"

namespace rocefs {
namespace {

// ibv_qp_attr_mask, without alternate paths, capabilities and rate limits.
enum : uint32_t {
  kState = 1 << 0,
  kCurrentState = 1 << 1,
  kAddress = 1 << 7,
};
struct MaskPair {
  uint32_t ibv, ours;
};
constexpr MaskPair kMasks[] = {
    {1 << 2, kQpNotifyDrained}, {1 << 3, kQpAccess},      {1 << 4, kQpPkeyIndex},
    {1 << 5, kQpPort},          {1 << 6, kQpQkey},        {kAddress, kQpPath},
    {1 << 8, kQpPathMtu},       {1 << 9, kQpTimeout},     {1 << 10, kQpRetryCount},
    {1 << 11, kQpRnrRetry},     {1 << 12, kQpReceivePsn}, {1 << 13, kQpMaxRdAtomic},
    {1 << 15, kQpMinRnrTimer},  {1 << 16, kQpSendPsn},    {1 << 17, kQpMaxDestRdAtomic},
    {1 << 20, kQpRemoteQpn},
};

// ibv_access_flags 20 to 29 are optional: a device that lacks them ignores them.
constexpr uint32_t kOptionalAccess = 0x3ff00000;
// Rights of regions that a queue pair may have without effect: IBV_ACCESS_ON_DEMAND and HUGETLB;
// and FLUSH_GLOBAL and _PERSISTENT, which nobody can ask for.
constexpr uint32_t kIdleAccess = 1 << 6 | 1 << 7 | 1 << 8 | 1 << 9;
constexpr uint32_t kAllAccess =
    kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic | kWindowBind;

constexpr uint8_t kDefaultHopLimit = 64;

// ibv_mtu: 1 is 256.
uint32_t mtu_code(uint32_t bytes) {
  uint32_t code = 1;
  while (code < 5 && (256u << code) <= bytes) ++code;
  return code;
}

template <class T>
T narrow(uint32_t value) {  // a value too large stays out of range for the check that follows
  return value > std::numeric_limits<T>::max() ? std::numeric_limits<T>::max()
                                               : static_cast<T>(value);
}

std::optional<SendOp> send_op_of(uint32_t opcode) {
  bool known = opcode < kSendOps.size() && kSendOps[opcode].valid;
  return known ? std::optional(static_cast<SendOp>(opcode)) : std::nullopt;
}

// False if there are more than `most`.
bool add_sges(std::span<const rocefs_sge> from, uint32_t count, uint32_t most, SgeList& to) {
  if (count > most || count > from.size()) return false;
  for (const rocefs_sge& sge : from.first(count)) to.add({sge.address, sge.length, sge.lkey});
  return true;
}

}  // namespace

uint32_t ibv_type_of(QpType type) {
  constexpr uint32_t kRc = 2, kUc = 3, kUd = 4, kXrcSend = 9, kXrcReceive = 10;
  switch (type) {
    case QpType::kRc:
      return kRc;
    case QpType::kUc:
      return kUc;
    case QpType::kUd:
      return kUd;
    case QpType::kXrcSend:
      return kXrcSend;
    case QpType::kXrcReceive:
      return kXrcReceive;
  }
  return 0;
}

std::optional<QpType> qp_type_of(uint32_t ibv_type) {
  switch (ibv_type) {
    case 2:
      return QpType::kRc;
    case 3:
      return QpType::kUc;
    case 4:
      return QpType::kUd;
    case 9:
      return QpType::kXrcSend;
    case 10:
      return QpType::kXrcReceive;
  }
  return std::nullopt;
}

uint32_t wc_status_of(WcStatus status) {
  switch (status) {
    case WcStatus::kSuccess:
      return 0;
    case WcStatus::kLocalLengthError:
      return 1;
    case WcStatus::kLocalQpOperationError:
      return 2;
    case WcStatus::kLocalProtectionError:
      return 4;
    case WcStatus::kFlushed:
      return 5;
    case WcStatus::kWindowBindError:
      return 6;
    case WcStatus::kBadResponse:
      return 7;
    case WcStatus::kLocalAccessError:
      return 8;
    case WcStatus::kRemoteInvalidRequest:
      return 9;
    case WcStatus::kRemoteAccessError:
      return 10;
    case WcStatus::kRemoteOperationError:
      return 11;
    case WcStatus::kRetryExceeded:
      return 12;
    case WcStatus::kRnrRetryExceeded:
      return 13;
  }
  return 21;  // IBV_WC_GENERAL_ERR
}

Result<AddressVector> address_of(const Device& device, const rocefs_address& address) {
  if (!address.is_global) return Error{EINVAL, "RoCE needs a GID: without one there is no path"};
  if (address.port < 1 || address.port > device.port_count()) {
    return errorf(EINVAL, "{} has no port {}", device.name(), address.port);
  }
  const Ip* local = device.port(address.port).gids().at(address.sgid_index);
  if (!local) {
    return errorf(EINVAL, "GID {} of port {} is empty", address.sgid_index, address.port);
  }
  AddressVector path;
  path.local = *local;
  std::copy_n(address.dgid, path.remote.size(), path.remote.begin());
  if (path.remote == Ip{}) return Error{EINVAL, "the far GID is empty"};
  if (is_mapped_ipv4(path.local) != is_mapped_ipv4(path.remote)) {
    return Error{EINVAL, "one GID is an IPv4 address, the other is not"};
  }
  path.traffic_class = address.traffic_class;
  path.flow_label = address.flow_label & wire::kFlowLabelMask;
  path.hop_limit = address.hop_limit ? address.hop_limit : kDefaultHopLimit;
  return path;
}

Result<uint8_t> access_of(uint32_t ibv_access) {
  ibv_access &= ~kOptionalAccess;
  if (ibv_access & ~kAllAccess) {
    return errorf(EINVAL, "access rights {:#x} are not supported", ibv_access & ~kAllAccess);
  }
  return static_cast<uint8_t>(ibv_access);
}

Result<uint8_t> region_access_of(uint32_t ibv_access) {
  Result<uint8_t> rights = access_of(ibv_access & ~uint32_t{kZeroBased});
  if (!rights) return rights;
  return static_cast<uint8_t>(*rights | (ibv_access & kZeroBased));
}

Result<Modification> modification_of(const Device& device, QpState now,
                                     const rocefs_qp_attr& attr) {
  Modification out;
  out.to = now;
  constexpr auto kLast = static_cast<uint32_t>(QpState::kError);
  if (attr.mask & kState) {
    if (attr.state > kLast) return errorf(EINVAL, "{} is no state", attr.state);
    out.to = static_cast<QpState>(attr.state);
  }
  if ((attr.mask & kCurrentState) && attr.current_state != static_cast<uint32_t>(now)) {
    return errorf(EINVAL, "the queue pair is in {}", name(now));
  }
  uint32_t known = kState | kCurrentState;
  for (const MaskPair& pair : kMasks) {
    known |= pair.ibv;
    if (attr.mask & pair.ibv) out.mask |= pair.ours;
  }
  if (attr.mask & ~known) {
    return errorf(EINVAL, "attributes {:#x} are not supported", attr.mask & ~known);
  }
  QpAttributes& a = out.attributes;
  if (attr.mask & kAddress) {
    Result<AddressVector> path = address_of(device, attr.path);
    if (!path) return path.error();
    a.path = *path;
  }
  if (out.mask & kQpAccess) {
    Result<uint8_t> access = access_of(attr.access & ~kIdleAccess);
    if (!access) return access.error();
    a.access = *access;
  }
  a.pkey_index = narrow<uint16_t>(attr.pkey_index);
  a.port = narrow<uint8_t>(attr.port);
  a.qkey = attr.qkey;
  a.path_mtu = attr.path_mtu >= 1 && attr.path_mtu <= 5 ? 128u << attr.path_mtu : 0;
  a.remote_qpn = attr.remote_qpn;
  a.send_psn = attr.send_psn & 0xffffff;  // the manual gives it 24 bits; programs draw 32
  a.receive_psn = attr.receive_psn & 0xffffff;
  a.timeout = narrow<uint8_t>(attr.timeout);
  a.retry_count = narrow<uint8_t>(attr.retry_count);
  a.rnr_retry = narrow<uint8_t>(attr.rnr_retry);
  a.min_rnr_timer = narrow<uint8_t>(attr.min_rnr_timer);
  a.max_rd_atomic = narrow<uint8_t>(attr.max_rd_atomic);
  a.max_dest_rd_atomic = narrow<uint8_t>(attr.max_dest_rd_atomic);
  a.notify_drained = attr.notify_drained != 0;
  return out;
}

void describe(const QpAttributes& a, QpState state, const Port& port, rocefs_qp_attr& out) {
  out.state = out.current_state = static_cast<uint32_t>(state);
  out.path_mtu = mtu_code(a.path_mtu);
  out.qkey = a.qkey;
  out.receive_psn = a.receive_psn;
  out.send_psn = a.send_psn;
  out.remote_qpn = a.remote_qpn;
  out.access = a.access;
  out.pkey_index = a.pkey_index;
  out.max_rd_atomic = a.max_rd_atomic;
  out.max_dest_rd_atomic = a.max_dest_rd_atomic;
  out.min_rnr_timer = a.min_rnr_timer;
  out.port = a.port;
  out.timeout = a.timeout;
  out.retry_count = a.retry_count;
  out.rnr_retry = a.rnr_retry;
  std::copy_n(a.path.remote.begin(), a.path.remote.size(), out.path.dgid);
  out.path.is_global = a.path.remote != Ip{};
  out.path.sgid_index = static_cast<uint8_t>(port.gids().index_of(a.path.local).value_or(0));
  out.path.hop_limit = a.path.hop_limit;
  out.path.traffic_class = a.path.traffic_class;
  out.path.flow_label = a.path.flow_label;
  out.path.port = port.number();
}

void describe(const Port& port, rocefs_port_attr& out) {
  bool up = port.link_up();
  out.state = up ? 4 : 1;  // IBV_PORT_ACTIVE, IBV_PORT_DOWN
  out.phys_state = up ? 5 : 3;
  out.max_mtu = mtu_code(kMaxMtu);
  out.active_mtu = mtu_code(port.mtu());
  out.max_message = kMaxMessage;
  out.gid_table_len = kGidTableLen;
  out.pkey_table_len = 1;
  out.capabilities = kPortCapabilities;
  const PortSpeed& speed = port_speed(port.egress().parameters().rate_bps);
  out.active_speed = speed.speed;
  out.active_width = speed.width;
  out.lid = port.lids().own;
  out.sm_lid = port.lids().manager;
}

SendRequest send_request_of(const Device& device, const rocefs_send_wqe& wqe,
                            const SendLimits& limits, uint64_t inline_offset) {
  SendRequest request;
  request.wr_id = wqe.wr_id;
  request.signaled = wqe.flags & ROCEFS_SEND_SIGNALED;
  request.solicited = wqe.flags & ROCEFS_SEND_SOLICITED;
  request.fence = wqe.flags & ROCEFS_SEND_FENCE;
  request.immediate = wqe.immediate;
  request.remote_address = wqe.remote_address;
  std::optional<SendOp> op = send_op_of(wqe.opcode);
  request.malformed = !op;
  request.op = op.value_or(SendOp::kSend);
  bool invalidates = send_op_info(request.op).has(ROCEFS_INVALIDATES);
  request.rkey = invalidates ? wqe.immediate : wqe.rkey;
  if (op == SendOp::kBindWindow) {
    constexpr uint32_t kBindAccess = kRemoteAny | kZeroBased;
    request.bind_access = static_cast<uint8_t>(wqe.immediate & kBindAccess);
    request.malformed = (wqe.immediate & ~kBindAccess) || (wqe.flags & ROCEFS_SEND_INLINE);
  }
  bool swaps = op == SendOp::kCompareSwap;
  request.compare = swaps ? wqe.compare_add : 0;
  request.swap_add = swaps ? wqe.swap : wqe.compare_add;
  request.remote_qpn = wqe.remote_qpn & 0xffffff;
  request.qkey = wqe.qkey;
  request.remote_srqn = wqe.srqn & 0xffffff;
  if (limits.datagram) {
    if (Result<AddressVector> path = address_of(device, wqe.path)) {
      request.path = *path;
    } else {
      request.malformed = true;
    }
  }
  if (wqe.flags & ROCEFS_SEND_INLINE) {
    request.malformed |= wqe.num_sge > limits.max_inline;
    if (!request.malformed && wqe.num_sge > 0) {
      request.sges.add({inline_offset, wqe.num_sge, limits.inline_key});
    }
  } else {
    request.malformed |= !add_sges(wqe.u.sges, wqe.num_sge, limits.max_sge, request.sges);
  }
  return request;
}

ReceiveRequest receive_request_of(const rocefs_receive_wqe& wqe, uint32_t max_sge) {
  ReceiveRequest request;
  request.wr_id = wqe.wr_id;
  // An invalid key: the request fails in its turn.
  if (!add_sges(wqe.sges, wqe.num_sge, max_sge, request.sges)) request.sges = Sge{0, 1, 0};
  return request;
}

}  // namespace rocefs
