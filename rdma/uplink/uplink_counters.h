// The counters of an uplink.
#pragma once

#include "core/base/counter.h"

namespace rocefs {

struct UplinkCounters {
  Counter tx_packets, tx_bytes, tx_batches, tx_batched, tx_batches_refused, tx_pauses;
  Counter tx_no_socket, tx_too_long, tx_unreachable, tx_refused, tx_no_buffers, tx_errors;
  Counter icmp_refused, icmp_unreachable, icmp_too_long;
  Counter rx_packets, rx_bytes, rx_batches, rx_batched, rx_ids_solved, rx_damaged;
  Counter rx_malformed, rx_too_long, rx_fragments, rx_overflows, rx_socket_drops, rx_unbound;
};
inline constexpr CounterRow<UplinkCounters> kUplinkCounters[] = {
    {"tx_packets", &UplinkCounters::tx_packets, "packets handed to the kernel's network"},
    {"tx_bytes", &UplinkCounters::tx_bytes, "octets of these, IP header to ICRC"},
    {"tx_batches", &UplinkCounters::tx_batches,
     "messages of several packets among these, which the kernel cuts apart (gso)"},
    {"tx_batched", &UplinkCounters::tx_batched, "packets in such messages"},
    {"tx_batches_refused", &UplinkCounters::tx_batches_refused,
     "such messages that a device or a tunnel on the way does not allow: their destination gets "
     "single packets for ten seconds"},
    {"tx_pauses", &UplinkCounters::tx_pauses,
     "times that the uplink paused its cable because enough waited for the kernel to send it"},
    {"tx_no_socket", &UplinkCounters::tx_no_socket,
     "packets dropped: their source address is not the machine's, or their source port is in use"},
    {"tx_too_long", &UplinkCounters::tx_too_long,
     "packets dropped: longer than the MTU of the interface, or of the path as ICMP has told "
     "(EMSGSIZE)"},
    {"tx_unreachable", &UplinkCounters::tx_unreachable,
     "packets dropped: no route, or the interface is down (ENETUNREACH, EHOSTUNREACH, ENETDOWN)"},
    {"tx_refused", &UplinkCounters::tx_refused,
     "packets dropped: a packet filter forbids them, or the address is a broadcast one (EPERM, "
     "EACCES)"},
    {"tx_no_buffers", &UplinkCounters::tx_no_buffers,
     "packets dropped: the interface's queue was full (ENOBUFS, ENOMEM)"},
    {"tx_errors", &UplinkCounters::tx_errors, "packets dropped: any other error of sendmsg"},
    {"icmp_refused", &UplinkCounters::icmp_refused,
     "answers of ICMP to packets handed to the kernel: nobody listens at the far end's port. They "
     "are seen with the next packet of the same source port"},
    {"icmp_unreachable", &UplinkCounters::icmp_unreachable,
     "the same: the far end cannot be reached, or a packet filter on the way forbids it"},
    {"icmp_too_long", &UplinkCounters::icmp_too_long,
     "the same: longer than the MTU of the path; the next ones are dropped here, as tx_too_long"},
    {"rx_packets", &UplinkCounters::rx_packets, "RoCEv2 packets received"},
    {"rx_bytes", &UplinkCounters::rx_bytes, "octets of these, IP header to ICRC"},
    {"rx_batches", &UplinkCounters::rx_batches,
     "messages of several packets among these, as the kernel has put them together (gso)"},
    {"rx_batched", &UplinkCounters::rx_batched, "packets in such messages"},
    {"rx_ids_solved", &UplinkCounters::rx_ids_solved,
     "packets among these with an IPv4 ID or without DF, as their ICRC tells"},
    {"rx_damaged", &UplinkCounters::rx_damaged,
     "packets among these whose ICRC no IPv4 ID explains: the port drops them"},
    {"rx_malformed", &UplinkCounters::rx_malformed, "datagrams dropped: no RoCEv2 packets"},
    {"rx_too_long", &UplinkCounters::rx_too_long,
     "datagrams dropped: longer than any RoCEv2 packet"},
    {"rx_fragments", &UplinkCounters::rx_fragments,
     "datagrams dropped: they came in fragments, which RoCEv2 forbids"},
    {"rx_overflows", &UplinkCounters::rx_overflows,
     "packets dropped: too many wait for the uplink's cable"},
    {"rx_socket_drops", &UplinkCounters::rx_socket_drops,
     "datagrams that the kernel dropped because the socket's buffer was full"},
    {"rx_unbound", &UplinkCounters::rx_unbound,
     "times that UDP port 4791 of an address could not be bound after the start: tried each "
     "second"},
};

}  // namespace rocefs
