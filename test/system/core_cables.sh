#!/bin/bash
# Networks that are divided among packet cores (cores=N): packets cross from one core to another.
. "$(dirname "$0")/lib/common.bash"
. "$lib/verbs.bash"
logs=$dir
cat >"$dir/pair.ini" <<'INI'
[device mb_0]
[device mb_1]
[link mb_0 mb_1]
INI
cat >"$dir/star.ini" <<'INI'
[device h1]
[device h2]
[device h3]
[device h4]
[switch sw]
[link h1 sw]
[link h2 sw]
[link h3 sw]
[link h4 sw]
INI
flow() { echo "$1 $2 $3 $4 size=${5:-64K} count=${6:-500} ${*:7}" >"$debug/traffic/start"; }  # NAME OP FROM TO
ended_well() {  # FLOW…
  local flow
  for flow; do
    await state_is "$flow" "done"
    expect 0 "$(value mismatched "$debug/traffic/$flow/result")" "mismatched messages of $flow"
  done
}
total() { cat "$@" | awk '{sum += $1} END {print sum + 0}'; }
# Each packet that a NIC has sent another one has received, or a cable has lost: nothing else loses any.
all_accounted() {
  local sent received lost
  sent=$(total "$ib"/*/ports/1/counters/port_xmit_{packets,discards})
  lost=$(total "$debug"/links/*/lost "$debug"/inject/*/fired)
  received=$(total "$ib"/*/ports/1/counters/port_rcv_packets)
  accounts="sent $sent, received $received, lost $lost, dropped $(total "$debug"/links/*/overflowed "$debug"/drops/*)"
  [ "$sent" = $((received + lost)) ]
}
await_accounts() {
  local end=$((SECONDS + 20))
  until all_accounted; do [ $SECONDS -lt $end ] || fail "$accounts"; done
  expect 0 "$(total "$debug"/links/*/overflowed "$debug"/drops/*)" "packets dropped"
}
nothing_lost() {
  await_accounts
  expect 0 "$(total "$debug"/links/*/lost)" "packets lost"
}
star() { mounted -o "cores=2,config=$dir/star.ini"; }

test_case "a pair and a star are divided, each NIC to a core"
mounted -o "cores=2,config=$dir/pair.ini"
expect "0: mb_0 1: mb_1" "$(echo $(cat "$debug/cores"))" "a pair"
star
expect "0: h1 h2 1: h3 h4" "$(echo $(cat "$debug/cores"))" "a star"

test_case "flows across write, read and add; nothing is lost, and both ends count the same"
for op in write read atomic; do
  size=64K
  [ $op != atomic ] || size=8
  flow "there$op" $op h1 h3 $size
  flow "back$op" $op h4 h2 $size
done
for flow in {there,back}{write,read,atomic}; do ended_well $flow; done
nothing_lost
expect "Operation not supported" "$(store "no send h1 h3" "$debug/traffic/start")" "a flow that needs receive requests"
last_dmesg_says "op=send: h1 and h3 are on different packet cores"

test_case "flows of one core whose packets cross to a switch of another: all operations"
for op in send uc ud; do
  size=64K
  [ $op != ud ] || size=4096
  flow "one$op" $op h3 h4 $size
done
ended_well one{send,uc,ud}
for op in uc ud; do expect 500 "$(value received "$debug/traffic/one$op/result")" "messages that have arrived"; done
nothing_lost

test_case "loss on cables between cores is repaired"
for link in h1-sw sw-h3 h3-sw sw-h4; do echo 0.01 >"$debug/links/$link/loss"; done
flow lossy write h1 h3 64K 500
flow lossyread read h4 h1 64K 500
ended_well lossy lossyread
[ "$(total "$debug"/links/*/lost)" -gt 0 ] || fail "nothing was lost"
await_accounts
for link in h1-sw sw-h3 h3-sw sw-h4; do echo 0 >"$debug/links/$link/loss"; done

test_case "PFC: three senders of two cores to one NIC lose nothing"
star
echo 100K >"$debug/fabric/sw/pfc/threshold"
echo static >"$debug/fabric/sw/pfc/mode"
for i in 2 3 4; do flow "in$i" write h$i h1 1M 60; done
ended_well in2 in3 in4
[ "$(total "$debug"/fabric/sw/ports/*/pfc/0/pause_sent)" -gt 0 ] || fail "nobody was paused"
expect "$(total "$debug"/fabric/sw/ports/*/pfc/0/pause_sent)" "$(total "$debug"/links/h?-sw/pfc/0/pause_received)" "PAUSE sent and received"
# Not packets sent again: a sender on an overloaded machine may time out without a loss.
expect 0 "$(total "$ib"/*/ports/1/hw_counters/{out_of_sequence,packet_seq_err})" "packets that were missing"
nothing_lost

test_case "a cable between cores goes down in the middle of traffic, and comes back"
flow down write h3 h1 1M 300
echo "f down h3-sw delay=20ms skip=1000" >"$debug/inject/add"
ended_well down
expect "1 up" "$(cat "$debug/inject/f/fired") $(cat "$debug/links/h3-sw/state")" "fired, and the direction afterwards"
await_accounts

