#!/bin/bash
# Congestion control on a mount: CFR over a lossy link, DCQCN's knobs and their rules, the traffic class.
. "$(dirname "$0")/lib/common.bash"

mounted -o clock=virtual,seed=5
ecn=$mnt/class/net/enp43s0/ecn far=$ib/mb_1/ports/1/hw_counters near=$ib/mb_0/ports/1/hw_counters
flow=$debug/traffic/f
rp=class/net/enp43s0/ecn/roce_rp np=class/net/enp43s0/ecn/roce_np
tc=$ib/mb_0/tc/1/traffic_class
advance() { echo "$1" >"$debug/clock/advance"; }
start() { echo "$1" >"$debug/traffic/start"; }

test_case "CFR shrinks the window on loss, and the window recovers"
# CFR: on loss the receiver sends CNPs, without ECN; the window shrinks and recovers.
echo 0.05 >"$debug/links/sw_0-mb_1/loss"
start "f write mb_0 mb_1 size=256K count=1000000 timeout=8"
advance 2ms
expect 4294967295 "$(cat "$flow/window")" "window without a limit"
expect 0 "$(cat "$far/np_cnp_sent")" "CNPs without CFR"
for device in mb_0 mb_1; do echo 1 >"$ib/$device/cfr/enable"; done
expect 524288 "$(cat "$flow/window")" "CFR's window at first"
advance 2ms
expect "$(cat "$flow/window")" "$(cat "$ib"/mb_0/pcc/qps/*/window)" "CFR's window in the queue pair's files"
[ "$(cat "$flow/window")" -lt 262144 ] || fail "the window has not fallen: $(cat "$flow/window")"
sent=$(cat "$far/np_cnp_sent")
[ "$sent" -gt 10 ] || fail "only $sent CNPs"
expect "$sent" "$(cat "$far/np_cnp_sent_ooo")" "CNPs because of gaps"
expect 0 "$(cat "$far/np_ecn_marked_roce_packets")" "marked packets"
expect 1 "$(cat "$ib/mb_0/cfr/saved")" "saved"
echo 0 >"$debug/links/sw_0-mb_1/loss"
advance 30ms
expect 524288 "$(cat "$flow/window")" "the window after the loss"
echo 1 >"$flow/stop"
expect "$(value cnps "$flow/result")" "$(cat "$near/rp_cnp_handled")" "CNPs that the sender obeyed"
expect 0 "$(value mismatched "$flow/result")" "mismatched"

test_case "DCQCN's rules between knobs hold for one store and for several at once"
expect "Invalid argument" "$(store 50 "$ecn/roce_rp/dce_tcp_rtt")" "K = N"
grep -q "dce_tcp_rtt, 50 us, must be more than min_time_between_cnps, 50 us" "$debug/dmesg" || fail "no reason"
expect ok "$(store "$rp/dce_tcp_rtt=5 $np/min_time_between_cnps=4" "$debug/set")" "both at once"
expect ok "$(store 1 "$ecn/roce_rp/enable/3")" "RP"

test_case "a port's traffic class can be set and removed"
expect "" "$(cat "$tc")" "no class at first"
expect ok "$(store 106 "$tc")" "class"
expect "Global tclass=106" "$(cat "$tc")" "class"
for bad in 256 x "1 2" -2; do expect "Invalid argument" "$(store "$bad" "$tc")" "class $bad"; done
expect ok "$(store -1 "$tc")" "no class"
expect "" "$(cat "$tc")" "no class again"

test_case "a driver that comes back has the defaults"
echo 106 >"$tc"
echo 0000:2b:00.0 >"$mnt/bus/pci/drivers/mango_core/unbind"
echo 0000:2b:00.0 >"$mnt/bus/pci/drivers/mango_core/bind"
expect 0 "$(cat "$ib/mb_0/cfr/enable")" "CFR after bind"
expect 55 "$(cat "$ecn/roce_rp/dce_tcp_rtt")" "K after bind"
expect 0 "$(cat "$ecn/roce_rp/enable/3")" "RP after bind"
expect "" "$(cat "$tc")" "class after bind"
