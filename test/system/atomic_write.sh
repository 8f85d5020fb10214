#!/bin/bash
# ATOMIC WRITE (IBTA A19) between devices, sent by flows and by programs, and in captures.
. "$(dirname "$0")/lib/common.bash"

mounted
capture() { echo "$dir/$1.pcap" >"$debug/pcap"; }
# Packets of a capture with that opcode, all with a right ICRC.
packets() {  # CAPTURE OPCODE
  python3 "$lib/roce_pcap.py" "$dir/$1.pcap" >"$dir/counted" || fail "the capture $1"
  tshark -r "$dir/$1.pcap" -Y "infiniband.bth.opcode == $2" -T fields -e frame.number 2>/dev/null | wc -l
}
hw_counter() { cat "$ib/$1/ports/1/hw_counters/$2"; }

test_case "a flow of ATOMIC WRITEs arrives whole over a link that loses packets, each executed once"
echo 0.02 >"$debug/links/mb_0-sw_0/loss"
echo 0.02 >"$debug/links/mb_1-sw_0/loss"
echo "lossy atomic-write mb_0 mb_1 qps=4 count=4000 timeout=8" >"$debug/traffic/start"
await state_is lossy done
result=$debug/traffic/lossy/result
expect "4000 4000 32000 0" "$(for key in messages received bytes mismatched; do value $key "$result"; done | xargs)" "the flow"
[ "$(value retransmitted "$result")" -gt 0 ] || fail "nothing was lost"
[ "$(hw_counter mb_1 duplicate_request)" -gt 0 ] || fail "no request came twice"
expect 4000 "$(hw_counter mb_1 rx_atomic_requests)" "executed requests"
expect 0 "$(hw_counter mb_1 rx_write_requests)" "WRITEs"
echo 0 >"$debug/links/mb_0-sw_0/loss"
echo 0 >"$debug/links/mb_1-sw_0/loss"

test_case "a capture shows each ATOMIC WRITE as opcode 0x1d, answered by an empty READ response"
needs tshark
capture flow
echo "one atomic-write mb_0 mb_1 count=100" >"$debug/traffic/start"
await state_is one done
echo off >"$debug/pcap"
expect 100 "$(packets flow 0x1d)" "ATOMIC WRITEs"
expect 100 "$(packets flow 0x10)" "READ responses"
expect "10.77.0.1 100,10.77.0.2 100" "$(cut -d' ' -f1,2 "$dir/counted" | paste -sd,)" "packets of both ends"
# IPv4, UDP, BTH, RETH, eight octets and the ICRC; the answer has an AETH alone.
expect "68 48" "$(for opcode in 0x1d 0x10; do
  tshark -r "$dir/flow.pcap" -Y "infiniband.bth.opcode == $opcode" -T fields -e ip.len 2>/dev/null | sort -u
done | xargs)" "octets of a packet"

test_case "programs of libibverbs send ATOMIC WRITEs by ibv_post_send() and ibv_wr_atomic_write()"
needs tshark
needs_enter
capture programs
for name in "atomics change" "ibv_wr_*() post"; do
  timeout -k 5 60 "$ROCEFS" enter -m "$mnt" -- "$ROCEFS_BUILD/test/provider/verbs_test" "$name" || fail "$name"
done
echo off >"$debug/pcap"
expect 2 "$(packets programs 0x1d)" "ATOMIC WRITEs"

test_case "a flow of ATOMIC WRITEs has messages of eight octets, and no file"
refused() { expect "Invalid argument" "$(store "$1" "$debug/traffic/start")" "$1"; }
refused "bad atomic-write mb_0 mb_1 size=16"
refused "bad atomic-write mb_0 mb_1 file=/etc/hostname"
