#!/bin/bash
# reset: the next test does not depend on what an earlier one did.
. "$(dirname "$0")/lib/common.bash"
cat >"$dir/left.ini" <<'INI'
[device left]
[device right]
[link left right]
[knobs]
kernel/debug/rocefs/links/left-right/loss = 0.05
INI

settings() {  # every knob and identity, but what tells the time
  { grep -r . "$mnt"/devices "$debug"/{links,log_level,pcap,drops} 2>/dev/null || true; } | sed "s|$mnt||" | sort
}
workload() {  # what a test sees of the same traffic
  echo "w write left right qps=3 size=10000 count=200 timeout=8" >"$debug/traffic/start"
  echo "s send right left count=100 size=3000 timeout=8" >"$debug/traffic/start"
  echo idle >"$debug/clock/advance"
  cat "$debug"/traffic/{w,s}/state
  grep -vhE '^(pid|comm)' "$debug"/traffic/{w,s}/result
  grep -r . "$mnt"/devices/*/*/infiniband/*/ports/1/{counters,hw_counters} "$debug"/{links,drops} | sed "s|$mnt||" | sort
}
mounted -o clock=virtual,seed=5,config="$dir/left.ini"
settings >"$dir/settings"
workload >"$dir/fresh"
grep -q '^retransmitted [1-9]' "$dir/fresh" || fail "nothing was lost"

mess() {
  echo 0.5 >"$debug/links/left-right/loss"
  echo down >"$debug/links/right-left/state"
  echo "somebody else" >"$ib/left/node_desc"
  echo debug >"$debug/log_level"
  echo "$dir/cap" >"$debug/pcap"
  echo "endless write left right count=1000000000" >"$debug/traffic/start"
  echo "1ms kernel/debug/rocefs/links/left-right/loss=1" >"$debug/clock/at"
  echo 300us >"$debug/clock/advance"
  basename "$(readlink -f "$ib/right/device")" >"$mnt/bus/pci/drivers/mango_core/unbind"
}

test_case "after a reset a mount is like a new one"
for round in 1 2 3; do
  mess
  before=$(cat "$debug/clock/now_ns")
  expect ok "$(store 1 "$debug/reset")" "reset"
  expect "$before" "$(cat "$debug/clock/now_ns")" "time goes on"
  expect 0000000000000000 "$(cat "$debug/clock/trace_hash")" "trace"
  expect start "$(ls "$debug/traffic")" "flows"
  expect "" "$(cat "$debug/clock/at")" "scheduled stores"
  settings >"$dir/now"
  diff "$dir/settings" "$dir/now" || fail "not as at first"
  workload >"$dir/again"
  diff <(grep -v _ns "$dir/fresh") <(grep -v _ns "$dir/again") || fail "not as on a new mount, round $round"
done

test_case "only 1 resets"
expect "Invalid argument" "$(store 2 "$debug/reset")" "2"
last_dmesg_says "only 1 resets"

test_case "a reset finishes an output that is being written"
head -c 30000000 /dev/zero | tr '\0' x >"$dir/in"
echo "f write left right file=$dir/in out=$dir/out timeout=8" >"$debug/traffic/start"
echo 5s >"$debug/clock/advance"
echo 1 >"$debug/reset"
echo idle >"$debug/clock/advance"
cmp "$dir/in" "$dir/out" || fail "OUT after a reset"

test_case "a run with a reset is logged"
echo "f write left right count=10 timeout=8" >"$debug/traffic/start"
echo idle >"$debug/clock/advance"
cat "$debug/clock/trace_hash" >"$dir/hash"
cp "$debug/clock/log" "$dir/log"
unmounted

test_case "the log replays a reset, and a reset amid real traffic clears all counters"
mounted -o clock=virtual,seed=5,config="$dir/left.ini"
while IFS= read -r line; do printf '%s\n' "$line" >"$debug/clock/at"; done <"$dir/log"
echo idle >"$debug/clock/advance"
expect "$(cat "$dir/hash")" "$(cat "$debug/clock/trace_hash")" "the trace of a replay"
unmounted

mounted
for round in $(seq 20); do
  echo "f write mb_0 mb_1 qps=4 count=1000000" >"$debug/traffic/start"
  await eval '[ "$(value bytes "$debug/traffic/f/result")" -gt 0 ]'
  cat "$ib"/mb_?/ports/1/hw_counters/rx_write_requests >/dev/null
  echo 1 >"$debug/reset"
  expect start "$(ls "$debug/traffic")" "flows"
  counts=$(cat "$ib"/mb_?/ports/1/{counters,hw_counters}/* "$debug"/links/*/{packets,bytes,lost,overflowed} "$debug"/drops/* | sort -u | xargs)
  expect "0 10" "$counts" "counters and lifespan after a reset"
done
