#!/bin/bash
# A switch's knobs and readings on a mount: incast loses packets without PFC, and none with it; violated
# rules between knobs are reported in dmesg; reset clears the switch's state.
. "$(dirname "$0")/lib/common.bash"
ini=$dir/net.ini
{
  printf '[clock]\nmode = virtual\n[switch s]\n'
  for n in 1 2 3 4 5; do printf '[device h%d]\n[link h%d s]\n' "$n" "$n"; done
} >"$ini"
incast() {  # four flows of 4 MB into h5
  for n in 1 2 3 4; do
    echo "f$n write h$n h5 size=1M count=4 window=1024" >"$debug/traffic/start"
  done
}
finish() {
  echo idle >"$debug/clock/advance"
  for n in 1 2 3 4; do
    expect "done" "$(cat "$debug/traffic/f$n/state")" "flow $n"
    echo 1 >"$debug/traffic/f$n/stop"
  done
}
sum() { cat "$@" | awk '{sum += $1} END {print sum}'; }
mounted -o config="$ini"
switch=$debug/fabric/s

test_case "a switch shows its cables and defaults"
expect "h1 h2 h3 h4 h5" "$(cat "$switch"/ports/{1,2,3,4,5}/link | xargs)" "cables' far ends"
expect "0 5K 200K 0.01 enqueue" \
  "$(cat "$switch"/ecn/{enable,kmin,kmax,pmax,mark_at} | xargs)" "ECN at first"
expect "1 dynamic 0 8 0" \
  "$(cat "$switch"/pfc/{enable,mode,threshold,beta,headroom} | xargs)" "PFC at first"

test_case "a mount warns of its first settings"
printf '[topology]\nkind = star\nhosts = 3\nrate = 100G\ndelay = 100us\n' >"$dir/long.ini"
mounted -o config="$dir/long.ini"
grep -q 'sw_0: ports 1-3 have PFC headroom' "$debug/dmesg" || fail "$(cat "$debug/dmesg")"
printf '[knobs]\nkernel/debug/rocefs/fabric/sw_0/pfc/enable = 0\n' >>"$dir/long.ini"
mounted -o config="$dir/long.ini"
! grep -q 'PFC headroom' "$debug/dmesg" || fail "$(cat "$debug/dmesg")"
echo 1 >"$debug/fabric/sw_0/pfc/enable"
grep -q 'sw_0: ports 1-3 have PFC headroom' "$debug/dmesg" || fail "$(cat "$debug/dmesg")"
mounted -o config="$ini"

test_case "incast fills the buffer and its queue"
echo 2M >"$switch/buffer/size"
incast
echo 2ms >"$debug/clock/advance"
[ "$(cat "$switch/buffer/used")" -gt 500000 ] || fail "used: $(cat "$switch/buffer/used")"
expect "$(cat "$switch/buffer/used")" "$(cat "$switch/ports/5/queue/0/bytes")" "octets that wait"
[ "$(cat "$switch/ports/5/queue/0/packets")" -gt 100 ] || fail "packets that wait"
expect 0 "$(cat "$switch/ports/5/queue/3/bytes")" "octets of another priority"

test_case "no packet is lost with PFC"
finish
expect 0 "$(sum "$switch"/ports/*/queue/*/dropped)" "drops with PFC"
[ "$(sum "$switch"/ports/[1-4]/pfc/0/pause_sent)" -gt 3 ] || fail "PAUSE frames: too few"
expect 0 "$(sum "$switch"/ports/*/pfc/[1-7]/pause_sent)" "PAUSE frames of other priorities"
[ "$(sum "$debug"/links/h[1-4]-s/pfc/0/paused_ns)" -gt 1000 ] || fail "no NIC was paused"
expect "$(sum "$switch"/ports/[1-4]/pfc/0/pause_sent)" "$(sum "$debug"/links/h[1-4]-s/pfc/0/pause_received)" "PAUSE frames sent and received"
for n in 1 2 3 4; do
  [ "$(cat "$ib/h$n/ports/1/counters/port_xmit_wait")" -gt 0 ] || fail "h$n has not waited"
done
expect 0 "$(cat "$ib/h5/ports/1/counters/port_xmit_wait")" "wait of the receiver"

test_case "peaks stay until they are cleared"
expect 0 "$(cat "$switch/buffer/used")" "octets in an idle switch"
[ "$(cat "$switch/buffer/peak")" -gt 1000000 ] || fail "peak: $(cat "$switch/buffer/peak")"
[ "$(cat "$switch/ports/5/queue/0/peak")" -gt 1000000 ] || fail "peak of the queue"
echo 0 >"$switch/buffer/peak"
echo 0 >"$switch/ports/5/queue/0/peak"
expect "0 0" "$(cat "$switch/buffer/peak" "$switch/ports/5/queue/0/peak" | xargs)" "cleared peaks"
expect "Invalid argument" "$(store 1 "$switch/buffer/peak")" "a peak that is not 0"

test_case "without PFC drops are counted at the queue and the link"
echo 0 >"$switch/pfc/enable"
incast
finish
[ "$(cat "$switch/ports/5/queue/0/dropped")" -gt 0 ] || fail "no drops without PFC"
[ "$(sum "$debug"/links/*/overflowed)" -gt 0 ] || fail "no link says so"

test_case "a rule between knobs refuses a value with the reason"
expect "Invalid argument" "$(store 300K "$switch/ecn/kmin")" "Kmin above Kmax"
last_dmesg_says 'ecn/kmin 307200 is above ecn/kmax 204800'
expect 5K "$(cat "$switch/ecn/kmin")" "Kmin after that"
expect "Invalid argument" "$(store 1M "$switch/pfc/threshold")" "t_PFC above its bound"
last_dmesg_says 'pfc/threshold 1048576 is above its bound'
path=${switch#"$mnt"/}
echo "$path/ecn/kmax=1M $path/ecn/kmin=1M $path/ecn/enable=1 $path/pfc/enable=1" >"$debug/set"
await grep -qF 'ecn/kmin 1048576 is above its bound' "$debug/dmesg"

test_case "reset restores knobs and clears counters"
echo 1 >"$debug/reset"
expect "12M 5K 1" "$(cat "$switch"/{buffer/size,ecn/kmin,pfc/enable} | xargs)" "knobs after reset"
expect 0 "$(sum "$switch"/ports/*/queue/*/{dropped,peak} "$switch"/ports/*/pfc/*/pause_sent)" \
  "counters after reset"
