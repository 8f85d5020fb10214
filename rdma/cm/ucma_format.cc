#include "rdma/cm/ucma_format.h"

#include <algorithm>
#include <cstring>

#include "rdma/cm/sockaddr.h"
#include "rdma/nic/device.h"
#include "rdma/wire/bytes.h"

namespace rocefs {
namespace {

using namespace ucma;

constexpr uint32_t kNoIndex = ~uint32_t{0};  // of the device, as of netlink
constexpr uint16_t kPkey = 0xffff;
constexpr uint32_t kPathFlags = 1 | 2 | 8 | 32;  // of GMPs, primary, both ways
constexpr uint8_t kRate10 = 3, kExactly = 2;

struct MaskPair {
  uint32_t ours, ibv;
};
constexpr uint32_t kIbvState = 1;
constexpr MaskPair kMasks[] = {
    {kQpAccess, 1 << 3},       {kQpPkeyIndex, 1 << 4},
    {kQpPort, 1 << 5},         {kQpQkey, 1 << 6},
    {kQpPath, 1 << 7},         {kQpPathMtu, 1 << 8},
    {kQpTimeout, 1 << 9},      {kQpRetryCount, 1 << 10},
    {kQpRnrRetry, 1 << 11},    {kQpReceivePsn, 1 << 12},
    {kQpMaxRdAtomic, 1 << 13}, {kQpMinRnrTimer, 1 << 15},
    {kQpSendPsn, 1 << 16},     {kQpMaxDestRdAtomic, 1 << 17},
    {kQpRemoteQpn, 1 << 20},
};

uint8_t mtu_code(uint32_t mtu) {
  uint8_t code = 1;
  for (; mtu > 256; mtu /= 2) ++code;
  return code;
}

uint64_t guid_on_wire(const CmId& id) {
  if (!id.port()) return 0;
  return __builtin_bswap64(guid_of(device_of(*id.port()).spec().ports[0]));
}

bool has_path(const CmId& id) {
  return id.state() >= CmId::State::kRouteResolved &&
         id.remote().family != CmAddress::Family::kNone;
}

void put_path(const Port& port, const AddressVector& path, AddressHandle& out) {
  out.dgid = path.remote;
  out.sgid_index = static_cast<uint8_t>(port.gids().index_of(path.local).value_or(0));
  out.hop_limit = path.hop_limit;
  out.traffic_class = path.traffic_class;
  out.is_global = 1;
  out.port = port.number();
}

void put_private_data(const CmParameters& from, auto& out) {
  size_t size = std::min<size_t>(from.private_data.size(), 255);
  std::copy_n(from.private_data.begin(), size, out.private_data.begin());
  out.private_size = static_cast<uint8_t>(size);
}

}  // namespace

void format_addresses(const CmId& id, AddressAnswer& out) {
  out.node_guid = guid_on_wire(id);
  out.port = id.port() ? id.port()->number() : 0;
  out.pkey = id.port() ? kPkey : 0;
  out.source_size = static_cast<uint16_t>(put_address(id.local(), out.source.bytes));
  out.destination_size = static_cast<uint16_t>(put_address(id.remote(), out.destination.bytes));
  out.device_index = kNoIndex;
}

void format_gids(const CmId& id, AddressAnswer& out) {
  out.node_guid = guid_on_wire(id);
  out.port = id.port() ? id.port()->number() : 0;
  out.pkey = id.port() ? kPkey : 0;
  out.source_size = static_cast<uint16_t>(put_gid(id.local().ip, out.source.bytes));
  out.destination_size = static_cast<uint16_t>(put_gid(id.remote().ip, out.destination.bytes));
  out.device_index = kNoIndex;
}

// IBTA 15.2.5.16.
void format_path(const CmId& id, PathAnswer& out) {
  if (!has_path(id)) return;
  out.path_count = 1;
  out.path.flags = kPathFlags;
  uint8_t* record = out.path.record.data();
  std::copy(id.path().remote.begin(), id.path().remote.end(), record + 8);
  std::copy(id.path().local.begin(), id.path().local.end(), record + 24);
  record[47] = id.path().hop_limit;
  record[48] = id.path().traffic_class;
  record[49] = 0x81;  // reversible, one path
  wire::store16(record + 50, kPkey);
  record[54] = static_cast<uint8_t>(kExactly << 6 | mtu_code(id.port()->mtu()));
  record[55] = kExactly << 6 | kRate10;
  record[56] = kExactly << 6 | CmConnection::kPacketLifeTime;
}

void format_route(const CmId& id, RouteAnswer& out) {
  put_address(id.local(), out.source.bytes);
  put_address(id.remote(), out.destination.bytes);
  out.device_index = kNoIndex;
  if (!id.port()) return;
  out.node_guid = guid_on_wire(id);
  out.port = id.port()->number();
  PathRecord& path = out.paths[0];
  path.sgid = id.local().ip;
  path.dgid = id.remote().ip;
  path.pkey = kPkey;
  if (!has_path(id)) return;
  out.path_count = 1;
  path.reversible = 1;
  path.mtu = mtu_code(id.port()->mtu());
  path.hop_limit = id.path().hop_limit;
  path.traffic_class = id.path().traffic_class;
  path.count = 1;
  path.mtu_selector = path.rate_selector = path.life_selector = kExactly;
  path.rate = kRate10;
  path.life = CmConnection::kPacketLifeTime;
}

void format_attributes(const Port& port, QpState to, const QpAttributes& a, uint32_t mask,
                       QpAttr& out) {
  out.mask = kIbvState;
  for (const MaskPair& pair : kMasks) {
    if (mask & pair.ours) out.mask |= pair.ibv;
  }
  out.state = static_cast<uint32_t>(to);
  out.path_mtu = mtu_code(a.path_mtu);
  out.qkey = a.qkey;
  out.receive_psn = a.receive_psn;
  out.send_psn = a.send_psn;
  out.remote_qpn = a.remote_qpn;
  out.access = a.access;
  if (mask & kQpPath) put_path(port, a.path, out.path);
  out.pkey_index = a.pkey_index;
  out.max_rd_atomic = a.max_rd_atomic;
  out.max_dest_rd_atomic = a.max_dest_rd_atomic;
  out.min_rnr_timer = a.min_rnr_timer;
  out.port = port.number();
  out.timeout = a.timeout;
  out.retry_count = a.retry_count;
  out.rnr_retry = a.rnr_retry;
}

void format_event(const CmId& id, const CmEvent& event, EventAnswer& out) {
  out.type = static_cast<uint32_t>(event.type);
  out.status = static_cast<uint32_t>(event.status);
  const CmParameters& p = event.parameters;
  if (event.type == CmEventType::kUser || event.type == CmEventType::kInternal) {
    std::memcpy(out.argument, &event.argument, sizeof out.argument);
    return;
  }
  if (id.type() == QpType::kUd) {
    out.datagram = {};
    out.datagram.qpn = p.qpn;
    out.datagram.qkey = p.qkey;
    if (event.path && id.port()) put_path(*id.port(), *event.path, out.datagram.path);
    put_private_data(p, out.datagram);
    return;
  }
  out.connection = {};
  out.connection.qpn = p.qpn;
  out.connection.srq = p.srq;
  out.connection.responder_resources = p.responder_resources;
  out.connection.initiator_depth = p.initiator_depth;
  out.connection.flow_control = p.flow_control;
  out.connection.retry_count = p.retry_count;
  out.connection.rnr_retry_count = p.rnr_retry_count;
  put_private_data(p, out.connection);
}

}  // namespace rocefs
