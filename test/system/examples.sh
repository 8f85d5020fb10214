#!/bin/bash
# tools/examples: a program that sets windows by its own pollers, as the API reference's does.
. "$(dirname "$0")/lib/common.bash"
examples=$(realpath "$(dirname "$0")/../../tools/examples")
build=$(realpath "$(dirname "$ROCEFS")/..")
[ -e "$build/lib/libmango.so" ] || skip "no libmango.so here"
for standard in c++17 c++20; do
  "${CXX:-c++}" -std=$standard -Wall -Wextra -Werror -I"$build/include" "$examples/own_pollers.cc" -o "$dir/own" -L"$build/lib" -lmango
done
own() { LD_LIBRARY_PATH="$build/lib" ROCEFS_MOUNT=$mnt "$dir/own" "$@"; }

mounted

test_case "a program with its own pollers sets windows"
expect ok "$(store 1 "$ib/mb_0/cfr/enable")" "CFR"
expect ok "$(store 1G "$debug/links/sw_0-mb_1/rate")" "a bottleneck"
expect ok "$(store 1 "$debug/fabric/sw_0/ecn/enable")" "ECN"
echo "f write mb_0 mb_1 qps=2 count=10000000" >"$debug/traffic/start"
own mb_0 2 >"$dir/said" || fail "its status: $?"
expect 4 "$(grep -c '^QP 1[78]: window [0-9]*, set [0-9]* times, [0-9]* CNPs$' "$dir/said")" "queue pairs: $(cat "$dir/said")"
# The size of a window then depends on how the machine schedules engine and pollers.
tail -n 2 "$dir/said" | while read -r _ qpn _ _ _ times _ cnps _; do
  [ "$times" -gt 100 ] && [ "$cnps" -gt 0 ] || fail "QP $qpn $(cat "$dir/said")"
done
expect 1 "$(cat "$ib/mb_0/cfr/enable")" "CFR when it has ended"

test_case "an unknown device is reported"
own mb_9 2>"$dir/err" && fail "there is no mb_9"
grep -q '^mb_9: ' "$dir/err" || fail "no such device: $(cat "$dir/err")"

test_case "a second owner is refused, and a killed owner's windows are given back"
LD_LIBRARY_PATH="$build/lib" ROCEFS_MOUNT=$mnt "$dir/own" mb_0 60 >/dev/null &
program=$!
at_end kill -KILL $program
await grep -q ^0 "$ib/mb_0/cfr/enable"  # it runs: CFR is off
own mb_0 2>"$dir/err" && fail "two owners"
grep -qi busy "$dir/err" || fail "the second owner: $(cat "$dir/err")"
kill -KILL $program
await grep -q ^1 "$ib/mb_0/cfr/enable"
expect running "$(cat "$debug/traffic/f/state")" "traffic goes on"
