// OffloadHeader: stands before each frame that is read from or written to a TAP device with
// IFF_VNET_HDR: struct virtio_net_hdr of <linux/virtio_net.h>, which is no C++, in host byte order.
#pragma once

#include <cstdint>

namespace rocefs {

struct OffloadHeader {
  static constexpr uint8_t kNeedsChecksum = 1;                            // flags
  static constexpr uint8_t kNone = 0, kTcp4 = 1, kTcp6 = 4, kEcn = 0x80;  // type

  uint8_t flags = 0;
  uint8_t type = kNone;          // how to segment the frame
  uint16_t header_len = 0;       // octets before the data, Ethernet header included
  uint16_t segment_size = 0;     // octets of data of each segment
  uint16_t checksum_start = 0;   // the checksum covers all from here on
  uint16_t checksum_offset = 0;  // its place, from there
};
static_assert(sizeof(OffloadHeader) == 10);

}  // namespace rocefs
