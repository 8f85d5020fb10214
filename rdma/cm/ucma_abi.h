// ABI of the kernel's rdma_cm (include/uapi/rdma/rdma_user_cm.h, version 4), under names of this
// project.
#pragma once

#include <array>
#include <cstdint>

namespace rocefs::ucma {

inline constexpr int kAbiVersion = 4;
inline constexpr uint16_t kFamilyIpv4 = 2, kFamilyIpv6 = 10, kFamilyIb = 27;

enum class Command : uint32_t {
  kCreateId,
  kDestroyId,
  kBindIp,
  kResolveIp,
  kResolveRoute,
  kQueryRoute,
  kConnect,
  kListen,
  kAccept,
  kReject,
  kDisconnect,
  kInitQpAttr,
  kGetEvent,
  kGetOption,
  kSetOption,
  kNotify,
  kJoinIpMulticast,
  kLeaveMulticast,
  kMigrateId,
  kQuery,
  kBind,
  kResolveAddress,
  kJoinMulticast,
  kResolveIbService,
  kWriteEvent,
};

struct Header {
  uint32_t command;
  uint16_t in, out;
};

struct SockaddrIn6 {
  std::array<uint8_t, 28> bytes;
};
struct SockaddrStorage {
  std::array<uint8_t, 128> bytes;
};

struct CreateId {
  uint64_t uid, response;
  uint16_t space;
  uint8_t qp_type;
  uint8_t reserved[5];
};
struct IdAnswer {
  uint32_t id;
};
struct DestroyId {
  uint64_t response;
  uint32_t id, reserved;
};
struct EventsAnswer {
  uint32_t events_reported;
};
struct BindIp {
  uint64_t response;
  SockaddrIn6 address;
  uint32_t id;
};
struct Bind {
  uint32_t id;
  uint16_t size, reserved;
  SockaddrStorage address;
};
struct ResolveIp {
  SockaddrIn6 source, destination;
  uint32_t id, timeout_ms;
};
struct ResolveAddress {
  uint32_t id, timeout_ms;
  uint16_t source_size, destination_size;
  uint32_t reserved;
  SockaddrStorage source, destination;
};
struct ResolveRoute {
  uint32_t id, timeout_ms;
};
enum QueryOption : uint32_t { kQueryAddress, kQueryPath, kQueryGid };
struct Query {
  uint64_t response;
  uint32_t id, option;
};
struct PathRecord {
  std::array<uint8_t, 16> dgid, sgid;
  uint16_t dlid, slid;  // big endian, as flow_label and pkey
  uint32_t raw_traffic;
  uint32_t flow_label;
  uint32_t reversible;
  uint32_t mtu;
  uint16_t pkey;
  uint8_t hop_limit, traffic_class, count, sl;
  uint8_t mtu_selector, rate_selector, rate, life_selector, life, preference;
};
struct RouteAnswer {
  uint64_t node_guid;  // big endian
  PathRecord paths[2];
  SockaddrIn6 source, destination;
  uint32_t path_count;
  uint8_t port;
  uint8_t reserved[3];
  uint32_t device_index, reserved1;
};
struct AddressAnswer {
  uint64_t node_guid;
  uint8_t port, reserved;
  uint16_t pkey;
  uint16_t source_size, destination_size;
  SockaddrStorage source, destination;
  uint32_t device_index, reserved1;
};
// Path record of a subnet administrator (IBTA 15.2.5.16).
struct PathData {
  uint32_t flags, reserved;
  std::array<uint8_t, 64> record;
};
struct PathAnswer {
  uint32_t path_count, reserved;
  PathData path;
};
struct ConnectionParameters {
  uint32_t qpn, qkey;
  std::array<uint8_t, 256> private_data;
  uint8_t private_size, srq, responder_resources, initiator_depth;
  uint8_t flow_control, retry_count, rnr_retry_count, valid;
};
struct AddressHandle {
  std::array<uint8_t, 16> dgid;
  uint32_t flow_label;
  uint8_t sgid_index, hop_limit, traffic_class, reserved;
  uint16_t dlid;
  uint8_t sl, source_bits, rate, is_global, port, reserved1;
};
struct DatagramParameters {
  uint32_t qpn, qkey;
  AddressHandle path;
  std::array<uint8_t, 256> private_data;
  uint8_t private_size;
  uint8_t reserved[7];
};
struct Ece {
  uint32_t vendor_id, options;
};
struct Connect {
  ConnectionParameters parameters;
  uint32_t id, reserved;
  Ece ece;
};
struct Listen {
  uint32_t id, backlog;
};
struct Accept {
  uint64_t uid;
  ConnectionParameters parameters;
  uint32_t id, reserved;
  Ece ece;
};
struct Reject {
  uint32_t id;
  uint8_t private_size, reason;
  uint8_t reserved[2];
  std::array<uint8_t, 256> private_data;
};
struct Disconnect {
  uint32_t id;
};
struct InitQpAttr {
  uint64_t response;
  uint32_t id, state;
};
struct QpAttr {
  uint32_t mask, state, current_state, path_mtu, path_migration, qkey;
  uint32_t receive_psn, send_psn, remote_qpn, access;
  AddressHandle path, alternate;
  uint32_t max_send_wr, max_receive_wr, max_send_sge, max_receive_sge, max_inline;
  uint16_t pkey_index, alternate_pkey_index;
  uint8_t notify, draining, max_rd_atomic, max_dest_rd_atomic, min_rnr_timer, port;
  uint8_t timeout, retry_count, rnr_retry, alternate_port, alternate_timeout;
  uint8_t reserved[5];
};
struct Notify {
  uint32_t id, event;
};
struct GetEvent {
  uint64_t response;
};
struct EventAnswer {
  uint64_t uid;
  uint32_t id, type, status;
  union {
    ConnectionParameters connection;
    DatagramParameters datagram;
    uint32_t argument[2];  // 64 bits of an event that the program has written
  };
  uint32_t reserved;
  Ece ece;
};
enum OptionLevel : uint32_t { kLevelId = 0, kLevelIb = 1 };
enum Option : uint32_t { kTos = 0, kReuseAddress = 1, kFamilyOnly = 2, kAckTimeout = 3 };
struct SetOption {
  uint64_t value;
  uint32_t id, level, name, size;
};
struct MigrateId {
  uint64_t response;
  uint32_t id, fd;
};

struct JoinIpMulticast {
  uint64_t response, uid;
  SockaddrIn6 address;
  uint32_t id;
};
struct JoinMulticast {
  uint64_t response, uid;
  uint32_t id;
  uint16_t size, flags;
  SockaddrStorage address;
};
// JoinMulticast::flags.
enum JoinFlags : uint16_t { kFullMember = 0, kSendsOnly = 1 };
using LeaveMulticast = DestroyId;
struct ResolveIbService {
  uint32_t id, reserved;
  uint64_t service_id;
  std::array<uint8_t, 64> service_name;
  uint32_t flags, reserved1;
};
struct WriteEvent {
  uint32_t id, reserved, type, status;
  uint64_t argument;  // first of a union, which is longer
};

static_assert(sizeof(JoinIpMulticast) == 48 && sizeof(JoinMulticast) == 152);
static_assert(sizeof(ResolveIbService) == 88 && sizeof(WriteEvent) == 24);
static_assert(sizeof(CreateId) == 24 && sizeof(DestroyId) == 16 && sizeof(BindIp) == 40);
static_assert(sizeof(Bind) == 136 && sizeof(ResolveIp) == 64 && sizeof(ResolveAddress) == 272);
static_assert(sizeof(PathRecord) == 64 && sizeof(RouteAnswer) == 208);
static_assert(sizeof(AddressAnswer) == 280 && sizeof(PathAnswer) == 80);
static_assert(sizeof(ConnectionParameters) == 272 && sizeof(DatagramParameters) == 304);
static_assert(sizeof(Connect) == 288 && sizeof(Accept) == 296 && sizeof(Reject) == 264);
static_assert(sizeof(QpAttr) == 144 && sizeof(EventAnswer) == 336 && sizeof(SetOption) == 24);

}  // namespace rocefs::ucma
