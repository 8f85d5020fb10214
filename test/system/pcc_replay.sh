#!/bin/bash
# An author without a NIC: calls of an algorithm are recorded and replayed into a plugin, and a unit test
# runs it.
. "$(dirname "$0")/lib/common.bash"
mango_ctl=$(dirname "$ROCEFS")/mango-ctl
[ -x "$(dirname "$ROCEFS")/mango-pccd" ] || skip "no mango-pccd here"
examples=$(realpath "$(dirname "$0")/../../tools/examples")
pcc=$ib/mb_0/pcc
export ROCEFS_MOUNT=$mnt
ctl() { "$mango_ctl" rdma pcc "$@"; }
advance() { echo "$1" >"$debug/clock/advance"; }
compile() {  # SOURCE PLUGIN
  "${CXX:-c++}" -std=c++20 -O2 -shared -fPIC -I"$(dirname "$ROCEFS")/../include" -o "$2" "$1"
}
replay() { ctl replay "$@" >"$dir/said" 2>"$dir/err"; }  # its status
status_of() { local status=0; "$@" || status=$?; echo "$status"; }
has_all() { [ "$(tail -n 1 "$dir/calls.csv")" = "$1" ]; }
calls_in() { awk -F, '$4 == "call"' "$1" | wc -l; }
number() { sed -n 's/^\([0-9]*\) calls of [0-9]* queue pairs: .*/\1/p' "$dir/said"; }

cd "$dir"

test_case "mango-pccd has a help, and so has its replay"
mango_pccd=$(dirname "$ROCEFS")/mango-pccd
for option in -h --help; do
  said=$("$mango_pccd" $option) || fail "mango-pccd $option: status $?"
  [[ $said == "usage: mango-pccd replay "*--version* ]] || fail "mango-pccd $option: $said"
  said=$("$mango_pccd" replay $option) || fail "mango-pccd replay $option: status $?"
  for word in --algo --param --seed --device --csv; do [[ $said == *"  $word "* ]] || fail "no $word in: $said"; done
done
expect "$("$mango_pccd" --version)" "$("$mango_pccd" -V)" "-V"
expect 2 "$(status_of "$mango_pccd" 2>/dev/null)" "status without words"
expect 2 "$(status_of "$mango_pccd" replay 2>/dev/null)" "status of a replay of nothing"