test_case "knobs, captures and counters while packets cross"
flow busy write h1 h3 1M 400
flow busyback read h4 h2 1M 400
for i in {1..60}; do
  echo "kernel/debug/rocefs/links/h3-sw/delay=${i}us kernel/debug/rocefs/links/sw-h3/rate=$((5 + i % 5))G" >"$debug/set"
  cat "$debug/links/h1-sw/packets" "$debug/clock/trace_hash" >/dev/null
  [ $i != 20 ] || echo "$dir/busy.pcap" >"$debug/pcap"
  [ $i != 40 ] || echo off >"$debug/pcap"
done
ended_well busy busyback
[ -s "$dir/busy.pcap" ] || fail "nothing was captured"
await_accounts

test_case "NPCC of a switch finds senders on another core"
echo 1 >"$debug/fabric/sw/ports/1/npcc/enable"
for i in 3 4; do flow "npcc$i" write h$i h1 1M 60; done
ended_well npcc3 npcc4
[ "$(cat "$debug/fabric/sw/npcc/cnp_sent")" -gt 0 ] || fail "no CNP: $(grep . "$debug"/fabric/sw/npcc/* )"
[ "$(total "$ib"/h[34]/ports/1/hw_counters/rp_cnp_{handled,ignored})" -gt 0 ] || fail "no CNP has come to a sender"
echo 0 >"$debug/fabric/sw/ports/1/npcc/enable"

test_case "loads start and end flows across"
echo "ring pattern=ring-allreduce size=256K rounds=3 hosts=h1,h3,h2,h4" >"$debug/loads/start" || true
echo "many pattern=poisson load=0.3 cdf=fbhadoop flows=200" >"$debug/loads/start"
load_is_over() { [ "$(cat "$debug/loads/$1/state")" = "done" ]; }
await load_is_over many
expect 0 "$(value failed "$debug/loads/many/result")" "failed flows"

test_case "a reset in the middle of traffic ends it; flows run afterwards"
flow long write h1 h3 1M 100000
flow longback read h4 h2 1M 100000
flow longone ud h3 h4 4096 1000000
echo 1 >"$debug/reset"
expect start "$(ls "$debug/traffic")" "flows after a reset"
flow again write h1 h3
flow againone ud h3 h4 4096
ended_well again againone

test_case "a worker that takes over divides as the one before"
flow long write h1 h3 1M 100000
kill_worker
expect "0: h1 h2 1: h3 h4" "$(echo $(cat "$debug/cores"))" "cores"
flow again write h1 h3
ended_well again
nothing_lost

test_case "cores that nobody uses use no CPU"
worker=$(worker_pid)
ticks() { awk '{sum += $14 + $15} END {print sum}' "/proc/$worker/stat"; }
before=$(ticks)
timeout 3 tail -f /dev/null || true
used=$(($(ticks) - before))
[ $used -lt 10 ] || fail "$used ticks in three seconds"

test_case "a mount is left in the middle of traffic"
flow long write h1 h3 1M 100000
flow longback read h4 h2 1M 100000
flow longone ud h3 h4 4096 1000000
unmounted

test_case "verbs programs on two cores: all operations, and connections"
needs ibv_rc_pingpong rping ib_write_bw
mounted -o "cores=2,config=$dir/pair.ini"
needs_enter
needs_provider
verbs=("$ROCEFS" enter -m "$mnt" --)
some_stock_programs
pingpong 819200 ibv_uc_pingpong -g 1 -n 100
for tool in ib_send_bw ib_read_bw ib_write_lat; do perftest 65536 200 $tool; done
perftest 8 200 ib_atomic_bw
perftest 4096 200 ib_send_bw -c UD
port=$((port + 1))
connects() { grep -q ":$port .*state=listen" "$debug/cm_ids"; }
timeout -k 5 60 "${verbs[@]}" rping -s -p $port -C 5 >"$dir/server" 2>&1 &
server=$!
await connects
timeout -k 5 60 "${verbs[@]}" rping -c -v -a 10.77.0.1 -p $port -C 5 >"$dir/client" 2>&1 || true
wait $server || fail "rping: $(cat "$dir/server" "$dir/client")"
expect 5 "$(grep -c '^ping data: rdma-ping' "$dir/client")" "pings"
nothing_lost

test_case "a client that is killed in the middle of traffic leaves the other core in order"
needs ib_write_bw
needs_enter
needs_provider
start_server ib_write_bw -n 10000000
setsid "${verbs[@]}" ib_write_bw -n 10000000 -d mb_1 -p $port 127.0.0.1 >"$dir/client" 2>&1 &
client=$!
crossing() { [ "$(cat "$ib/mb_0/ports/1/counters/port_rcv_packets")" -gt "$1" ]; }
await crossing $(($(cat "$ib/mb_0/ports/1/counters/port_rcv_packets") + 1000))
kill -KILL -- -$client
wait $client 2>/dev/null || true
kill $server 2>/dev/null || true
wait $server || true
pingpong 819200 ibv_rc_pingpong -g 1 -n 100

test_case "frames of hosts cross"
needs ip ping
mounted -o "cores=2,config=$dir/pair.ini"
host() { timeout -k 5 60 "$ROCEFS" host -m "$mnt" "$@"; }  # HOST COMMAND…
host mb_0 true 2>"$dir/why" || skip "no hosts here: $(cat "$dir/why")"
host mb_0 ping -qc 5 -i 0.01 mb_1 >"$dir/ping" || fail "$(cat "$dir/ping")"
expect 0 "$(total "$debug"/links/*/{lost,overflowed})" "frames lost"
