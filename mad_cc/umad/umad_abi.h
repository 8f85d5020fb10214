// Layout of the user_mad ABI, version 5 (Linux Documentation/infiniband/user_mad.rst): data written
// to and read from umad files, and their ioctls. The layout is the same for 32-bit programs.
#pragma once

#include <sys/ioctl.h>

#include <cstddef>
#include <cstdint>

namespace rocefs::umad {

inline constexpr uint32_t kMaxAgents = 32;  // of one open file; ids are below

// Header before a MAD. Host byte order, except where marked.
struct Header {
  uint32_t agent;
  uint32_t status;  // 0, or ETIMEDOUT: the request that follows was not answered
  uint32_t timeout_ms;
  uint32_t retries;
  uint32_t length;  // of what was received, with this header
  uint32_t qpn;     // big-endian, as all up to lid
  uint32_t qkey;
  uint16_t lid;
  uint8_t sl;
  uint8_t path_bits;
  uint8_t grh_present;
  uint8_t gid_index;
  uint8_t hop_limit;
  uint8_t traffic_class;
  uint8_t gid[16];
  uint32_t flow_label;  // big-endian
  // End of the header of programs that did not ask for P_Key indices.
  uint16_t pkey_index;
  uint8_t reserved[6];
};
inline constexpr size_t kHeaderSize = 64;
inline constexpr size_t kOldHeaderSize = 56;
static_assert(sizeof(Header) == kHeaderSize);
static_assert(offsetof(Header, lid) == 28 && offsetof(Header, gid) == 36);
static_assert(offsetof(Header, pkey_index) == kOldHeaderSize);

struct Registration {
  uint32_t agent;  // out
  uint32_t methods[4];
  uint8_t qpn;
  uint8_t mgmt_class;
  uint8_t class_version;
  uint8_t oui[3];
  uint8_t rmpp_version;
};
static_assert(sizeof(Registration) == 28 && offsetof(Registration, qpn) == 20);

struct Registration2 {
  uint32_t agent;  // out
  uint32_t qpn;
  uint8_t mgmt_class;
  uint8_t class_version;
  uint16_t reserved1;
  uint32_t flags;  // out where some are unknown: those that are known
  uint64_t methods[2];
  uint32_t oui;
  uint8_t rmpp_version;
  uint8_t reserved2[3];
};
static_assert(sizeof(Registration2) == 40 && offsetof(Registration2, methods) == 16);
inline constexpr uint32_t kUserRmpp = 1;  // the only flag

inline constexpr uint32_t kRegisterAgent = _IOWR(0x1b, 1, Registration);
inline constexpr uint32_t kUnregisterAgent = _IOW(0x1b, 2, uint32_t);
inline constexpr uint32_t kEnablePkey = _IO(0x1b, 3);
inline constexpr uint32_t kRegisterAgent2 = _IOWR(0x1b, 4, Registration2);
static_assert(kRegisterAgent == 0xc01c1b01 && kUnregisterAgent == 0x40041b02);
static_assert(kEnablePkey == 0x00001b03 && kRegisterAgent2 == 0xc0281b04);

}  // namespace rocefs::umad
