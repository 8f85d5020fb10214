#!/bin/bash
# clock/at and clock/log: stores at a given time, and a run that is replayed from its log.
. "$(dirname "$0")/lib/common.bash"
einval="Invalid argument"
here=kernel/debug/rocefs
link=$here/links/mb_0-sw_0
at=$debug/clock/at
refused() {  # TEXT MESSAGE REASON
  expect "$2" "$(store "$1" "$at")" "at '$1'"
  last_dmesg_says "$here/clock/at: "
  last_dmesg_says "$3"
  expect "" "$(cat "$at")" "after a refused '$1'"
}
outcome() {
  cat "$debug/clock/trace_hash"
  grep -r . "$ib"/mb_?/ports/1/{counters,hw_counters} "$debug"/{links,drops} | sed "s|$mnt||" | sort
  grep -vE '^(pid|comm)' "$debug"/traffic/*/{result,state} | sed "s|$mnt||"
}

test_case "a scheduled store is applied exactly at its time, and can be cancelled"
mounted -o clock=virtual
expect ok "$(store "5ms $link/loss=0.5 $link/delay=3us" "$at")" "in 5 ms"
expect ok "$(store "@2ms class/infiniband/mb_0/node_desc='it\\'s \\\\ here'" "$at")" "at 2 ms"
expect "@2000000 class/infiniband/mb_0/node_desc='it\\'s \\\\ here'
@5000000 $link/loss=0.5 $link/delay=3us" "$(cat "$at")" "what is to come"
echo 4999999 >"$debug/clock/advance"
expect "0 1us" "$(cat "$mnt/$link"/{loss,delay} | xargs)" "a nanosecond before"
expect "it's \\ here" "$(cat "$ib/mb_0/node_desc")" "a value with quotes"
echo 1 >"$debug/clock/advance"
expect "0.5 3us" "$(cat "$mnt/$link"/{loss,delay} | xargs)" "at the time"
expect "" "$(cat "$at")" "nothing is to come"
expect ok "$(store "1ms $link/loss=0" "$at")" "in 1 ms"
expect ok "$(store clear "$at")" "clear"
expect "" "$(cat "$at")" "after clear"
echo 2ms >"$debug/clock/advance"
expect 0.5 "$(cat "$mnt/$link/loss")" "a store that was called off"

test_case "an invalid store is refused at once"
refused "" "$einval" "''"
refused "5ms" "$einval" "an empty line"
refused "soon $link/loss=0" "$einval" "'soon'"
refused "@5ms+x $link/loss=0" "$einval" "'x'"
refused "@5ms $link/loss=0" "$einval" "@5000000 has passed: it is @7000000"
refused "9223372036.85s $link/loss=0" "$einval" "the time exceeds the clock's range"
refused "5ms $link/loss" "$einval" "PATH=VALUE is wanted"
refused "5ms $link/loss=x" "$einval" "$link/loss: 'x'"
refused "5ms $link/lost=0" "$einval" "$link/lost: no knob"
refused "5ms $link/lose=0" "$einval" "$link/lose: no knob"
refused "5ms $here/clock/advance=5ms" "$einval" "clock/advance: no knob"
refused "5ms $link/loss=0 $link/loss=1" "$einval" "given twice"
refused "5ms $here/reset=1 $link/loss=1" "$einval" "only knobs may be stored together"
expect ok "$(store "# a comment" "$at")" "a comment"

test_case "a store that is refused at its time is reported and changes nothing"
expect ok "$(store "1ms $here/traffic/f/stop=1" "$at")" "a flow may have come by then"
expect ok "$(store "1ms $here/traffic/start='f fly mb_0 mb_1'" "$at")" "a trigger is parsed at its time"
echo idle >"$debug/clock/advance"
last_dmesg_says "@8000000 $here/traffic/start='f fly mb_0 mb_1': unknown op 'fly'"
grep -qF "@8000000 $here/traffic/f/stop=1: $here/traffic/f/stop: no knob" "$debug/dmesg" || fail "no word of f/stop"
unmounted

test_case "the real clock has scheduled stores, too"
mounted
expect ok "$(store "20ms $link/loss=0.25" "$at")" "in 20 ms"
expect ok "$(store "20ms $here/traffic/start='r write mb_0 mb_1'" "$at")" "a flow in 20 ms"
loss_is() { [ "$(cat "$mnt/$link/loss")" = "$1" ]; }
await loss_is 0.25
await test -e "$debug/traffic/r"
grep -qE "^@[0-9]+ $link/loss=0.25\$" "$debug/clock/log" || fail "not in the log: $(cat "$debug/clock/log")"
unmounted

test_case "a run and its replay from the log are the same"
mounted -o clock=virtual,seed=7
for direction in "$debug"/links/*/loss; do echo 0.02 >"$direction"; done
echo 100us >"$debug/clock/advance"
echo "w write mb_0 mb_1 qps=3 size=100000 count=60 timeout=8" >"$debug/traffic/start"
echo 300us >"$debug/clock/advance"
echo "$link/loss=0.2 $link/rate=2500M" >"$debug/set"
echo "s send mb_1 mb_0 qps=2 size=3000 count=500 mtu=1024 timeout=8 window=32" >"$debug/traffic/start"
echo "70us $link/rate=5G $link/delay=7us" >"$at"
echo "50us $here/traffic/start='a write mb_1 mb_0 size=4096 count=100 timeout=8'" >"$at"
echo 200us >"$debug/clock/advance"
echo 1 >"$debug/traffic/w/stop"
echo 1 >"$debug/traffic/w/stop"
echo "w write mb_0 mb_1 qps=2 count=4000 timeout=8" >"$debug/traffic/start"
# Stores during an advance are applied between any two events, also of one instant.
echo 400ms >"$debug/clock/advance" &
for loss in 0.03 0.02 0.01 0.03 0.02 0.01 0.03 0.02 0.01 0.03 0.02 0.01 0; do
  echo $loss >"$debug/links/sw_0-mb_1/loss"
done
echo "b send mb_0 mb_1 count=200 size=9000 timeout=8" >"$debug/traffic/start"
wait $!
echo 1us >"$mnt/$link/delay"
echo idle >"$debug/clock/advance"
outcome >"$dir/first"
cp "$debug/clock/log" "$dir/log"
unmounted

grep -q "^@400000 $here/set='$link/loss=0.2 $link/rate=2500M'\$" "$dir/log" || fail "the log: $(cat "$dir/log")"
grep -qE "^@470000(\+[0-9]+)? $link/rate=5G $link/delay=7us\$" "$dir/log" || fail "the log: $(cat "$dir/log")"
mounted -o clock=virtual,seed=7
while IFS= read -r line; do printf '%s\n' "$line" >"$at"; done <"$dir/log"
expect "$(cat "$dir/log")" "$(cat "$at")" "what is to come is the log"
echo idle >"$debug/clock/advance"
outcome >"$dir/second"
diff "$dir/first" "$dir/second" || fail "the replay is another run"
diff "$dir/log" "$debug/clock/log" || fail "the replay has another log"
unmounted

test_case "a store a nanosecond later gives another run"
mounted -o clock=virtual,seed=7
sed "s/^@100000 /@100001 /" "$dir/log" >"$dir/other"
while IFS= read -r line; do printf "%s\n" "$line" >"$at"; done <"$dir/other"
echo idle >"$debug/clock/advance"
[ "$(cat "$debug/clock/trace_hash")" != "$(head -n 1 "$dir/first")" ] || fail "a nanosecond later, the same run"
