#!/bin/bash
# PCC under the virtual clock: built-in algorithms run in the engine, plugins in mango-pccd; from one
# to the other and back, and what is shown of parameters is what runs.
. "$(dirname "$0")/lib/common.bash"
[ -x "$(dirname "$ROCEFS")/mango-pccd" ] || skip "no mango-pccd here"
source=$(realpath "$(dirname "$0")/../../tools/examples/gentle.cc") include=$(realpath "$(dirname "$0")/../../pcc/api")
pcc=$ib/mb_0/pcc
plugin() {  # NAME: like gentle, with a parameter that it writes itself
  sed "s/\"gentle\"/\"$1\"/; s/.*Gentle, patience),/&\n REGISTER_UINT32_PARAM(Gentle, quiet),/" "$source" >"$dir/$1.cc"
  "${CXX:-c++}" -std=c++20 -O1 -shared -fPIC -I"$include" -o "$(cat "$pcc/plugin_dir")/$1.so" "$dir/$1.cc"
}
advance() { echo "$1" >"$debug/clock/advance"; }
# By how much the last window that was raised was.
step() { awk -F, -v algorithm="$1" '$3 == "raise" && $8 == algorithm {step = $5 - $4} END {print step}' "$pcc/trace"; }

test_case "a plugin is called in virtual time"
mounted -o clock=virtual,seed=3
plugin pa
expect ok "$(store 1 "$pcc/load")" "load"
echo 1G >"$debug/links/sw_0-mb_1/rate"
echo 1 >"$debug/fabric/sw_0/ecn/enable"
echo "f write mb_0 mb_1 count=1000000" >"$debug/traffic/start"
expect ok "$(store pa "$pcc/algo")" "a plugin"
expect ok "$(store start "$pcc/state")" "start"
advance 2ms
calls=$(cat "$pcc/qps/17/ctrl_count")
[ "$calls" -gt 0 ] || fail "it was called $calls times in 2 ms"

test_case "a parameter that it writes is shown as it is at this moment"
for _ in {1..6}; do
  cat "$pcc/params/quiet"
  advance 60us
done >"$dir/quiet"
[ "$(sort -u "$dir/quiet" | wc -l)" -gt 1 ] || fail "calls without a CNP: $(xargs <"$dir/quiet")"
expect "$(cat "$pcc/params/quiet")" "$(sed -n 's/^  quiet: //p' "$pcc/status")" "in the status"

test_case "a built-in algorithm replaces it, with its parameter"
expect ok "$(store aimd "$pcc/algo")" "a built-in one instead"
expect ok "$(store 200 "$pcc/params/alpha")" "its parameter"
expect ok "$(store pa "$pcc/unload")" "nobody runs the plugin any more"
advance 1ms
expect 200 "$(step aimd)" "what it adds"

test_case "a load does not change the running algorithm"
plugin pb
expect ok "$(store 1 "$pcc/load")" "load"
expect "aimd dcqcn rttvegas pa pb" "$(cat "$pcc/algos")" "algorithms"
expect 200 "$(cat "$pcc/params/alpha")" "what is shown after a load"
advance 1ms
expect "200 active" "$(step aimd) $(cat "$pcc/state")" "and what runs"
expect ok "$(store pa "$pcc/unload")" "unload"

test_case "algorithms are listed in the order of loading, and another plugin takes over"
plugin pc
expect ok "$(store 1 "$pcc/load")" "load"
expect pb "$(cut -d' ' -f4 "$pcc/algos")" "in the order in which they came: $(cat "$pcc/algos")"
expect ok "$(store pb "$pcc/algo")" "a plugin, while it runs"
before=$(cat "$pcc/qps/17/ctrl_count")
advance 2ms
[ "$(cat "$pcc/qps/17/ctrl_count")" -ge "$before" ] && [ "$(cat "$pcc/qps/17/algo")" = pb ] || fail "it is not called"
expect ok "$(store stop "$pcc/state")" "stop"
expect ok "$(store start "$pcc/state")" "and again"
advance 1ms
expect ok "$(store stop "$pcc/state")" "stop"

test_case "a card's process that ends loses its plugins and settings"
expect ok "$(store aimd "$pcc/algo")" "apply"
expect 200 "$(cat "$pcc/params/alpha")" "its parameter"
kill -KILL "$(pgrep -P "$(worker_pid)" -f '^[^ ]*mango-pccd mb_0')"
await grep -qx "aimd dcqcn rttvegas" "$pcc/algos"
expect none "$(cat "$pcc/algo")" "applied"
expect ok "$(store aimd "$pcc/algo")" "apply"
expect ok "$(store start "$pcc/state")" "start"
advance 1ms
expect "100 100" "$(cat "$pcc/params/alpha") $(step aimd)" "as at first"

test_case "another plugin is called on queue pairs that had no events"
# Between messages an algorithm of events sleeps: nothing but the change itself makes it look.
mounted -o clock=virtual,seed=3
plugin pd
cp "$(dirname "$ROCEFS")/../examples/swift.so" "$(cat "$pcc/plugin_dir")/"
expect ok "$(store 1 "$pcc/load")" "load"
expect ok "$(store swift "$pcc/algo")" "an algorithm of events"
expect ok "$(store start "$pcc/state")" "start"
echo "g write mb_0 mb_1 count=10000" >"$debug/traffic/start"
advance 1ms
echo down >"$debug/links/mb_0-sw_0/state"
advance 200us
expect ok "$(store pd "$pcc/algo")" "another one"
before=$(cat "$pcc/qps/17/ctrl_count")
advance 1ms
[ "$(cat "$pcc/qps/17/ctrl_count")" -gt $((before + 10)) ] || fail "called $(cat "$pcc/qps/17/ctrl_count") times after $before"
