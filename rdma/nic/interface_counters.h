// Statistics of a host's interface (class/net/IF/statistics), as the kernel names them: "tx" is
// what the host's kernel has sent. Core thread; any thread may read.
#pragma once

#include "core/base/counter.h"

namespace rocefs {

struct InterfaceCounters {
  Counter rx_packets, rx_bytes, rx_dropped, rx_errors, rx_crc_errors, multicast;
  Counter tx_packets, tx_bytes, tx_dropped, tx_errors, tx_carrier_errors;
};
inline constexpr CounterRow<InterfaceCounters> kInterfaceCounters[] = {
    {"rx_packets", &InterfaceCounters::rx_packets, "frames given to the host"},
    {"rx_bytes", &InterfaceCounters::rx_bytes, "octets of these frames, without FCS"},
    {"rx_dropped", &InterfaceCounters::rx_dropped, "frames that the host's kernel had no room for"},
    {"rx_errors", &InterfaceCounters::rx_errors, "frames with errors"},
    {"rx_crc_errors", &InterfaceCounters::rx_crc_errors, "frames with a wrong FCS"},
    {"multicast", &InterfaceCounters::multicast, "multicast frames given to the host"},
    {"tx_packets", &InterfaceCounters::tx_packets, "frames sent by the host"},
    {"tx_bytes", &InterfaceCounters::tx_bytes, "octets of these frames, without FCS"},
    {"tx_dropped", &InterfaceCounters::tx_dropped, "always 0: a host waits for its cable"},
    {"tx_errors", &InterfaceCounters::tx_errors, "frames that could not be sent"},
    {"tx_carrier_errors", &InterfaceCounters::tx_carrier_errors,
     "frames sent while the link was down"},
};

}  // namespace rocefs
