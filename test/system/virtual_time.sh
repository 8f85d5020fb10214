#!/bin/bash
# Under the virtual clock a seed determines the run: the same trace and the same counters, with and
# without readers of every file; another seed gives another run.
. "$(dirname "$0")/lib/common.bash"

hammer() {  # reads every file of the tree again and again until it is killed
  while :; do find "$mnt" -type f -readable ! -name advance -exec cat {} + >/dev/null 2>&1 || true; done
}

run() {  # SEED READERS: prints the trace hash and all counters
  mounted -o clock=virtual,seed="$1"
  local readers=() i
  for ((i = 0; i < $2; ++i)); do
    hammer &
    readers+=($!)
  done
  for link in "$debug"/links/*/loss; do echo 0.02 >"$link"; done
  echo 100us >"$debug/clock/advance"
  echo "w write mb_0 mb_1 qps=3 size=100000 count=60 timeout=8" >"$debug/traffic/start"
  echo "s send mb_1 mb_0 qps=2 size=3000 count=500 mtu=1024 timeout=8 window=32" >"$debug/traffic/start"
  echo 300us >"$debug/clock/advance"
  echo 0 >"$debug/links/mb_0-sw_0/loss"
  echo idle >"$debug/clock/advance"
  state_is w "done" && state_is s "done" || fail "flows: $(cat "$debug"/traffic/*/state)"
  expect 0 "$(value mismatched "$debug/traffic/w/result")" "mismatched messages"
  [ "$(value retransmitted "$debug/traffic/w/result")" -gt 0 ] || fail "nothing was lost"
  for pid in "${readers[@]}"; do kill "$pid"; wait "$pid" 2>/dev/null || true; done
  cat "$debug/clock/trace_hash" "$debug/clock/now_ns"
  grep -r . "$ib"/mb_?/ports/1/{counters,hw_counters} "$debug"/links | sed "s|$mnt||"
  grep -vE '^(pid|comm)' "$debug/traffic/w/result" "$debug/traffic/s/result" | sed "s|$mnt||"
  unmounted
}

test_case "the same seed gives the same run"
run 7 0 >"$dir/quiet"
run 7 0 >"$dir/again"
cmp "$dir/quiet" "$dir/again" || fail "two runs of a seed differ"

test_case "readers do not change a run"
run 7 3 >"$dir/hammered"
diff "$dir/quiet" "$dir/hammered" || fail "readers change a run"

test_case "another seed gives another run"
run 8 0 >"$dir/other"
[ "$(head -n 1 "$dir/quiet")" != "$(head -n 1 "$dir/other")" ] || fail "another seed, the same trace"
