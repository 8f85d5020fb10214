#!/bin/bash
# Networks that are not connected to each other, on packet cores of their own (cores=N).
. "$(dirname "$0")/lib/common.bash"
. "$lib/verbs.bash"
logs=$dir
cat >"$dir/two.ini" <<'INI'
[device x0]
[device x1]
[link x0 x1]
rate = 400G
[device mb_0]
[device mb_1]
[switch sw]
[link mb_0 sw]
rate = 400G
[link mb_1 sw]
rate = 400G
INI
flow() { echo "$1 $2 $3 $4 size=${5:-64K} count=${6:-2000}" >"$debug/traffic/start"; }  # NAME OP FROM TO
ended_well() {  # FLOW…
  local flow
  for flow; do
    await state_is "$flow" done
    expect 0 "$(value mismatched "$debug/traffic/$flow/result")" "mismatched messages of $flow"
  done
}
sent() { cat "$ib/$1/ports/1/counters/port_xmit_packets"; }  # DEVICE

test_case "there are as many cores as are wanted, and at most as many as NICs"
for wrong in 0 65 x; do
  ! "$ROCEFS" -o cores=$wrong "$mnt" 2>"$dir/err" || fail "cores=$wrong is taken"
  grep -q "cores=$wrong: 1 to 64 is wanted" "$dir/err" || fail "$(cat "$dir/err")"
done
mounted -o cores=8
expect "0: mb_0 1: mb_1" "$(echo $(cat "$debug/cores"))" "one network of two NICs"
mounted -o "config=$dir/two.ini"
expect "0: x0 x1 mb_0 mb_1" "$(cat "$debug/cores")" "without cores="
mounted -o "cores=2,config=$dir/two.ini"
expect "0: x0 x1 1: mb_0 mb_1" "$(echo $(cat "$debug/cores"))" "two networks"
last_dmesg_says "2 packet cores"

test_case "flows of two cores run while knobs change and counters are read"
for op in write read send; do
  flow "x$op" $op x0 x1
  flow "mb$op" $op mb_0 mb_1
done
for i in {1..100}; do
  echo 0.00$((i % 10)) >"$debug/links/x0-x1/loss"
  echo 0.00$((i % 10)) >"$debug/links/sw-mb_1/loss"
  cat "$debug/links/x0-x1/lost" "$debug/clock/trace_hash" "$debug/clock/lateness" >/dev/null
done
echo 0 | tee "$debug"/links/{x0-x1,sw-mb_1}/loss >/dev/null
ended_well {x,mb}{write,read,send}

test_case "a capture has the packets of both"
begun=$(($(sent x0) + $(sent x1) + $(sent mb_0) + $(sent mb_1)))
echo "$dir/both.pcap" >"$debug/pcap"
flow x write x0 x1 64K 500
flow mb write mb_0 mb_1 64K 500
ended_well x mb
echo off >"$debug/pcap"
packets=$(($(sent x0) + $(sent x1) + $(sent mb_0) + $(sent mb_1) - begun))
[ $packets -gt 16000 ] || fail "there were $packets packets"
# A record's length is at octet 8 of its header of 16, behind a file header of 24.
captured=$(python3 -c 'import struct, sys
bytes = open(sys.argv[1], "rb").read()
at, count = 24, 0
while at < len(bytes):
    at, count = at + 16 + struct.unpack_from("I", bytes, at + 8)[0], count + 1
print(count)' "$dir/both.pcap")
expect "$packets" "$captured" "captured packets"

test_case "no flow leads from one network to the other on another core"
expect "No route to host" "$(store "across write x0 mb_1" "$debug/traffic/start")" "a flow across"
last_dmesg_says "no cables lead from x0 to mb_1"

test_case "faults on the second core act and are told"
echo "f down mb_0-sw delay=1ms" >"$debug/inject/add"
flow again write mb_0 mb_1
ended_well again
expect "1 up" "$(cat "$debug/inject/f/fired") $(cat "$debug/links/mb_0-sw/state")" "fired, and the direction afterwards"

test_case "loads start and end flows on both cores"
for hosts in "x0 x1" "mb_0 mb_1"; do
  echo "${hosts%% *} pattern=poisson load=0.3 cdf=fbhadoop flows=200 hosts=$hosts" >"$debug/loads/start"
done
load_is_over() { [ "$(cat "$debug/loads/$1/state")" = done ]; }
for load in x0 mb_0; do
  await load_is_over $load
  expect 0 "$(value failed "$debug/loads/$load/result")" "failed flows of $load"
done

test_case "a reset ends what runs on both"
flow xlong write x0 x1 1M 100000
flow mblong write mb_0 mb_1 1M 100000
echo 1 >"$debug/reset"
expect start "$(ls "$debug/traffic")" "flows after a reset"
flow x write x0 x1
flow mb write mb_0 mb_1
ended_well x mb

test_case "a worker that takes over has as many cores"
kill_worker
expect "0: x0 x1 1: mb_0 mb_1" "$(echo $(cat "$debug/cores"))" "cores"
flow x write x0 x1
flow mb write mb_0 mb_1
ended_well x mb

test_case "programs on the second core: verbs and connections"
needs ibv_rc_pingpong rping
needs_enter
needs_provider
verbs=("$ROCEFS" enter -m "$mnt" --)
flow beside write x0 x1 1M 1000
pingpong 8192000 ibv_rc_pingpong -g 1
port=$((port + 1))
connects() { grep -q ":$port .*state=listen" "$debug/cm_ids"; }
timeout -k 5 60 "${verbs[@]}" rping -s -p $port -C 5 >"$dir/server" 2>&1 &
server=$!
await connects
timeout -k 5 60 "${verbs[@]}" rping -c -v -I 10.77.0.4 -a 10.77.0.3 -p $port -C 5 >"$dir/client" 2>&1 || true
wait $server || fail "rping: $(cat "$dir/server" "$dir/client")"
expect 5 "$(grep -c '^ping data: rdma-ping' "$dir/client")" "pings"
ended_well beside

test_case "under the virtual clock cores= changes nothing"
hash_with() {  # CORES
  mounted -o "clock=virtual,seed=3,cores=$1,config=$dir/two.ini"
  echo 0.01 | tee "$debug"/links/{x0-x1,mb_0-sw}/loss >/dev/null
  flow x write x0 x1 64K 20
  flow mb write mb_0 mb_1 64K 20
  echo idle >"$debug/clock/advance"
  cat "$debug/clock/trace_hash" "$debug/clock/now_ns"
}
expect "$(hash_with 1)" "$(hash_with 2)" "hash and time"
