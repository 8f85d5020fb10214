#!/bin/bash
# What the author of an algorithm does: build, load, see it print, break it, debug it, build it again
# while traffic runs.
. "$(dirname "$0")/lib/common.bash"
mango_ctl=$(dirname "$ROCEFS")/mango-ctl
[ -x "$(dirname "$ROCEFS")/mango-pccd" ] || skip "no mango-pccd here"
pcc=$ib/mb_0/pcc
export ROCEFS_MOUNT=$mnt
ctl() { "$mango_ctl" rdma pcc "$@"; }
plugin() {  # NAME TEXT [TEXT]: the source of a plugin that does TEXT, with another in front
  cat >"$dir/$1.cc" <<CC
#include <libmango.h>
#include <cstdio>
#include <cstdlib>
${3-}
extern "C" {
void $1_call(void*) { $2 }
extern const mango_pcc_algo_plugin_t mango_pcc_algo_plugin = {
    .name = "$1", .desc = "a test", .init_params = nullptr, .destroy_params = nullptr, .algo_fn = $1_call};
}
CC
}
build() { ctl algo cross-build "$dir/$1.cc" mb_0; }
# All 64 queue pairs have had this window, by the trace.
all_have_had() { [ "$(awk -F, -v w="$1" '$5 == w {print $2}' "$pcc/trace" | sort -u | wc -l)" = 64 ]; }
calls() { cat "$pcc/qps/17/ctrl_count"; }
called_after() { [ "$(calls)" -gt "$1" ]; }

cd "$dir"
mounted
echo "f write mb_0 mb_1 qps=64 size=64K count=100000000" >"$debug/traffic/start"
plugin steer "mango_pcc_window_update(9000);" 'static int said = puts("steer is here");'
build steer
ctl algo load mb_0
ctl apply mb_0 steer
ctl start mb_0

test_case "a plugin that was built again steers 64 flows without a stop"
await all_have_had 9000
card=$(cat "$pcc/card_pid")
sed -i 's/9000/12000/' steer.cc
build steer
ctl algo load mb_0
expect "steer.so: loaded steer again" "$(cat "$pcc/load")" "load"
await all_have_had 12000
expect "active $card" "$(cat "$pcc/state" "$pcc/card_pid" | xargs)" "state and process"
state_is f running || fail "traffic: $(cat "$debug/traffic/f/state")"
ctl algo load mb_0
expect "" "$(cat "$pcc/load")" "nothing has changed"
ctl algo load mb_0 --force
expect "steer.so: loaded steer again" "$(cat "$pcc/load")" "load --force"
expect "Invalid argument" "$(store again "$pcc/load")" "another word"

test_case "lines that a plugin prints are in dmesg"
await grep -q "rocefs: mb_0: PCC: output: steer is here" "$debug/dmesg"

test_case "bad plugins beside good ones end nothing that runs"
plugin good "mango_pcc_window_update(10000);"
plugin crash "" "static int dies = (abort(), 0);"
plugin leave "" "static int leaves = (exit(0), 0);"
for one in good crash leave; do build $one; done
head -c 3000 "$(cat "$pcc/plugin_dir")/good.so" >"$(cat "$pcc/plugin_dir")/short.so"
expect 1 "$(ctl algo load mb_0 2>"$dir/refused"; echo $?)" "load"
expect "crash.so: refused: it dies of SIGABRT while it is loaded
good.so: loaded good
leave.so: refused: it ends the process with status 0 while it is loaded" "$(grep -v short "$pcc/load")" "load"
grep -q "^short.so: refused: " "$pcc/load" || fail "a file that was cut off: $(cat "$pcc/load")"
expect 3 "$(grep -c "refused" "$dir/refused")" "reasons of mango-ctl: $(cat "$dir/refused")"
expect "active $card" "$(cat "$pcc/state" "$pcc/card_pid" | xargs)" "state and process"
before=$(calls)
await called_after "$before"

test_case "a debugger holds the algorithm for 8 s, and PCC goes on"
needs gdb
command=$(ctl debug mb_0)
expect "gdb -p $card" "$command" "the command"
$command -batch -ex "break steer_call" -ex "continue" -ex "info symbol \$pc" -ex "shell sleep 8" -ex "delete" -ex "detach" \
  >"$dir/gdb" 2>&1 </dev/null || fail "gdb: $(cat "$dir/gdb")"
grep -q "^steer_call.* in section .text of .*/steer.so" "$dir/gdb" || fail "gdb: $(cat "$dir/gdb")"
expect "active $card" "$(cat "$pcc/state" "$pcc/card_pid" | xargs)" "state and process"
before=$(calls)
await called_after "$before"

test_case "an algorithm is not applied any more, and its plugin is unloaded"
expect "Device or resource busy" "$(store none "$pcc/algo")" "none while PCC is active"
ctl stop mb_0
expect "Device or resource busy" "$(store steer "$pcc/unload")" "unload of what is applied"
ctl apply mb_0 none
expect none "$(cat "$pcc/algo")" "applied"
ctl algo unload mb_0 steer
expect "Invalid argument" "$(store start "$pcc/state")" "a start of nothing"
expect "aimd dcqcn rttvegas good" "$(cat "$pcc/algos")" "algorithms"

test_case "no project begins with the name of an algorithm that the card has"
for built_in in $(cat "$pcc/algos"); do
  [ "$built_in" != good ] || continue  # loaded above
  expect "1 mango-ctl: error: $built_in: the card has an algorithm of that name already" \
    "$(cd "$dir" && outcome_of "$mango_ctl" rdma pcc new "$built_in")" "$built_in"
  [ ! -e "$dir/$built_in" ] || fail "a directory $built_in"
done

test_case "an address sanitizer's report is in dmesg"
unmounted
asan=$("${CXX:-c++}" -print-file-name=libasan.so)
[ -e "$asan" ] && ! nm -D "$ROCEFS" | grep -q __asan_init || skip "no address sanitizer for plugins here"
export LD_PRELOAD="$asan" ASAN_OPTIONS=detect_leaks=0
mounted
unset LD_PRELOAD ASAN_OPTIONS
plugin overflow "block[2] = 1; mango_pcc_window_update(9000);" "static volatile int* block = static_cast<int*>(malloc(8));"
CXX="${CXX:-c++} -fsanitize=address" build overflow
rm -f "$(cat "$pcc/plugin_dir")"/{crash,leave,short}.so
ctl algo load mb_0
ctl apply mb_0 overflow
ctl start mb_0
echo "f write mb_0 mb_1 size=64K count=1000000" >"$debug/traffic/start"
await grep -q "PCC ended: mango-pccd (pid [0-9]*) ended with exit status 1" "$debug/dmesg"
grep -q "PCC: output: .*AddressSanitizer: heap-buffer-overflow" "$debug/dmesg" || fail "no report: $(tail -n 5 "$debug/dmesg")"
grep -q "PCC: output: .* in overflow_call .*overflow.cc" "$debug/dmesg" || fail "no place: $(tail -n 50 "$debug/dmesg")"
