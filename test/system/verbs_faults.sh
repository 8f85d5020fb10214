#!/bin/bash
# Verbs programs and the emulator: their packets in a capture, a cable that loses them, a device that leaves, a
# worker that dies, a virtual clock.
. "$(dirname "$0")/lib/common.bash"
. "$lib/verbs.bash"
. "$lib/takeover.bash"
needs ibv_rc_pingpong
logs=$dir
verbs=("$ROCEFS" enter -m "$mnt" --)
driver=$mnt/bus/pci/drivers/mango_core
address=0000:2b:00.0

mounted
needs_enter
endless=(ib_write_bw -s 65536 -n 100000000)
busy() { [ "$(cat "$ib/mb_1/ports/1/counters/port_xmit_packets")" -gt $((sent + 1000)) ]; }
traffic() {  # of a client and a server that would go on for long; it has begun when this returns
  sent=$(cat "$ib/mb_1/ports/1/counters/port_xmit_packets")
  start_server "${endless[@]}"
  run_client "${endless[@]}" &
  client=$!
  await busy
}
both_fail() {  # WHAT
  local served=0 status=0
  wait "$client" || status=$?
  wait "$server" || served=$?
  if [ $status -eq 0 ] || [ $status -ge 124 ] || [ $served -eq 0 ] || [ $served -ge 124 ]; then
    fail "$1: statuses $served and $status"$'\n'"$(said_both)"
  fi
}

test_case "a capture has every octet that was sent, in whole packets"
# A capture has every octet that was sent, in whole packets: 200 messages of 4096 octets in each direction,
# with the MTU of 1024 that ibv_rc_pingpong chooses.
echo "$dir/wire.pcap" >"$debug/pcap"
pingpong 1638400 ibv_rc_pingpong -g 1 -n 200 -c
echo off >"$debug/pcap"
python3 "$lib/roce_pcap.py" "$dir/wire.pcap" >"$dir/counted" || fail "the capture"
expect "10.77.0.1 200 400 200 0 819200,10.77.0.2 200 400 200 0 819200" \
  "$(awk '{$2 = ""; print}' "$dir/counted" | tr -s ' ' | paste -sd,)" "what the capture carries"

test_case "tshark reads each packet of a capture"
needs tshark
frames() { tshark -r "$dir/wire.pcap" -Y "$1" -T fields -e frame.number 2>/dev/null | wc -l; }
expect "$(awk '{sum += $2} END {print sum}' "$dir/counted")" "$(frames infiniband)" "packets that tshark sees"
[ "$(frames 'infiniband.bth.opcode == 0')" -ge 400 ] || fail "tshark sees few SEND First"
expect 0 "$(frames _ws.malformed)" "packets that tshark cannot read"

test_case "a program gives up after the time-outs when a cable loses all"
# The cable loses all that mb_1 sends: after eight time-outs of 4.096 us x 2^14 it gives up, not before.
echo 1 >"$debug/links/mb_1-sw_0/loss"
start_server ibv_rc_pingpong -g 1
begin=${EPOCHREALTIME/./}
run_client ibv_rc_pingpong -g 1 && fail "nothing arrived, and the client did not see it"
passed=$((${EPOCHREALTIME/./} - begin))
grep -q "transport retry counter exceeded (12)" "$logs/client" || fail "a cable that loses all: $(said_both)"
[ $passed -ge 536871 ] || fail "gave up after $passed us"
echo "gave up after $((passed / 1000)) ms"
kill "$server"  # it waits for what never comes, as it would on any NIC
wait "$server" || true
echo 0 >"$debug/links/mb_1-sw_0/loss"

test_case "a program that watches a device is told when it leaves"
timeout -k 5 60 "${verbs[@]}" stdbuf -oL ibv_asyncwatch -d mb_0 >"$dir/watched" 2>&1 &
watcher=$!
at_end eval 'kill $watcher 2>/dev/null'
await grep -q "async event FD" "$dir/watched"
echo $address >"$driver/unbind"
wait $watcher || true
grep -q "event_type .*fatal" "$dir/watched" || grep -q "event_type .*(8)" "$dir/watched" || fail "not told: $(cat "$dir/watched")"
echo $address >"$driver/bind"

test_case "a device that leaves ends programs at both ends"
needs ib_write_bw
traffic
echo $address >"$driver/unbind"
both_fail "a device that left"
echo $address >"$driver/bind"
pingpong 819200 ibv_rc_pingpong -g 1 -n 100

test_case "a worker that dies ends its clients, and the next one serves"
needs ib_write_bw
traffic
kill_worker
both_fail "a worker that died"
pingpong 819200 ibv_rc_pingpong -g 1 -n 100

test_case "programs cannot run under the virtual clock"
mounted -o clock=virtual
said=$("${verbs[@]}" ibv_rc_pingpong -d mb_0 -g 1 2>&1) && fail "a device opened under the virtual clock"
[[ $said == *"rocefs: mb_0: the clock is virtual"* ]] || fail "the virtual clock: $said"
expect "mb_0 mb_1" "$("${verbs[@]}" ibv_devices | awk 'NR > 2 {print $1}' | xargs)" "devices under the virtual clock"
