// Messages by which communication managers make and end connections (IBTA volume 1, 12.6 and
// 12.11), as fields and as management datagrams. Nothing here allocates, keeps state or reads
// outside the given bytes. Numbers are in host order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

#include "rdma/packet/verbs.h"

namespace rocefs::cm {

inline constexpr size_t kMadSize = 256;
inline constexpr uint8_t kMgmtClass = 0x07;
using Mad = std::array<uint8_t, kMadSize>;

template <size_t Size>
using PrivateData = std::array<uint8_t, Size>;

// Path in a REQ, from the sender's point of view.
struct Path {
  uint16_t local_lid = 0, remote_lid = 0;
  Ip local_gid{}, remote_gid{};
  uint32_t flow_label = 0;  // 20 bits
  uint8_t rate = 0;         // 6 bits
  uint8_t traffic_class = 0;
  uint8_t hop_limit = 0;
  uint8_t service_level = 0;  // 4 bits
  bool subnet_local = false;
  uint8_t local_ack_timeout = 0;  // 5 bits: 4.096 us x 2^it
};

// Times of 5 bits are 4.096 us x 2^it.
struct Req {
  uint32_t local_id = 0;
  uint64_t service_id = 0;
  uint64_t ca_guid = 0;
  uint32_t qkey = 0;
  uint32_t qpn = 0;  // 24 bits
  uint8_t responder_resources = 0;
  uint8_t initiator_depth = 0;
  uint8_t remote_response_timeout = 0;  // limit for the far end's answer
  uint8_t transport = 0;                // 2 bits: 0 RC, 1 UC, 2 RD
  bool flow_control = false;
  uint32_t starting_psn = 0;           // first PSN of the far end's packets
  uint8_t local_response_timeout = 0;  // limit for the sender's answer
  uint8_t retry_count = 0;             // 3 bits
  uint16_t pkey = 0;
  uint8_t path_mtu = 0;  // 4 bits, as ibv_mtu
  bool rdc_exists = false;
  uint8_t rnr_retry_count = 0;  // 3 bits
  uint8_t max_cm_retries = 0;   // 4 bits
  bool srq = false;
  uint8_t extended_transport = 0;  // 3 bits
  Path primary, alternate;
  PrivateData<92> private_data{};
};

// Message to which a REJ or MRA refers.
enum class About : uint8_t { kReq = 0, kRep = 1, kOther = 2 };

struct Mra {
  uint32_t local_id = 0, remote_id = 0;
  About about = About::kReq;
  uint8_t service_timeout = 0;
  PrivateData<222> private_data{};
};

struct Rej {
  uint32_t local_id = 0, remote_id = 0;
  About about = About::kReq;
  uint8_t info_length = 0;  // 7 bits
  uint16_t reason = 0;      // RejectReason
  std::array<uint8_t, 72> info{};
  PrivateData<148> private_data{};
};

struct Rep {
  uint32_t local_id = 0, remote_id = 0;
  uint32_t qkey = 0;
  uint32_t qpn = 0;
  uint32_t starting_psn = 0;  // first PSN of the far end's packets
  uint8_t responder_resources = 0;
  uint8_t initiator_depth = 0;
  uint8_t target_ack_delay = 0;  // 5 bits
  uint8_t failover = 0;          // 2 bits
  bool flow_control = false;
  uint8_t rnr_retry_count = 0;  // 3 bits
  bool srq = false;
  uint64_t ca_guid = 0;
  PrivateData<196> private_data{};
};

struct Rtu {
  uint32_t local_id = 0, remote_id = 0;
  PrivateData<224> private_data{};
};

struct Dreq {
  uint32_t local_id = 0, remote_id = 0;
  uint32_t remote_qpn = 0;
  PrivateData<220> private_data{};
};

struct Drep {
  uint32_t local_id = 0, remote_id = 0;
  PrivateData<224> private_data{};
};

struct SidrReq {
  uint32_t request_id = 0;
  uint16_t pkey = 0;
  uint64_t service_id = 0;
  PrivateData<216> private_data{};
};

struct SidrRep {
  uint32_t request_id = 0;
  uint8_t status = 0;  // SidrStatus
  uint8_t info_length = 0;
  uint32_t qpn = 0;
  uint64_t service_id = 0;
  uint32_t qkey = 0;
  std::array<uint8_t, 72> info{};
  PrivateData<136> private_data{};
};

using Message = std::variant<Req, Mra, Rej, Rep, Rtu, Dreq, Drep, SidrReq, SidrRep>;
// Names of the counter files, in the order of Message.
inline constexpr std::string_view kNames[] = {"req",  "mra",  "rej",      "rep",     "rtu",
                                              "dreq", "drep", "sidr_req", "sidr_rep"};
inline constexpr size_t kMessages = std::size(kNames);
static_assert(kMessages == std::variant_size_v<Message>);

// IBTA 12.6.7.2.
enum RejectReason : uint16_t {
  kNoQp = 1,
  kNoResources = 3,
  kTimeout = 4,
  kUnsupportedRequest = 5,
  kInvalidId = 6,
  kInvalidServiceId = 8,
  kInvalidTransport = 9,
  kStaleConnection = 10,
  kInvalidGid = 12,
  kInvalidMtu = 26,
  kConsumerReject = 28,
  kVendorOptionNotSupported = 35,
};
// IBTA 12.11.2.2.
enum SidrStatus : uint8_t { kSidrValid = 0, kSidrUnsupported = 1, kSidrReject = 2 };

struct Parsed {
  uint64_t tid = 0;
  Message message;
};

// Nullopt for bytes that are no known message of this class and version.
std::optional<Parsed> parse(std::span<const uint8_t> octets);
Mad emit(uint64_t tid, const Message& message);

// Header of rdma_cm before the program's private data in a REQ or SIDR_REQ: IP addresses and port
// (IBTA annex A11).
struct IpHeader {
  static constexpr size_t kSize = 36;
  uint16_t source_port = 0;
  Ip source{}, destination{};  // both IPv4-mapped, or both not
};
// Nullopt for another version.
std::optional<IpHeader> parse_ip_header(std::span<const uint8_t> private_data);
// `out` has at least IpHeader::kSize octets.
void emit_ip_header(const IpHeader& header, std::span<uint8_t> out);

}  // namespace rocefs::cm
