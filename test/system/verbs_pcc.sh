#!/bin/bash
# Congestion control of verbs programs: their queue pairs with pid and name, an algorithm that changes
# their bandwidth under congestion, and counters that agree with the programs' own.
. "$(dirname "$0")/lib/common.bash"
. "$lib/verbs.bash"
needs ib_write_bw
control=$(dirname "$ROCEFS")/mango-ctl
[ -x "$control" ] && [ -x "$(dirname "$ROCEFS")/mango-pccd" ] || skip "no mango-ctl or mango-pccd here"
logs=$dir
mounted
verbs=("$ROCEFS" enter -m "$mnt" --)
needs_enter
export ROCEFS_MOUNT=$mnt
pcc=$ib/mb_1/pcc near=$ib/mb_1/ports/1 far=$ib/mb_0/ports/1/hw_counters
sw=kernel/debug/rocefs/fabric/sw_0/ecn
data() { cat "$near/counters/port_xmit_data"; }
packets() { cat "$near/counters/port_xmit_packets"; }
waiting=$debug/fabric/sw_0/ports/1/queue/0
peak() {  # octets that waited for the far end's link, at most, in a second
  echo 0 >"$waiting/peak"
  read -rt 1 <> <(:) || true
  cat "$waiting/peak"
}
has_queue_pairs() { [ "$(ls "$pcc/qps" | wc -l)" = "$1" ]; }
two_clients() {  # until the end of the case
  start_server ib_write_bw -q 2 -n 100000000
  run_client ib_write_bw -q 2 -n 100000000 &
  running=$!
  at_end end_clients
  await has_queue_pairs 2
}
end_clients() {
  kill "$running" "$server" 2>/dev/null
  wait "$running" "$server"
  await has_queue_pairs 0
}

test_case "perftest's octets match the port's counters"
# 1000 messages of 64 KiB in packets of MTU 4096, with their headers.
sent=$(packets) octets=$(data)
perftest 65536 1000 ib_write_bw -m 4096
headers=$((20 + 8 + 12 + 4))  # IP, UDP, BTH, ICRC; the first packet of a message has a RETH of 16
expect $((1000 * 16)) $(($(packets) - sent)) "packets of 1000 messages of 64 KiB"
expect $((1000 * (65536 + 16 * headers + 16) / 4)) $(($(data) - octets)) "octets of 1000 messages, in words"

test_case "queue pairs of a program are listed with its pid and name"
two_clients
"$control" rdma pcc status mb_1 >"$dir/status"
client=$(pgrep -f "^ib_write_bw .* -p $port 127.0.0.1")
for qpn in $(ls "$pcc/qps"); do
  grep -qE "^$qpn +$client +ib_write_bw " "$dir/status" || fail "no queue pair $qpn of pid $client: $(cat "$dir/status")"
done

test_case "aimd keeps a program's packets out of the switch's queue"
# Congestion: the link to the far end is slower than the sender, even for an engine with a sanitizer, and the
# switch marks the packets that wait for it.
# Without an algorithm the queue fills until PFC stops the sender; aimd cuts the window on CNPs. The link
# stays nearly full with either, so the queue tells them apart, not the rate.
two_clients
echo 250000000 >"$debug/links/sw_0-mb_0/rate"
echo "$sw/kmin=20000 $sw/kmax=40000 $sw/pmax=1 $sw/enable=1" >"$debug/set"
full=$(peak)
expect none "$(cat "$pcc/algo")" "no algorithm"
expect 4294967295 "$(cat "$pcc/qps/$(ls "$pcc/qps" | head -n 1)/window")" "no window"
echo aimd >"$pcc/algo"
echo start >"$pcc/state"
has_cut() { [ "$(cat "$pcc/qps/$(ls "$pcc/qps" | head -n 1)/window")" -lt 4294967295 ]; }
await has_cut
has_drained() { [ "$(cat "$waiting/bytes")" -lt $((full / 10)) ]; }
await has_drained
cut=$(peak)
echo "REPORT a queue of up to $full octets without an algorithm, $cut under aimd"
[ "$(cat "$far/np_cnp_sent")" -gt 0 ] || fail "nobody was told of marks"
[ $cut -lt $((full / 2)) ] || fail "aimd changes nothing: $full and $cut octets"
echo stop >"$pcc/state"
