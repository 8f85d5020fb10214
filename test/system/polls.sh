#!/bin/bash
# A reader that waits for the end of a flow, for a fault or for PCC sleeps in poll(2) until the file changes.
. "$(dirname "$0")/lib/common.bash"
. "$lib/takeover.bash"
watch() {  # FILE UNTIL: in the background; it has read once when this returns
  : >"$dir/seen"
  python3 "$lib/watch.py" "$1" "$2" >"$dir/seen" &
  watcher=$!
  await [ -s "$dir/seen" ]
}
# The first and the last value that it has seen; it may miss those in between.
saw() {  # FIRST LAST
  wait $watcher || fail "nobody was woken: $(xargs <"$dir/seen")"
  expect "$1 $2" "$(sed -n '1p;$p' "$dir/seen" | xargs)" "what was seen"
}
mounted -o clock=virtual,seed=5
traffic=$debug/traffic state=$ib/mb_0/pcc/state

test_case "a poll of a flow's state sees its end"
echo "f write mb_0 mb_1 size=64K count=100" >"$traffic/start"
watch "$traffic/f/state" "done"
echo idle >"$debug/clock/advance"
saw running "done"
echo "g write mb_0 mb_1 size=64K count=100" >"$traffic/start"
watch "$traffic/g/state" "stopped"
echo 1 >"$traffic/g/stop"
wait $watcher || [ ! -e "$traffic/g" ] || fail "a flow that was stopped"

test_case "a poll of a fault sees that it has fired"
# A poll is woken for the first fault after a read, not for each fault.
echo "lost drop mb_0-sw_0 opcode=data count=7" >"$debug/inject/add"
watch "$debug/inject/lost/fired" 7
echo "h write mb_0 mb_1 size=64K count=100" >"$traffic/start"
echo idle >"$debug/clock/advance"
saw 0 7

test_case "a poll of PCC's state sees start and stop"
mounted
echo aimd >"$ib/mb_0/pcc/algo"
watch "$state" active
echo start >"$state"
saw inactive active
watch "$state" inactive
echo stop >"$state"
saw active inactive

test_case "a successor wakes pollers of the worker that died"
watch "$state" active
kill_worker
await took_over 1
echo aimd >"$ib/mb_0/pcc/algo"
echo start >"$state"
saw inactive active
echo stop >"$state"
