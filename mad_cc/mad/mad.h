// Mad: a management datagram of 256 octets (IBTA volume 1, 13.4), by its fields. Class headers that
// several rooms need are here; attributes are beside their agents.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "rdma/wire/bytes.h"

namespace rocefs::mad {

inline constexpr size_t kMadSize = 256;

// Classes (13.4.4, table 109).
enum Class : uint8_t {
  kSubnLid = 0x01,
  kSubnAdm = 0x03,
  kPerf = 0x04,
  kBoardMgt = 0x05,
  kDeviceMgt = 0x06,
  kCommMgt = 0x07,
  kSnmp = 0x08,
  kVendor1First = 0x09,
  kVendor1Last = 0x0f,
  kVendor2First = 0x30,  // with an OUI, and RMPP
  kVendor2Last = 0x4f,
  kSubnDirected = 0x81,
};
inline bool is_smp(uint8_t mgmt_class) {
  return mgmt_class == kSubnLid || mgmt_class == kSubnDirected;
}
inline bool is_vendor2(uint8_t mgmt_class) {
  return mgmt_class >= kVendor2First && mgmt_class <= kVendor2Last;
}
// Classes whose MADs carry an RMPP header (ib_is_mad_class_rmpp() of the kernel).
inline bool has_rmpp(uint8_t mgmt_class) {
  return mgmt_class == kSubnAdm || mgmt_class == kDeviceMgt || mgmt_class == 0x10 ||
         is_vendor2(mgmt_class);
}

// Methods (13.4.5, table 111).
enum Method : uint8_t {
  kGet = 0x01,
  kSet = 0x02,
  kSend = 0x03,
  kTrap = 0x05,
  kReport = 0x06,
  kTrapRepress = 0x07,
  kGetTable = 0x12,
  kGetTraceTable = 0x13,
  kGetMulti = 0x14,
  kDelete = 0x15,
  kGetResp = 0x81,
  kReportResp = 0x86,
  kGetTableResp = 0x92,
  kDeleteResp = 0x95,
};
inline constexpr uint8_t kResponseBit = 0x80;

// Status (13.4.7, table 112). The high octet belongs to the class (15.2.2 for SubnAdm).
enum Status : uint16_t {
  kOk = 0x0000,
  kBusy = 0x0001,
  kBadVersion = 0x0004,
  kBadMethod = 0x0008,
  kBadMethodAttribute = 0x000c,
  kBadValue = 0x001c,
  kSaNoResources = 0x0100,
  kSaRequestInvalid = 0x0200,
  kSaNoRecords = 0x0300,
  kSaTooManyRecords = 0x0400,
  kSaBadGid = 0x0500,
  kSaInsufficientComponents = 0x0600,
};

// RMPP header (13.6.2.1): octets 24 to 35 of MADs whose class has_rmpp().
enum RmppType : uint8_t {
  kRmppNone = 0,
  kRmppData = 1,
  kRmppAck = 2,
  kRmppStop = 3,
  kRmppAbort = 4
};
enum RmppFlags : uint8_t { kRmppActive = 1, kRmppFirst = 2, kRmppLast = 4 };

// Offset of a class's data, the part that RMPP segments share out (ib_get_mad_data_offset()).
inline size_t data_offset(uint8_t mgmt_class) {
  if (mgmt_class == kSubnAdm) return 56;
  if (mgmt_class == kDeviceMgt || mgmt_class == 0x10) return 64;
  if (is_vendor2(mgmt_class)) return 40;
  return 24;
}

// MAD with getters and setters named after the fields of the standard.
struct Mad {
  std::array<uint8_t, kMadSize> bytes{};

  uint8_t base_version() const { return bytes[0]; }
  uint8_t mgmt_class() const { return bytes[1]; }
  uint8_t class_version() const { return bytes[2]; }
  uint8_t method() const { return bytes[3]; }
  bool is_response() const {  // ib_response_mad()
    return (method() & kResponseBit) != 0 || method() == kTrapRepress ||
           (mgmt_class() == 0x05 && (attribute_modifier() & 1) != 0);
  }
  uint16_t status() const { return wire::load16(&bytes[4]); }
  uint64_t tid() const { return wire::load64(&bytes[8]); }
  uint16_t attribute() const { return wire::load16(&bytes[16]); }
  uint32_t attribute_modifier() const { return wire::load32(&bytes[20]); }
  void set_method(uint8_t method) { bytes[3] = method; }
  void set_status(uint16_t status) { wire::store16(&bytes[4], status); }
  void set_tid(uint64_t tid) { wire::store64(&bytes[8], tid); }

  uint8_t rmpp_version() const { return bytes[24]; }
  uint8_t rmpp_type() const { return bytes[25]; }
  uint8_t rmpp_flags() const { return bytes[26] & 7; }
  uint8_t rmpp_response_time() const { return bytes[26] >> 3; }
  uint8_t rmpp_status() const { return bytes[27]; }
  uint32_t rmpp_segment() const { return wire::load32(&bytes[28]); }  // data1
  uint32_t rmpp_length() const { return wire::load32(&bytes[32]); }   // data2: length, new window
  bool rmpp_active() const { return (bytes[26] & kRmppActive) != 0; }
  void set_rmpp(uint8_t type, uint8_t flags, uint8_t status, uint32_t data1, uint32_t data2,
                uint8_t response_time = 0x1f) {
    bytes[24] = 1;
    bytes[25] = type;
    bytes[26] = static_cast<uint8_t>(response_time << 3 | flags);
    bytes[27] = status;
    wire::store32(&bytes[28], data1);
    wire::store32(&bytes[32], data2);
  }
  bool operator==(const Mad&) const = default;
};
static_assert(sizeof(Mad) == kMadSize);

// Message as in user_mad(4): a MAD, or the payload of several RMPP segments: the headers of the
// first, then the data of all, possibly shorter than a MAD.
using Message = std::vector<uint8_t>;
inline Mad first_mad(std::span<const uint8_t> message) {
  Mad mad;
  std::memcpy(mad.bytes.data(), message.data(), std::min(message.size(), kMadSize));
  return mad;
}
inline Message message_of(const Mad& mad) {
  return Message(mad.bytes.begin(), mad.bytes.end());
}

// Source or destination of a MAD, as in ib_user_mad_hdr. Directed-route SMPs carry their own route;
// `lid` is ignored for them.
struct Address {
  uint16_t lid = 0;
  uint32_t qpn = 1;   // 0 for SMPs
  uint32_t qkey = 0;  // kQkey for all but SMPs
  uint8_t sl = 0;
  uint8_t path_bits = 0;
  uint16_t pkey_index = 0;
  bool operator==(const Address&) const = default;
};
inline constexpr uint32_t kQkey = 0x80010000;

}  // namespace rocefs::mad
