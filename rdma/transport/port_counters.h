// Counters of one port. Each row is a counter that the engine increments.
#pragma once

#include "core/base/counter.h"

namespace rocefs {

struct PortCounters {
  // counters/: the port as a whole.
  Counter port_xmit_data, port_rcv_data, port_xmit_packets, port_rcv_packets;
  Counter unicast_xmit_packets, unicast_rcv_packets;
  Counter multicast_xmit_packets, multicast_rcv_packets;
  Counter port_rcv_errors;
  Counter link_downed, port_xmit_discards, port_xmit_wait;
  // hw_counters/: the names of mlx5.
  Counter rx_write_requests, rx_read_requests, rx_atomic_requests, out_of_buffer, out_of_sequence,
      duplicate_request;
  Counter rnr_nak_retry_err, packet_seq_err, implied_nak_seq_err, local_ack_timeout_err;
  Counter resp_local_length_error, resp_cqe_error, req_cqe_error;
  Counter req_remote_invalid_request, req_remote_access_errors, resp_remote_access_errors;
  Counter resp_cqe_flush_error, req_cqe_flush_error;
  Counter req_transport_retries_exceeded, req_rnr_retries_exceeded;
  Counter rx_icrc_encapsulated, rx_unknown_qp, rx_wrong_pkey, rx_mads_discarded;
  Counter np_ecn_marked_roce_packets, np_cnp_sent, np_cnp_sent_ecn, np_cnp_sent_ooo;
  Counter rp_cnp_handled, rp_cnp_ignored;
  Counter sr_retrans, sr_ooo_placed;  // rocefs's own
};

inline constexpr CounterRow<PortCounters> kPortCounters[] = {
    {"counters/port_xmit_data", &PortCounters::port_xmit_data,
     "octets transmitted, IP header to ICRC, in units of 4", 4},
    {"counters/port_rcv_data", &PortCounters::port_rcv_data,
     "octets received, IP header to ICRC, in units of 4", 4},
    {"counters/port_xmit_packets", &PortCounters::port_xmit_packets, "packets transmitted"},
    {"counters/port_rcv_packets", &PortCounters::port_rcv_packets, "packets received"},
    {"counters/unicast_xmit_packets", &PortCounters::unicast_xmit_packets,
     "unicast packets transmitted"},
    {"counters/unicast_rcv_packets", &PortCounters::unicast_rcv_packets,
     "unicast packets received"},
    {"counters/multicast_xmit_packets", &PortCounters::multicast_xmit_packets,
     "multicast packets transmitted"},
    {"counters/multicast_rcv_packets", &PortCounters::multicast_rcv_packets,
     "multicast packets received, whether a queue pair is attached to the group or not"},
    {"counters/port_rcv_errors", &PortCounters::port_rcv_errors,
     "packets received that are malformed"},
    {"counters/link_downed", &PortCounters::link_downed, "times that the port's link went down"},
    {"counters/port_xmit_discards", &PortCounters::port_xmit_discards,
     "packets that the port discarded because its link was down, or too many MADs waited"},
    {"counters/port_xmit_wait", &PortCounters::port_xmit_wait,
     "time for which the port had packets to transmit, but PFC had paused the priorities of all: "
     "ticks of 1 ns, added when the wait ends"},
    {"hw_counters/rx_write_requests", &PortCounters::rx_write_requests,
     "RDMA WRITE messages received"},
    {"hw_counters/rx_read_requests", &PortCounters::rx_read_requests,
     "RDMA READ requests received"},
    {"hw_counters/rx_atomic_requests", &PortCounters::rx_atomic_requests,
     "atomic requests received"},
    {"hw_counters/out_of_buffer", &PortCounters::out_of_buffer,
     "messages that met an empty receive queue"},
    {"hw_counters/out_of_sequence", &PortCounters::out_of_sequence,
     "request packets received ahead of the expected PSN, those behind a refused one excepted"},
    {"hw_counters/duplicate_request", &PortCounters::duplicate_request,
     "request packets received again"},
    {"hw_counters/rnr_nak_retry_err", &PortCounters::rnr_nak_retry_err, "RNR NAKs received"},
    {"hw_counters/packet_seq_err", &PortCounters::packet_seq_err, "sequence NAKs received"},
    {"hw_counters/implied_nak_seq_err", &PortCounters::implied_nak_seq_err,
     "READ and atomic responses found missing by a later answer"},
    {"hw_counters/local_ack_timeout_err", &PortCounters::local_ack_timeout_err,
     "acknowledgements that did not come in time"},
    {"hw_counters/resp_local_length_error", &PortCounters::resp_local_length_error,
     "SEND messages longer than the receive request"},
    {"hw_counters/resp_cqe_error", &PortCounters::resp_cqe_error,
     "receive requests that ended with an error, flushed ones excepted"},
    {"hw_counters/req_cqe_error", &PortCounters::req_cqe_error,
     "send requests that ended with an error, flushed ones excepted"},
    {"hw_counters/req_remote_invalid_request", &PortCounters::req_remote_invalid_request,
     "NAKs received: remote invalid request"},
    {"hw_counters/req_remote_access_errors", &PortCounters::req_remote_access_errors,
     "NAKs received: remote access error"},
    {"hw_counters/resp_remote_access_errors", &PortCounters::resp_remote_access_errors,
     "requests received without the right to their memory"},
    {"hw_counters/resp_cqe_flush_error", &PortCounters::resp_cqe_flush_error,
     "receive requests flushed"},
    {"hw_counters/req_cqe_flush_error", &PortCounters::req_cqe_flush_error,
     "send requests flushed"},
    {"hw_counters/req_transport_retries_exceeded", &PortCounters::req_transport_retries_exceeded,
     "queue pairs that used up their retries"},
    {"hw_counters/req_rnr_retries_exceeded", &PortCounters::req_rnr_retries_exceeded,
     "queue pairs that used up their RNR retries"},
    {"hw_counters/rx_icrc_encapsulated", &PortCounters::rx_icrc_encapsulated,
     "RoCE packets received with a wrong ICRC"},
    {"hw_counters/rx_unknown_qp", &PortCounters::rx_unknown_qp,
     "packets received for no connected queue pair, not from its far end, of another service "
     "or with a wrong Q_Key"},
    {"hw_counters/rx_wrong_pkey", &PortCounters::rx_wrong_pkey,
     "packets received for a queue pair, from its far end, with another partition's P_Key"},
    {"hw_counters/rx_mads_discarded", &PortCounters::rx_mads_discarded,
     "MADs received by queue pair 1 that its agent does not know: of another class, version, "
     "attribute or length"},
    {"hw_counters/np_ecn_marked_roce_packets", &PortCounters::np_ecn_marked_roce_packets,
     "packets received that switches had marked: congestion experienced"},
    {"hw_counters/np_cnp_sent", &PortCounters::np_cnp_sent, "CNPs transmitted"},
    {"hw_counters/np_cnp_sent_ecn", &PortCounters::np_cnp_sent_ecn,
     "CNPs transmitted because a packet was marked"},
    {"hw_counters/np_cnp_sent_ooo", &PortCounters::np_cnp_sent_ooo,
     "CNPs transmitted because a packet came out of order (CFR)"},
    {"hw_counters/rp_cnp_handled", &PortCounters::rp_cnp_handled,
     "CNPs received that something obeyed: PCC, CFR or DCQCN"},
    {"hw_counters/rp_cnp_ignored", &PortCounters::rp_cnp_ignored,
     "CNPs received that nothing obeyed, or for no connected queue pair"},
    {"hw_counters/sr_retrans", &PortCounters::sr_retrans,
     "request packets sent again alone: selective retransmission, and READs of what is missing"},
    {"hw_counters/sr_ooo_placed", &PortCounters::sr_ooo_placed,
     "packets taken ahead of a missing one: placed where they belong, or kept until their turn"},
};

}  // namespace rocefs