test_case "100000 calls of HPCC are recorded while they are made"
mounted -o clock=virtual,seed=7
ctl algo cross-build "$examples/hpcc.cc" mb_0
ctl algo load mb_0
cp "$(cat "$pcc/plugin_dir")/hpcc.so" .
echo 1 >"$debug/fabric/sw_0/int/enable"
expect "" "$(ctl trace mb_0 --calls --csv none.csv 2>err)" "a recording of nothing"
grep -q "trace_calls is 0" err || fail "what it says: $(cat err)"
for rate in "$debug"/links/*/rate; do echo 100G >"$rate"; done
echo 20 >"$pcc/interval_us"
echo 1 >"$pcc/trace_calls"
ctl apply mb_0 hpcc
ctl start mb_0
echo "f write mb_0 mb_1 qps=64 size=64K count=100000000" >"$debug/traffic/start"
"$mango_ctl" rdma pcc trace mb_0 --calls --csv calls.csv --follow &
recorder=$!
for _ in {1..40}; do
  advance 5ms
  [ "$(calls_in calls.csv)" -lt 100000 ] || break
done
ctl stop mb_0
await has_all "$(ctl trace mb_0 --calls --csv - | tail -n 1)"
kill $recorder
[ "$(calls_in calls.csv)" -ge 100000 ] || fail "$(calls_in calls.csv) calls"
unmounted

test_case "their replay without a mount gives the recorded windows and rates"
calls=$(calls_in calls.csv)
begin=$(date +%s%N)
expect 0 "$(status_of replay calls.csv --algo ./hpcc.so --csv now.csv)" "status: $(tail -n 3 "$dir/said" "$dir/err")"
echo "$calls calls in $((($(date +%s%N) - begin) / 1000000)) ms"
expect "$calls calls of 64 queue pairs: $calls the same" "$(cat said)" "the report"
expect "$((calls + 1))" "$(wc -l <now.csv)" "lines of all decisions"
[ "$(cut -d, -f5 now.csv | sort -u | wc -l)" -gt 100 ] || fail "the windows hardly changed"
expect "" "$(awk -F, 'NR > 1 && ($5 != $6 || $7 != $8 || $9 != $10)' now.csv)" "decisions that differ"

test_case "a plugin with one constant changed decides otherwise"
sed 's/\.eta = 0.95/.eta = 0.94/' "$examples/hpcc.cc" >other.cc
compile other.cc other.so
expect 1 "$(status_of replay calls.csv --algo ./other.so)" "status"
expect "$calls" "$(number)" "calls: $(tail -n 1 said)"
grep -qE "^$calls calls of 64 queue pairs: [0-9]+ differ$" said || fail "the report: $(tail -n 1 said)"
expect 20 "$(grep -cE '^[0-9]+ ns QP [0-9]+: recorded window [0-9]+ rate [0-9]+, replayed window [0-9]+ rate [0-9]+$' said)" "lines"
expect 0 "$(status_of replay calls.csv --algo ./other.so --param eta=0.95)" "with the old value: $(tail -n 1 said)"

test_case "a queue pair whose first call is not recorded is left out"
grep -vE '^[0-9]+,17,[0-9]+,call,hpcc,1,' calls.csv >middle.csv
expect 0 "$(status_of replay middle.csv --algo ./hpcc.so)" "status"
grep -q "^QP 17 is left out: its recording begins with call 2$" said || fail "the report: $(cat said)"
grep -q " calls of 63 queue pairs: " said || fail "the report: $(cat said)"

test_case "what is no recording is refused, with the line"
head -n 50 calls.csv >short.csv
echo "# 7 lines are lost" >>short.csv
expect 2 "$(status_of replay short.csv --algo ./hpcc.so)" "lost lines"
grep -q "short.csv: line 51: lines of the recording are lost" err || fail "lost lines: $(cat err)"
head -c 2000 calls.csv >short.csv
expect 2 "$(status_of replay short.csv --algo ./hpcc.so)" "a line without its end"
grep -qE "short.csv: line [0-9]+ is cut off" err || fail "a line without its end: $(cat err)"
expect 2 "$(status_of replay hpcc.so --algo ./hpcc.so)" "another file"
expect 2 "$(status_of replay calls.csv --algo ./calls.csv)" "no plugin"
expect 2 "$(status_of replay calls.csv --algo none)" "no algorithm"
expect 2 "$(status_of replay calls.csv --algo aimd --param alpha=x)" "no value"
expect 2 "$(status_of replay nowhere.csv --algo aimd)" "no file"

test_case "a plugin that crashes in a replay is named, with the signal"
cat >crash.cc <<'CC'
#include <libmango.h>
#include <cstdlib>
extern "C" {
void call(void*) { std::abort(); }
extern const mango_pcc_algo_plugin_t mango_pcc_algo_plugin = {
    .name = "crash", .desc = "a test", .init_params = nullptr, .destroy_params = nullptr, .algo_fn = call};
}
CC
compile crash.cc crash.so
expect 1 "$(ulimit -c 0; status_of replay calls.csv --algo ./crash.so)" "status"
grep -q "^mango-ctl: error: ./crash.so: it died of SIGABRT$" err || fail "what it says: $(cat err)"

test_case "a new algorithm has a unit test that passes, and fails when the algorithm is another"
needs make
ctl new my_algo >said
grep -qx my_algo/my_algo_test.cc said || fail "the files: $(cat said)"
cd my_algo
make test CXX="${CXX:-c++}" ROCEFS="$ROCEFS" >said 2>&1 || fail "make test: $(tail -n 5 said)"
grep -qx "my_algo: passed" said || fail "make test: $(cat said)"
grep -q "aimd" said || fail "it is not simulated: $(cat said)"
sed -i 's|window /= 2|window /= 3|' my_algo.cc
make my_algo_test CXX="${CXX:-c++}" >said 2>&1
expect "FAILED: half a window at CNPs: 50250 is wanted, got 33500" "$(./my_algo_test 2>&1)" "a changed algorithm"

test_case "what an algorithm holds of a queue pair is shown, by a plugin and by a built-in algorithm"
cat >holds.cc <<'CC'
#include <libmango.h>
extern "C" {
struct Block { unsigned int step; unsigned char state[4]; double gain; };
static Block first = {7, {1, 2, 3, 254}, 0.5};
static const mango_pcc_param_t rows[] = {REGISTER_UINT32_PARAM(Block, step), REGISTER_DOUBLE_PARAM(Block, gain)};
void* init(mango_pcc_h pcc, unsigned int slot, size_t* size) {
  *size = sizeof first;
  mango_pcc_params_register(pcc, slot, rows, 2);
  return &first;
}
void call(void* block) { ++static_cast<Block*>(block)->state[0]; }
extern const mango_pcc_algo_plugin_t mango_pcc_algo_plugin = {
    .name = "holds", .desc = "a test", .init_params = init, .destroy_params = nullptr, .algo_fn = call};
}
CC
mounted -o clock=virtual,seed=7
mkdir -p "$(cat "$pcc/plugin_dir")"
compile holds.cc "$(cat "$pcc/plugin_dir")/holds.so"
ctl algo load mb_0
for words in "mb_0" "mb_0 --qp 17"; do
  expect 4 "$(status_of ctl dump $words 2>err)" "while PCC is not active"
  grep -q "PCC is not active" err || fail "what it says: $(cat err)"
done
ctl apply mb_0 holds
ctl start mb_0
echo "f write mb_0 mb_1 qps=2 size=64K count=100000000" >"$debug/traffic/start"
advance 200us
ctl update-params mb_0 holds --param step=8
expect "QP 17 holds
  step=8
  gain=0.5
  4 of 16 octets are no parameters
  0x0004: 04 02 03 fe
QP 18 holds
  step=8
  gain=0.5
  4 of 16 octets are no parameters
  0x0004: 04 02 03 fe" "$(ctl dump mb_0)" "all"
expect "$(ctl dump mb_0 | tail -n 5)" "$(ctl dump mb_0 --qp 18)" "one"
expect 8 "$(ctl dump mb_0 --qp 18 --json | python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["parameters"]["step"])')" "as JSON"
expect 1 "$(status_of ctl dump mb_0 --qp 99 2>err)" "one that is none"
grep -q "QP 99 is not active" err || fail "what it says: $(cat err)"
ctl apply mb_0 aimd
advance 200us
ctl dump mb_0 --qp 17 | grep -qx "  alpha=100" || fail "a built-in algorithm: $(ctl dump mb_0 --qp 17)"
